//! `full`: never evicts.
//!
//! *Idea.* What a cache without a policy holds: the measure of all others.
//! *Paper.* None.
//! *Parameters.* None, and no budget; the engine never asks it for victims.
//! *Cost.* No state besides the kept set, which is the whole sequence.

use super::entry::{Make, PolicyEntry};
use super::{Overflow, Policy};
use crate::needs::Needs;
use crate::position::Slot;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("full", "keeps everything; no budget", Make::Policy(|_| Box::new(Full)))
        .without_budget()
        .needs(Needs::NOTHING);

/// Keeps everything.
pub struct Full;

impl Policy for Full {
    fn choose(&mut self, _overflow: Overflow<'_>, _victims: &mut Vec<Slot>) {}
}
