//! Sums that are made of all caches of a layer at once: they count where every cache of each layer is there.

use super::column::{Number, Sum};

/// Sums over layers, and of which caches they speak.
#[derive(Clone, PartialEq, Debug)]
pub struct LayerCounts {
    sums: Vec<Option<Number>>,
    /// Caches that the tally is about.
    caches: usize,
    /// Caches that the sums speak of.
    of: usize,
}

impl LayerCounts {
    /// A cache that has no share in the sums.
    pub(super) fn part() -> LayerCounts {
        LayerCounts { sums: Vec::new(), caches: 1, of: 0 }
    }

    /// The sums of a layer of so many caches, in the tally of one of them.
    pub(super) fn whole(sums: Vec<Option<Number>>, of: usize) -> LayerCounts {
        LayerCounts { sums, caches: 1, of }
    }

    /// A sum, where all caches of its layers are there and no other.
    pub(super) fn get(&self, index: usize) -> Option<Number> {
        if self.caches == self.of { *self.sums.get(index)? } else { None }
    }

    /// Adds those of another cache.
    pub(super) fn merge(&mut self, other: &LayerCounts, entry: &[Sum]) {
        self.caches += other.caches;
        self.of += other.of;
        if self.sums.is_empty() {
            return self.sums.clone_from(&other.sums);
        }
        for ((sum, own), theirs) in entry.iter().zip(&mut self.sums).zip(&other.sums) {
            *own = (*own).zip(*theirs).map(|(own, theirs)| sum.merge.of(own, theirs));
        }
    }
}
