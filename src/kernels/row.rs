//! Loops over a whole row: sums, counts, the heaviest weights.

use super::{Kernel, LANES, dispatch, fold};
#[cfg(target_arch = "x86_64")]
use super::{avx512, has_avx512};

/// Sums a row. A weight that is no finite number makes the sum none.
pub fn sum(row: &[f32]) -> f64 {
    dispatch(Sum { row })
}

struct Sum<'a> {
    row: &'a [f32],
}

impl Kernel for Sum<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let mut partial = [0.0; LANES];
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                partial[lane] += f64::from(chunk[lane]);
            }
        }
        for (partial, weight) in partial.iter_mut().zip(rest) {
            *partial += f64::from(*weight);
        }
        fold(&partial)
    }
}

/// Sums the weights above a threshold.
pub fn sum_over(weights: &[f32], threshold: f32) -> f64 {
    dispatch(SumOver { weights, threshold })
}

struct SumOver<'a> {
    weights: &'a [f32],
    threshold: f32,
}

impl Kernel for SumOver<'_> {
    type Output = f64;
    /// Adding 0 for a weight that does not count changes no sum of weights that are not negative.
    #[inline(always)]
    fn run(self) -> f64 {
        let counted = |weight: f32| if weight > self.threshold { f64::from(weight) } else { 0.0 };
        let mut partial = [0.0; LANES];
        let (chunks, rest) = self.weights.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                partial[lane] += counted(chunk[lane]);
            }
        }
        for (partial, weight) in partial.iter_mut().zip(rest) {
            *partial += counted(*weight);
        }
        fold(&partial)
    }
}

/// Number of weights above a threshold.
pub fn count_over(weights: &[f32], threshold: f32) -> u32 {
    dispatch(CountOver { weights, threshold })
}

struct CountOver<'a> {
    weights: &'a [f32],
    threshold: f32,
}

impl Kernel for CountOver<'_> {
    type Output = u32;
    #[inline(always)]
    fn run(self) -> u32 {
        self.weights.iter().map(|weight| u32::from(*weight > self.threshold)).sum()
    }
}

/// What the weights of a row are compared with.
#[derive(Clone, Copy, Debug)]
pub struct RowLimits {
    /// A weight above this is pivotal.
    pub pivotal: f32,
    /// Weights of at least this are picked.
    pub floor: f32,
}

/// What one pass over a whole row finds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowScan {
    /// Sum of the weights; no finite number where a weight is none.
    pub total: f64,
    /// Number of pivotal weights.
    pub pivotal: u32,
    /// Whether a weight has its sign bit set: it is negative, or a negative zero.
    pub signed: bool,
}

/// Positions picked from a row, with their weights, in order.
#[derive(Debug, Default)]
pub struct Picked {
    /// Both are longer than what is picked: leftovers save clearing.
    pub(super) weights: Vec<f32>,
    pub(super) positions: Vec<u32>,
    pub(super) len: usize,
}

impl Picked {
    /// The weights picked.
    pub fn weights(&self) -> &[f32] {
        &self.weights[..self.len]
    }

    /// The positions picked.
    pub fn positions(&self) -> &[u32] {
        &self.positions[..self.len]
    }

    /// Forgets what was picked and makes room for a row.
    pub(super) fn start(&mut self, row_len: usize) {
        self.len = 0;
        if self.weights.len() < row_len + LANES {
            self.weights.resize(row_len + LANES, 0.0);
            self.positions.resize(row_len + LANES, 0);
        }
    }

    #[inline(always)]
    fn push(&mut self, weight: f32, position: usize) {
        self.weights[self.len] = weight;
        self.positions[self.len] = position as u32;
        self.len += 1;
    }
}

/// Sums a row, compares its weights with the limits and picks those above the floor.
pub fn scan_row(row: &[f32], limits: RowLimits, picked: &mut Picked) -> RowScan {
    picked.start(row.len());
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::scan_row(row, limits, picked);
    }
    scan_row_portably(row, limits, picked)
}

pub(super) fn scan_row_portably(row: &[f32], limits: RowLimits, picked: &mut Picked) -> RowScan {
    dispatch(PickFrom { row, floor: limits.floor, picked });
    RowScan {
        total: dispatch(Sum { row }),
        pivotal: count_over(row, limits.pivotal),
        signed: dispatch(AnySigned { row }),
    }
}

/// Picks the weights of a row that are at least `floor`.
pub fn pick_from(row: &[f32], floor: f32, picked: &mut Picked) {
    picked.start(row.len());
    dispatch(PickFrom { row, floor, picked });
}

struct AnySigned<'a> {
    row: &'a [f32],
}

impl Kernel for AnySigned<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        self.row.iter().fold(0, |bits, weight| bits | weight.to_bits()) >> 31 == 1
    }
}

struct PickFrom<'a> {
    row: &'a [f32],
    floor: f32,
    picked: &'a mut Picked,
}

impl Kernel for PickFrom<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        for (index, chunk) in chunks.iter().enumerate() {
            if chunk.iter().fold(false, |any, weight| any | (*weight >= self.floor)) {
                pick(chunk, index * LANES, self.floor, self.picked);
            }
        }
        pick(rest, chunks.len() * LANES, self.floor, self.picked);
    }
}

#[inline(always)]
fn pick(weights: &[f32], first: usize, floor: f32, picked: &mut Picked) {
    for (offset, weight) in weights.iter().enumerate() {
        if *weight >= floor {
            picked.push(*weight, first + offset);
        }
    }
}

/// The `count`-th largest of `weights`, which are not negative, among at least `count` of them.
pub fn nth_largest(weights: &[f32], count: usize) -> f32 {
    assert!(count >= 1 && count <= weights.len(), "the {count}-th of {} weights", weights.len());
    dispatch(NthLargest { weights, count: count as u32 })
}

struct NthLargest<'a> {
    weights: &'a [f32],
    count: u32,
}

impl Kernel for NthLargest<'_> {
    type Output = f32;
    /// Bits of numbers that are not negative order as the numbers do: halve the range of bits until
    /// exactly `count` weights lie above, or one value is left.
    #[inline(always)]
    fn run(self) -> f32 {
        let bits = || self.weights.iter().map(|weight| weight.to_bits());
        let at_least = |limit: u32| bits().map(|bits| u32::from(bits >= limit)).sum::<u32>();
        let mut low = bits().fold(u32::MAX, u32::min);
        let mut high = bits().fold(0, u32::max) + 1;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let found = at_least(middle);
            if found < self.count {
                high = middle;
                continue;
            }
            low = middle;
            if found == self.count {
                break;
            }
        }
        let least = bits().map(|bits| if bits >= low { bits } else { u32::MAX }).fold(u32::MAX, u32::min);
        f32::from_bits(least)
    }
}
