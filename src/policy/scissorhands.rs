//! `scissorhands`: keeps the positions that were pivotal most often.
//!
//! *Idea.* Importance persists: a position that got more than an even share of attention in many
//! steps will do so again.
//! *Paper.* Liu et al.: Scissorhands: Exploiting the Persistence of Importance Hypothesis for LLM
//! KV Cache Compression at Test Time, NeurIPS 2023, arXiv 2305.17118.
//! *How this differs from the paper.* One reading of it: votes are counted over all observed rows
//! instead of a history window, against the even share of the kept positions instead of the whole
//! sequence, and exactly the excess is evicted instead of a block.
//! *Parameters.* `recent-window` (32).
//! *Cost.* One u32 per slot; one comparison per slot and step, one pass per eviction.

use super::{Overflow, Policy, View, choose_lowest};
use crate::kernels::{self, f32_not_above};
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// Evicts the fewest votes outside the recent window.
pub struct Scissorhands {
    recent_window: usize,
    votes: SlotVec<u32>,
}

impl Scissorhands {
    /// A policy for a cache of about `budget` slots.
    pub fn new(recent_window: usize, budget: usize) -> Scissorhands {
        Scissorhands { recent_window, votes: SlotVec::with_capacity(budget) }
    }
}

impl Policy for Scissorhands {
    fn admit(&mut self, _position: Position) {
        self.votes.push(0);
    }

    fn observe(&mut self, view: View<'_>) {
        kernels::count_above(&mut self.votes, view.weights, f32_not_above(view.share()));
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = self.votes.len().saturating_sub(self.recent_window);
        choose_lowest(&self.votes, candidates, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.votes.remove(slots);
    }

    fn figure(&self, slot: Slot) -> Option<f64> {
        Some(f64::from(self.votes[slot.0]))
    }

    fn slot_bytes(&self) -> usize {
        size_of::<u32>()
    }
}
