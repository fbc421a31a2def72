//! Coupled policies: one state that serves several caches in step order.

use super::entry::Setting;
use super::{Admission, Observation, Overflow};
use crate::position::Slot;

/// What a coupled policy is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct CoupledSetting {
    /// The setting of each cache: they differ in budget, place, and what is a share of the budget.
    pub caches: Vec<Setting>,
}

/// A [`Policy`](super::Policy) whose state several caches share: the layers of one head.
///
/// Within a step each cache goes through all of its calls before the next one begins, in the order
/// of layers; a cache whose rows have ended is passed over. Slots are those of the cache named.
pub trait CoupledPolicy: Send {
    /// A position enters a cache as its newest slot.
    fn admit(&mut self, cache: usize, admission: Admission<'_>) {
        let _ = (cache, admission);
    }

    /// A step's rows of a cache were seen. Not called for steps without information.
    fn observe(&mut self, cache: usize, seen: Observation<'_>) {
        let _ = (cache, seen);
    }

    /// Appends the slots of a cache that must go: ascending, distinct, at least `overflow.excess`.
    fn choose(&mut self, cache: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>);

    /// These slots (ascending) have left a cache, whether chosen or expired.
    fn forget(&mut self, cache: usize, slots: &[Slot]) {
        let _ = (cache, slots);
    }

    /// Number of slots of a cache that state is held for, where there is state for each.
    fn slots(&self, cache: usize) -> Option<usize> {
        let _ = cache;
        None
    }

    /// Bytes of state held for each slot of each cache.
    fn slot_bytes(&self) -> usize {
        0
    }

    /// Bytes of state that the caches share.
    fn shared_bytes(&self) -> usize {
        0
    }
}
