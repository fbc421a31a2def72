//! Eviction policies: each owns its state per slot and the choice of victims, nothing else.
//!
//! A policy never learns its score, other lanes, the file or the future. The engine owns the kept
//! set: it gathers the weights that a policy sees, asks for victims when the budget is exceeded,
//! checks the answer and tells the policy which slots left. [`table::POLICIES`] lists them all.

mod assignment;
mod choose;
pub mod coupled;
pub mod cross_layer;
pub mod decay;
pub mod future;
pub mod future_greedy;
pub mod h2o;
mod history;
pub mod optimal;
pub mod oracle;
pub mod parameter;
pub mod pyramidkv;
pub mod random;
pub mod scissorhands;
pub mod scissorhands_paper;
pub mod share;
pub mod sliding_window;
pub mod snapkv;
pub mod streaming_llm;
pub mod table;
pub mod tova;

pub use choose::{choose_lowest, choose_oldest};

use crate::position::{Position, Slot};

/// A row restricted to the kept positions, ascending, not renormalised unless the run asks for it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The kept positions.
    pub positions: &'a [Position],
    /// One weight for each kept position.
    pub weights: &'a [f32],
    /// Number of weights in the whole row.
    pub row_len: usize,
}

impl View<'_> {
    /// The even share of this view: 1 / number of kept positions.
    pub fn share(&self) -> f64 {
        1.0 / self.weights.len() as f64
    }
}

/// A kept set that has outgrown its budget.
#[derive(Clone, Copy, Debug)]
pub struct Overflow<'a> {
    /// The kept positions, ascending; a slot is an index into them.
    pub kept: &'a [Position],
    /// How many have to go, at least 1.
    pub excess: usize,
}

/// Decides which positions go. One value serves one cache and holds one entry per slot.
///
/// The calls of a step come in the order that the trace's kind asks for (module
/// [`replay`](crate::replay)); slots are numbered as in the kept set at the time of the call.
pub trait Policy: Send {
    /// A position enters as the newest slot.
    fn admit(&mut self, position: Position) {
        let _ = position;
    }

    /// Whether [`Policy::observe`] looks at weights; false saves the time to gather them.
    fn looks_at_weights(&self) -> bool {
        true
    }

    /// A row was seen. Not called for steps without information.
    fn observe(&mut self, view: View<'_>) {
        let _ = view;
    }

    /// Appends the slots that must go to `victims`: ascending, distinct, at least
    /// `overflow.excess` of them.
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>);

    /// These slots (ascending) have left the cache, whether chosen or expired.
    fn forget(&mut self, slots: &[Slot]) {
        let _ = slots;
    }

    /// The figure by which a slot is judged, for inspection; `None` where there is none (yet).
    fn figure(&self, slot: Slot) -> Option<f64> {
        let _ = slot;
        None
    }

    /// Bytes of state held for each slot.
    fn slot_bytes(&self) -> usize {
        0
    }

    /// Bytes of state that do not depend on the number of slots.
    fn fixed_bytes(&self) -> usize {
        0
    }
}

/// Says what could have been retained of a row at most. Unlike a policy it reads whole rows.
///
/// Bounds that know the future are [planners](future::Planner).
pub trait Bound: Send {
    /// The mass retained of this row by the best choice of `held` positions.
    fn retained(&mut self, row: &[f32], held: usize) -> f64;
}
