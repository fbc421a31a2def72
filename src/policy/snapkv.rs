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

use super::choose::rank_outside_window;
use super::entry::{Make, PolicyEntry, Setting, must_not_exceed};
use super::parameter::{OBS_WINDOW, POOL_KERNEL, RECENT_WINDOW, Value};
use super::{Admission, Observation, Overflow, Policy, choose_lowest};
use crate::kernels;
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "snapkv",
    "keeps what the last rows attend to, with its neighbours, and the newest",
    Make::Policy(make),
)
.paper("Li et al.: SnapKV, NeurIPS 2024, arXiv 2404.14469")
.parameters(&[(&RECENT_WINDOW, Value::Count(32)), (&OBS_WINDOW, Value::Count(16)), (&POOL_KERNEL, Value::Count(7))])
.check(ring_is_possible)
.ranked()
.probe("windowScoreOf");

/// Each slot has a ring of this length at most: 16 KiB.
const MOST_OBSERVED: usize = 4096;

pub(super) fn ring_is_possible(setting: &Setting) -> Result<(), String> {
    must_not_exceed(setting, &OBS_WINDOW, MOST_OBSERVED)
}

pub(super) fn make(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let count = |parameter| values.count(parameter);
    Box::new(SnapKv::new(count(&RECENT_WINDOW), count(&OBS_WINDOW), count(&POOL_KERNEL), *budget))
}

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
    fn admit(&mut self, _admission: Admission<'_>) {
        self.rings.iter_mut().for_each(|ring| ring.push(0.0));
        self.sums.push(0.0);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        let exact = self.rings.len() <= MOST_EXACT && kernels::add_exactly(seen.weights);
        if exact && self.inexact == 0 {
            kernels::replace(&mut self.sums, &mut self.rings[self.next], seen.weights);
        } else {
            self.rings[self.next].copy_from_slice(seen.weights);
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

    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        kernels::pool_max(&self.sums, self.reach, &mut self.pooled);
        rank_outside_window(&self.pooled, kept, self.recent_window, ranks);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.rings.iter_mut().for_each(|ring| ring.remove(slots));
        self.sums.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.sums.len())
    }

    /// The sum of a slot's ring, before pooling.
    fn probe(&self, slot: Slot) -> Option<f64> {
        Some(self.sums[slot.0])
    }

    fn slot_bytes(&self) -> usize {
        self.rings.len() * size_of::<f32>() + size_of::<f64>()
    }
}
