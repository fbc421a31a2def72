//! `snapkv`: keeps what the last few rows attended to, with its neighbours.
//!
//! *Idea.* A short observation window tells what matters; pooling over neighbours keeps passages
//! whole.
//! *Paper.* Li et al.: SnapKV: LLM Knows What You are Looking for Before Generation, NeurIPS 2024,
//! arXiv 2404.14469.
//! *How this differs from the paper.* The paper compresses a prompt once, by its last rows, and
//! keeps everything that is generated later; here the observation window slides along and the cut
//! is made at every step.
//! *Parameters.* `recent-window` (32), `obs-window` (16), `pool-kernel` (7, odd).
//! *Cost.* `obs-window` f32 and one f64 per slot; one or two additions per slot and step where all
//! weights are 0 or at least 2^-24, `obs-window` additions elsewhere, a few passes to pool.

use super::{Overflow, Policy, View, choose_lowest};
use crate::kernels;
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// Longest ring whose sums can be exact in f64: 32 multiples of 2^-47 below 2.
const MOST_EXACT: usize = 32;

/// Evicts the lowest pooled score outside the recent window.
pub struct SnapKv {
    recent_window: usize,
    reach: usize,
    /// One sequence of slots per place in the ring.
    rings: Vec<SlotVec<f32>>,
    /// The place to be written next.
    next: usize,
    /// Each slot's sum, in ring order. Where sums are exact the order does not matter, and the
    /// weight that leaves the ring is taken off instead of adding all anew.
    sums: SlotVec<f64>,
    /// Observed rows until the ring holds none whose weights might not add exactly.
    inexact: usize,
    pooled: Vec<f64>,
}

impl SnapKv {
    /// A policy for a cache of about `budget` slots; `pool_kernel` is odd.
    pub fn new(recent_window: usize, obs_window: usize, pool_kernel: usize, budget: usize) -> SnapKv {
        SnapKv {
            recent_window,
            reach: pool_kernel / 2,
            rings: vec![SlotVec::with_capacity(budget); obs_window],
            next: 0,
            sums: SlotVec::with_capacity(budget),
            inexact: 0,
            pooled: Vec::new(),
        }
    }
}

impl Policy for SnapKv {
    fn admit(&mut self, _position: Position) {
        self.rings.iter_mut().for_each(|ring| ring.push(0.0));
        self.sums.push(0.0);
    }

    fn observe(&mut self, view: View<'_>) {
        let exact = self.rings.len() <= MOST_EXACT && kernels::add_exactly(view.weights);
        if exact && self.inexact == 0 {
            kernels::replace(&mut self.sums, &mut self.rings[self.next], view.weights);
        } else {
            self.rings[self.next].copy_from_slice(view.weights);
            kernels::add_rows(&self.rings, &mut self.sums);
            self.inexact = if exact { self.inexact - 1 } else { self.rings.len() };
        }
        self.next = (self.next + 1) % self.rings.len();
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        kernels::pool_max(&self.sums, self.reach, &mut self.pooled);
        let candidates = self.pooled.len().saturating_sub(self.recent_window);
        choose_lowest(&self.pooled, candidates, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.rings.iter_mut().for_each(|ring| ring.remove(slots));
        self.sums.remove(slots);
    }

    /// The sum of a slot's ring, before pooling.
    fn figure(&self, slot: Slot) -> Option<f64> {
        Some(self.sums[slot.0])
    }

    fn slot_bytes(&self) -> usize {
        self.rings.len() * size_of::<f32>() + size_of::<f64>()
    }
}
