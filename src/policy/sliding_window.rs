//! `sliding-window`: keeps the newest positions.
//!
//! *Idea.* Attention is mostly local, so the oldest position goes.
//! *Paper.* Beltagy, Peters, Cohan: Longformer, 2020, arXiv 2004.05150 (window attention).
//! *How this differs from the paper.* There the model is trained with the window; here the window
//! is imposed on a model that saw everything.
//! *Parameters.* None but the budget, which is the window.
//! *Cost.* No state; constant time per step besides the removal.

use super::choose::rank_by_age;
use super::entry::{Make, PolicyEntry};
use super::{Overflow, Policy, choose_oldest};
use crate::needs::Needs;
use crate::position::{Position, Slot};

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("sliding-window", "keeps the newest positions", Make::Policy(|_| Box::new(SlidingWindow)))
        .paper("Beltagy, Peters, Cohan: Longformer, 2020, arXiv 2004.05150")
        .ranked()
        .needs(Needs::NOTHING);

/// Evicts the oldest.
pub struct SlidingWindow;

impl Policy for SlidingWindow {
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        choose_oldest(0, overflow, victims);
    }

    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        rank_by_age(0, kept, ranks);
    }
}
