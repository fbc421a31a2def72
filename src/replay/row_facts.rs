//! What every lane needs to know of a row, found once: total, pivotal count, peaks, heavy hitters.

use crate::kernels::{self, KeptLimits, Picked, RowLimits, f32_not_above};
use crate::position::Position;

/// A weight above this is a peak: losing it hurts the row.
const PEAK: f64 = 0.1;

/// The facts of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowFacts {
    /// Sum of the weights.
    pub total: f64,
    /// A weight above this is pivotal.
    pub pivotal_limit: f32,
    /// Number of pivotal positions.
    pub pivotal: u32,
    /// Number of peaks.
    pub peaks: u32,
    /// Number of heavy positions: k, or the length of a shorter row.
    pub heavy: u32,
    /// A weight above this is heavy.
    pub heavy_limit: f32,
    /// Positions with this very weight are heavy up to this one; `None` where none ties.
    pub heavy_tie: Option<(f32, Position)>,
}

impl RowFacts {
    /// What a kept set is compared with while it is gathered.
    #[inline]
    pub(super) fn kept_limits(&self) -> KeptLimits {
        KeptLimits { pivotal: self.pivotal_limit, heavy: self.heavy_limit }
    }

    /// Whether peaks or ties have to be looked for among the kept weights, one by one.
    #[inline]
    pub(super) fn has_peaks_or_ties(&self) -> bool {
        self.peaks > 0 || self.heavy_tie.is_some()
    }

    /// Whether these weights of the row lack a peak.
    #[inline]
    pub(super) fn lack_a_peak(&self, weights: &[f32]) -> bool {
        self.peaks > 0 && kernels::count_over(weights, f32_not_above(PEAK)) < self.peaks
    }

    /// Number of heavy positions among these that do not exceed the limit but tie at it.
    #[inline]
    pub(super) fn heavy_ties(&self, positions: &[Position], weights: &[f32]) -> u32 {
        let Some((tie, last)) = self.heavy_tie else { return 0 };
        let end = positions.partition_point(|position| *position <= last);
        weights[..end].iter().map(|weight| u32::from(*weight == tie)).sum()
    }
}

/// Finds facts row by row; carries a guess of the heavy threshold from one row to the next, which
/// changes the time and never the facts.
pub(super) struct FactFinder {
    heavy_hitters: usize,
    floor: f32,
    /// The floor of the next row is this share of the threshold of the last.
    slack: f32,
    picked: Picked,
}

impl FactFinder {
    pub(super) fn new(heavy_hitters: usize) -> FactFinder {
        FactFinder { heavy_hitters, floor: f32::INFINITY, slack: 0.9, picked: Picked::default() }
    }

    /// The facts of a row; `None` where a weight is negative or no finite number. Turns negative
    /// zeros into zeros, so that both order alike.
    pub(super) fn find(&mut self, row: &mut [f32]) -> Option<RowFacts> {
        let limits = RowLimits {
            pivotal: f32_not_above(1.0 / row.len() as f64),
            floor: if row.len() > self.heavy_hitters { self.floor } else { f32::INFINITY },
        };
        let scan = kernels::scan_row(row, limits, &mut self.picked);
        if scan.signed {
            unsign_zeros(row);
            return if row.iter().any(|weight| weight.is_sign_negative()) { None } else { self.find(row) };
        }
        if !scan.total.is_finite() {
            return None;
        }
        let peaks = self.peaks(row, limits.floor);
        let (heavy_limit, heavy_tie) = self.heavy_threshold(row);
        Some(RowFacts {
            total: scan.total,
            pivotal_limit: limits.pivotal,
            pivotal: scan.pivotal,
            peaks,
            heavy: self.heavy_hitters.min(row.len()) as u32,
            heavy_limit,
            heavy_tie,
        })
    }

    /// Number of peaks. They are among the few that were picked where the floor is no higher.
    fn peaks(&self, row: &[f32], floor: f32) -> u32 {
        let peak = f32_not_above(PEAK);
        kernels::count_over(if floor <= peak { self.picked.weights() } else { row }, peak)
    }

    /// The k heaviest positions, ties to the lower position, as a limit that heavy weights exceed
    /// and, where more weights tie at the limit than are among the k, that weight and the last
    /// position that is.
    fn heavy_threshold(&mut self, row: &[f32]) -> (f32, Option<(f32, Position)>) {
        let count = self.heavy_hitters;
        if row.len() <= count {
            return (-1.0, None);
        }
        self.complete_candidates(row);
        let (weights, positions) = (self.picked.weights(), self.picked.positions());
        let least = kernels::nth_largest(weights, count);
        self.floor = least * self.slack;
        let above = kernels::count_over(weights, least) as usize;
        let mut tied = positions.iter().zip(weights).filter(|(_, weight)| **weight == least);
        let last = tied.nth(count - above - 1).expect("the k heaviest are among the candidates").0;
        match tied.next() {
            None => (least.next_down(), None),
            Some(_) => (least, Some((least, Position(*last)))),
        }
    }

    /// Sees to it that the k heaviest are among the picked, and the next floor is near.
    fn complete_candidates(&mut self, row: &[f32]) {
        let count = self.heavy_hitters;
        let found = self.picked.weights().len();
        if found < count {
            self.slack = (self.slack * 0.8).max(0.05);
            let least = kernels::nth_largest(row, count);
            kernels::pick_from(row, least, &mut self.picked);
        } else if found > count + count / 4 {
            self.slack = (self.slack * 1.02).min(0.99);
        }
    }
}

fn unsign_zeros(row: &mut [f32]) {
    row.iter_mut().filter(|weight| **weight == 0.0).for_each(|weight| *weight = 0.0);
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
            let mut row: Vec<f32> = (0..len).map(|_| random.below(values) as f32 * scale).collect();
            let facts = finder.find(&mut row).expect("sound");
            let is_heavy = |position: &u32| {
                let weight = &row[*position as usize..][..1];
                weight[0] > facts.heavy_limit || facts.heavy_ties(&[Position(*position)], weight) == 1
            };
            let found: Vec<u32> = (0..len).filter(is_heavy).collect();
            assert_eq!(found, plain_heavy(&row, 5), "row {round}");
            assert_eq!(facts.heavy as usize, found.len());
            let peaks = row.iter().filter(|weight| f64::from(**weight) > PEAK).count();
            assert_eq!(facts.peaks as usize, peaks, "row {round}");
        }
    }
}
