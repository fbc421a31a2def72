//! What every slot has received and in how many rows, for policies that go by the mean.

use super::Observation;
use crate::kernels;
use crate::position::Slot;
use crate::slots::SlotVec;

/// The sum of each slot's weights, and the rows that showed it.
pub(super) struct Means {
    sums: SlotVec<f64>,
    observations: SlotVec<u32>,
}

impl Means {
    /// No slots yet, room for about `slots`.
    pub(super) fn new(slots: usize) -> Means {
        Means { sums: SlotVec::with_capacity(slots), observations: SlotVec::with_capacity(slots) }
    }

    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// A slot that no row has shown yet.
    pub(super) fn admit(&mut self) {
        self.sums.push(0.0);
        self.observations.push(0);
    }

    /// Takes in a step's rows, as one observation.
    pub(super) fn observe(&mut self, seen: Observation<'_>) {
        seen.rows().for_each(|row| kernels::accumulate(&mut self.sums, row));
        self.observations.iter_mut().for_each(|observations| *observations += 1);
    }

    /// Rows that showed a slot.
    pub(super) fn observations(&self, slot: usize) -> u32 {
        self.observations[slot]
    }

    /// A slot's mean weight, above every weight where no row has shown it.
    pub(super) fn mean(&self, slot: usize) -> f64 {
        match self.observations[slot] {
            0 => f64::INFINITY,
            observations => self.sums[slot] / f64::from(observations),
        }
    }

    /// Forgets slots that have left.
    pub(super) fn forget(&mut self, slots: &[Slot]) {
        self.sums.remove(slots);
        self.observations.remove(slots);
    }

    /// Bytes held for each slot.
    pub(super) fn slot_bytes(&self) -> usize {
        size_of::<f64>() + size_of::<u32>()
    }
}
