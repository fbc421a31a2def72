//! `tova`: keeps what the newest token attends to.
//!
//! *Idea.* Token omission via attention: the position with the least weight in the present row goes.
//! *Paper.* Oren et al.: Transformers are Multi-State RNNs, EMNLP 2024, arXiv 2401.06104.
//! *How this differs from the paper.* The paper averages over the heads of a layer; here a cache is
//! what the trace says: a head, a group of heads, or their average. A position that no row has
//! shown yet ranks above any weight (where rows exclude the token itself, that is the newest).
//! *Parameters.* None: it has no recent window, recency is in the signal.
//! *Cost.* One f32 per slot; one copy per slot and step, one pass per eviction.

use super::{Overflow, Policy, View, choose_lowest};
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// Ranks above every weight: rows hold finite weights only.
const UNOBSERVED: f32 = f32::INFINITY;

/// Evicts the lowest weight in the last row seen.
pub struct Tova {
    last: SlotVec<f32>,
}

impl Tova {
    /// A policy for a cache of about `budget` slots.
    pub fn new(budget: usize) -> Tova {
        Tova { last: SlotVec::with_capacity(budget) }
    }
}

impl Policy for Tova {
    fn admit(&mut self, _position: Position) {
        self.last.push(UNOBSERVED);
    }

    fn observe(&mut self, view: View<'_>) {
        self.last.copy_from_slice(view.weights);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        choose_lowest(&self.last, self.last.len(), overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.last.remove(slots);
    }

    fn figure(&self, slot: Slot) -> Option<f64> {
        let weight = self.last[slot.0];
        (weight != UNOBSERVED).then_some(f64::from(weight))
    }

    fn slot_bytes(&self) -> usize {
        size_of::<f32>()
    }
}
