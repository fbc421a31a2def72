//! `h2o`: keeps the heavy hitters by accumulated attention.
//!
//! *Idea.* Positions that have received much attention so far will receive more.
//! *Paper.* Zhang et al.: H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large
//! Language Models, NeurIPS 2023, arXiv 2306.14048.
//! *How this differs from the paper.* The paper splits the budget evenly between heavy hitters and
//! recent tokens and works on each head of a running model, whose attention is renormalised over
//! the cache; here the window is a parameter and weights come from the full cache
//! (`--view renormalized` shows the other).
//! *Parameters.* `recent-window` (32).
//! *Cost.* One f64 per slot; one addition per slot and step, one pass per eviction.

use super::{Overflow, Policy, View, choose_lowest};
use crate::kernels;
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// Evicts the lowest accumulated attention outside the recent window.
pub struct H2o {
    recent_window: usize,
    scores: SlotVec<f64>,
}

impl H2o {
    /// A policy for a cache of about `budget` slots.
    pub fn new(recent_window: usize, budget: usize) -> H2o {
        H2o { recent_window, scores: SlotVec::with_capacity(budget) }
    }
}

impl Policy for H2o {
    fn admit(&mut self, _position: Position) {
        self.scores.push(0.0);
    }

    fn observe(&mut self, view: View<'_>) {
        kernels::accumulate(&mut self.scores, view.weights);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = self.scores.len().saturating_sub(self.recent_window);
        choose_lowest(&self.scores, candidates, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.scores.remove(slots);
    }

    fn figure(&self, slot: Slot) -> Option<f64> {
        Some(self.scores[slot.0])
    }

    fn slot_bytes(&self) -> usize {
        size_of::<f64>()
    }
}
