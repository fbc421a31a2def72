//! What every lane needs to know of a row, found once: total, pivotal count, peaks, heavy hitters.

use crate::kernels::{self, Thresholds, f32_not_above};
use crate::position::Position;

/// A weight above this is a peak: losing it hurts the row.
const PEAK: f64 = 0.1;

/// The facts of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowFacts {
    /// Sum of the weights.
    pub total: f64,
    /// Number of pivotal positions.
    pub pivotal: u32,
    /// Number of peaks.
    pub peaks: u32,
    /// Number of heavy positions: k, or the length of a shorter row.
    pub heavy: u32,
    /// What a kept weight is compared with.
    pub thresholds: Thresholds,
}

/// Finds facts row by row; carries a guess of the heavy threshold from one row to the next, which
/// changes the time and never the facts.
pub(super) struct FactFinder {
    heavy_hitters: usize,
    floor: f32,
    /// The floor of the next row is this share of the threshold of the last.
    slack: f32,
    found: Vec<(f32, u32)>,
    order: Vec<f32>,
}

impl FactFinder {
    pub(super) fn new(heavy_hitters: usize) -> FactFinder {
        FactFinder { heavy_hitters, floor: f32::INFINITY, slack: 0.9, found: Vec::new(), order: Vec::new() }
    }

    /// The facts of a row; `None` where a weight is negative or no finite number.
    pub(super) fn find(&mut self, row: &[f32]) -> Option<RowFacts> {
        let pivotal = f32_not_above(1.0 / row.len() as f64);
        let peak = f32_not_above(PEAK);
        let scan = kernels::scan_row(row, pivotal, peak);
        if !scan.sound {
            return None;
        }
        let (heavy, heavy_last) = self.heavy_threshold(row);
        Some(RowFacts {
            total: scan.total,
            pivotal: scan.pivotal,
            peaks: scan.peaks,
            heavy: self.heavy_hitters.min(row.len()) as u32,
            thresholds: Thresholds { pivotal, peak, heavy, heavy_last },
        })
    }

    /// The weight of the k-th heaviest position, and the last position with that weight that is
    /// among the k: ties go to the lower position.
    fn heavy_threshold(&mut self, row: &[f32]) -> (f32, Position) {
        let count = self.heavy_hitters;
        if row.len() <= count {
            return (-1.0, Position(0));
        }
        self.collect_candidates(row);
        let least = self.nth_heaviest(count);
        let above = self.found.iter().filter(|(weight, _)| *weight > least).count();
        let mut tied = self.found.iter().filter(|(weight, _)| *weight == least);
        let last = tied.nth(count - above - 1).expect("the k heaviest are among the candidates");
        (least, Position(last.1))
    }

    /// Leaves in `found` all weights down to some floor, at least k of them.
    fn collect_candidates(&mut self, row: &[f32]) {
        let count = self.heavy_hitters;
        self.found.clear();
        let few = kernels::collect_from(row, self.floor, 4 * count + 64, &mut self.found);
        if few && self.found.len() >= count {
            self.slack = if self.found.len() > 2 * count { (self.slack * 1.1).min(0.98) } else { self.slack };
        } else {
            self.slack = if few { (self.slack * 0.8).max(0.05) } else { (self.slack * 1.1).min(0.98) };
            self.order.clear();
            self.order.extend_from_slice(row);
            let least = self.nth_of_order(count);
            self.found.clear();
            kernels::collect_from(row, least, usize::MAX, &mut self.found);
        }
    }

    fn nth_heaviest(&mut self, count: usize) -> f32 {
        self.order.clear();
        self.order.extend(self.found.iter().map(|(weight, _)| *weight));
        let least = self.nth_of_order(count);
        self.floor = least * self.slack;
        least
    }

    fn nth_of_order(&mut self, count: usize) -> f32 {
        *self.order.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a)).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::rng::Xoshiro128;

    fn plain_heavy(row: &[f32], count: usize) -> Vec<u32> {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
        order.truncate(count);
        order.sort_unstable();
        order.into_iter().map(|position| position as u32).collect()
    }

    #[test]
    fn the_heavy_positions_are_those_of_a_sort_whatever_came_before() {
        let mut random = Xoshiro128::new(3);
        let mut finder = FactFinder::new(5);
        for round in 0..2000_u32 {
            let len = 1 + random.below(200);
            let values = 1 + random.below(40);
            let scale = 1.0 / (1 + random.below(1 << (round % 20))) as f32;
            let row: Vec<f32> = (0..len).map(|_| random.below(values) as f32 * scale).collect();
            let facts = finder.find(&row).expect("sound");
            let at = facts.thresholds;
            let heavy = |(weight, position): (&f32, u32)| {
                (*weight > at.heavy || (*weight == at.heavy && position <= at.heavy_last.0)).then_some(position)
            };
            let found: Vec<u32> = row.iter().zip(0..).filter_map(heavy).collect();
            assert_eq!(found, plain_heavy(&row, 5), "row {round}");
            assert_eq!(facts.heavy as usize, found.len());
        }
    }
}
