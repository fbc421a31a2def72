//! Eviction policies: each owns its state per slot and the choice of victims, nothing else.
//!
//! A policy never learns its score, other lanes, the file or the future. The engine owns the kept
//! set: it gathers the weights that a policy sees, asks for victims when the budget is exceeded,
//! checks the answer and tells the policy which slots left. Each policy is one file with its
//! [entry]; [`table::POLICIES`] lists them all.

mod assignment;
mod calls;
pub mod caote;
mod choose;
pub mod coupled;
pub mod criticalkv;
pub mod cross_layer;
pub mod decay;
pub mod entry;
pub mod expected_attention;
pub mod full;
pub mod future;
pub mod future_greedy;
pub mod g_kv;
pub mod h2o;
mod history;
mod host;
pub mod keydiff;
pub mod knorm;
pub mod lowest_score;
pub mod lru;
mod means;
mod norms;
pub mod openvino;
pub mod optimal;
pub mod oracle;
pub mod parameter;
pub mod played;
pub mod prompt_end;
pub mod pyramidkv;
pub mod random;
pub mod roco;
pub mod rounding;
pub mod scissorhands;
pub mod scissorhands_paper;
pub mod selector;
pub mod selectors;
pub mod share;
pub mod sight;
pub mod sliding_window;
pub mod snapkv;
pub mod spec;
pub mod streaming_llm;
pub mod table;
pub mod tova;
pub mod vatp;

pub use calls::{Admission, BoundRow, HeadRows, Observation, Overflow};
pub use choose::{choose_lowest, choose_oldest};

use crate::position::{Position, Slot};

/// Decides which positions go. One value serves one cache and holds one entry per slot.
///
/// The calls of a step come in the order that the trace's kind asks for (module
/// [`replay`](crate::replay)); slots are numbered as in the kept set at the time of the call.
pub trait Policy: Send {
    /// A position enters as the newest slot.
    fn admit(&mut self, admission: Admission<'_>) {
        let _ = admission;
    }

    /// A step's rows were seen. Called only where the [entry](entry::PolicyEntry::needs) needs the
    /// weights of kept positions or the rows of query heads; not called for steps without
    /// information.
    fn observe(&mut self, seen: Observation<'_>) {
        let _ = seen;
    }

    /// Appends the slots that must go to `victims`: ascending, distinct, at least
    /// `overflow.excess` of them.
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>);

    /// Appends one value for each slot, by which whole blocks are ranked: the lowest sum goes first. `None`
    /// keeps a slot, and its block, out of reach. Called in place of [`Policy::choose`] where blocks go, of
    /// policies whose entry says that they are [ranked](entry::PolicyEntry::ranked).
    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        ranks.extend(kept.iter().map(|_| None));
    }

    /// These slots (ascending) have left the cache, whether chosen or expired.
    fn forget(&mut self, slots: &[Slot]) {
        let _ = slots;
    }

    /// Number of slots that state is held for, where there is state for each: the engine checks that
    /// it is the number of positions held.
    fn slots(&self) -> Option<usize> {
        None
    }

    /// The value by which a slot is judged, for inspection; `None` where there is none (yet).
    fn probe(&self, slot: Slot) -> Option<f64> {
        let _ = slot;
        None
    }

    /// Rounds the scores that it holds to a narrower type, and says whether it holds any that are no whole
    /// numbers. Called after each [`Policy::observe`] where a run asks for it.
    fn round_scores(&mut self, to: rounding::Rounding) -> bool {
        let _ = to;
        false
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
    /// The mass retained of a row by the best choice of as many positions as may be held.
    fn retained(&mut self, row: BoundRow<'_>) -> f64;

    /// Whether that choice is a set of positions, which [`Bound::choose`] tells.
    fn chooses(&self) -> bool {
        false
    }

    /// Appends the positions of that choice, ascending, and their weights.
    fn choose(&mut self, row: BoundRow<'_>, positions: &mut Vec<Position>, weights: &mut Vec<f32>) {
        let _ = (row, positions, weights);
    }
}
