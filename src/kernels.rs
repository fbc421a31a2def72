//! Loops over slices that the compiler turns into vector code, compiled for several processors.
//!
//! Each loop is written once, in plain safe Rust over chunks of [`LANES`]; [`dispatch`] picks the
//! version for the best instruction set that the running processor has. The versions agree to the
//! bit: sums keep [`LANES`] partial accumulators that are combined in a fixed order, whatever the
//! vector width. Knows nothing of traces, policies or lanes.

#[cfg(test)]
mod tests;

use crate::position::Position;

/// Number of partial accumulators, and of elements that a loop takes at a time.
pub const LANES: usize = 16;

/// A loop that can be compiled for several instruction sets.
trait Kernel {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs a loop in the version for this processor.
#[inline]
#[allow(unsafe_code)]
fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi2")
        {
            // SAFETY: every feature that the function enables was found, or is implied by one found.
            return unsafe { with_avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
        {
            // SAFETY: every feature that the function enables was found, or is implied by one found.
            return unsafe { with_avx2(kernel) };
        }
    }
    kernel.run()
}

/// Combines partial sums, always in the same order.
#[inline(always)]
fn fold(partial: &[f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    let mut sums = *partial;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// The largest f32 that is not above `threshold`: `f64(w) > threshold` holds for an f32 `w` exactly
/// when `w` is above this, so that comparisons with a share can be made in f32.
pub fn f32_not_above(threshold: f64) -> f32 {
    let nearest = threshold as f32;
    if f64::from(nearest) > threshold { nearest.next_down() } else { nearest }
}

/// What one pass over a whole row finds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RowScan {
    /// Sum of the weights.
    pub total: f64,
    /// Number of weights above the first threshold.
    pub pivotal: u32,
    /// Number of weights above the second threshold.
    pub peaks: u32,
    /// Whether every weight is a finite number that is not negative.
    pub sound: bool,
}

/// Sums a row, counts weights above two thresholds and checks that all are finite and not negative.
pub fn scan_row(row: &[f32], pivotal: f32, peak: f32) -> RowScan {
    dispatch(ScanRow { row, pivotal, peak })
}

struct ScanRow<'a> {
    row: &'a [f32],
    pivotal: f32,
    peak: f32,
}

impl Kernel for ScanRow<'_> {
    type Output = RowScan;
    #[inline(always)]
    fn run(self) -> RowScan {
        let (mut total, mut pivotal, mut peaks, mut unsound) =
            ([0.0; LANES], [0_u32; LANES], [0_u32; LANES], [0_u32; LANES]);
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                total[lane] += f64::from(chunk[lane]);
                pivotal[lane] += u32::from(chunk[lane] > self.pivotal);
                peaks[lane] += u32::from(chunk[lane] > self.peak);
                unsound[lane] |= u32::from(!(chunk[lane] >= 0.0 && chunk[lane] <= f32::MAX));
            }
        }
        for (lane, weight) in rest.iter().enumerate() {
            total[lane] += f64::from(*weight);
            pivotal[lane] += u32::from(*weight > self.pivotal);
            peaks[lane] += u32::from(*weight > self.peak);
            unsound[lane] |= u32::from(!(*weight >= 0.0 && *weight <= f32::MAX));
        }
        RowScan {
            total: fold(&total),
            pivotal: pivotal.iter().sum(),
            peaks: peaks.iter().sum(),
            sound: unsound.iter().all(|found| *found == 0),
        }
    }
}

/// Sums a row, as [`scan_row`] does.
pub fn sum(row: &[f32]) -> f64 {
    scan_row(row, 0.0, 0.0).total
}

/// Appends to `found` the weights that are at least `floor`, with their positions, in order; gives
/// up and returns false once there are more than `most`.
pub fn collect_from(row: &[f32], floor: f32, most: usize, found: &mut Vec<(f32, u32)>) -> bool {
    dispatch(CollectFrom { row, floor, most, found })
}

struct CollectFrom<'a> {
    row: &'a [f32],
    floor: f32,
    most: usize,
    found: &'a mut Vec<(f32, u32)>,
}

impl Kernel for CollectFrom<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        for (index, chunk) in chunks.iter().enumerate() {
            let mut any = false;
            for weight in chunk {
                any |= *weight >= self.floor;
            }
            if any {
                push_from(chunk, index * LANES, self.floor, self.found);
                if self.found.len() > self.most {
                    return false;
                }
            }
        }
        push_from(rest, chunks.len() * LANES, self.floor, self.found);
        self.found.len() <= self.most
    }
}

#[inline(always)]
fn push_from(weights: &[f32], first: usize, floor: f32, found: &mut Vec<(f32, u32)>) {
    for (offset, weight) in weights.iter().enumerate() {
        if *weight >= floor {
            found.push((*weight, (first + offset) as u32));
        }
    }
}

/// The thresholds of a row that a kept set is measured against.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// A weight above this is pivotal.
    pub pivotal: f32,
    /// A weight above this is a peak.
    pub peak: f32,
    /// A weight above this is heavy; one equal to it is heavy up to `heavy_last`.
    pub heavy: f32,
    /// The last heavy position among those that equal `heavy`.
    pub heavy_last: Position,
}

/// What a kept set holds of a row.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gathered {
    /// Sum of the kept weights.
    pub mass: f64,
    /// Kept pivotal positions.
    pub pivotal: u32,
    /// Kept peaks.
    pub peaks: u32,
    /// Kept heavy positions.
    pub heavy: u32,
}

/// Copies the weights at `kept` from `row` to `out`, sums them and counts the hits.
///
/// `kept` must be ascending and within the row; `out` as long as `kept`.
pub fn gather(row: &[f32], kept: &[Position], at: Thresholds, out: &mut [f32]) -> Gathered {
    assert_eq!(kept.len(), out.len(), "one weight for each kept position");
    assert!(kept.last().is_none_or(|last| last.index() < row.len()), "every kept position lies in the row");
    dispatch(Gather { row, kept, at, out })
}

struct Gather<'a> {
    row: &'a [f32],
    kept: &'a [Position],
    at: Thresholds,
    out: &'a mut [f32],
}

/// Running counts of [`Gather`], one for each lane.
struct Counts {
    mass: [f64; LANES],
    pivotal: [u32; LANES],
    peaks: [u32; LANES],
    heavy: [u32; LANES],
}

impl Counts {
    #[inline(always)]
    fn add(&mut self, lane: usize, weight: f32, position: Position, at: &Thresholds) {
        self.mass[lane] += f64::from(weight);
        self.pivotal[lane] += u32::from(weight > at.pivotal);
        self.peaks[lane] += u32::from(weight > at.peak);
        let tied = (weight == at.heavy) & (position.0 <= at.heavy_last.0);
        self.heavy[lane] += u32::from((weight > at.heavy) | tied);
    }
}

impl Kernel for Gather<'_> {
    type Output = Gathered;
    #[inline(always)]
    fn run(self) -> Gathered {
        let mut counts = Counts { mass: [0.0; LANES], pivotal: [0; LANES], peaks: [0; LANES], heavy: [0; LANES] };
        let (kept, kept_rest) = self.kept.as_chunks::<LANES>();
        let (out, out_rest) = self.out.as_chunks_mut::<LANES>();
        for (kept, out) in kept.iter().zip(out) {
            copy_weights(self.row, kept, out);
            for lane in 0..LANES {
                counts.add(lane, out[lane], kept[lane], &self.at);
            }
        }
        for (lane, (position, weight)) in kept_rest.iter().zip(out_rest).enumerate() {
            *weight = self.row[position.index()];
            counts.add(lane, *weight, *position, &self.at);
        }
        Gathered {
            mass: fold(&counts.mass),
            pivotal: counts.pivotal.iter().sum(),
            peaks: counts.peaks.iter().sum(),
            heavy: counts.heavy.iter().sum(),
        }
    }
}

/// Most kept sets are made of long runs: a run is one copy.
#[inline(always)]
fn copy_weights(row: &[f32], kept: &[Position; LANES], out: &mut [f32; LANES]) {
    let first = kept[0].index();
    if kept[LANES - 1].index() == first + LANES - 1 {
        out.copy_from_slice(&row[first..first + LANES]);
    } else {
        for lane in 0..LANES {
            out[lane] = row[kept[lane].index()];
        }
    }
}

/// Adds one to `votes[i]` where `weights[i]` is above `threshold`.
pub fn count_above(votes: &mut [u32], weights: &[f32], threshold: f32) {
    dispatch(CountAbove { votes, weights, threshold });
}

struct CountAbove<'a> {
    votes: &'a mut [u32],
    weights: &'a [f32],
    threshold: f32,
}

impl Kernel for CountAbove<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (vote, weight) in self.votes.iter_mut().zip(self.weights) {
            *vote += u32::from(*weight > self.threshold);
        }
    }
}

/// Adds `weights[i]` to `scores[i]`.
pub fn accumulate(scores: &mut [f64], weights: &[f32]) {
    dispatch(Accumulate { scores, weights });
}

struct Accumulate<'a> {
    scores: &'a mut [f64],
    weights: &'a [f32],
}

impl Kernel for Accumulate<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (score, weight) in self.scores.iter_mut().zip(self.weights) {
            *score += f64::from(*weight);
        }
    }
}

/// The index of the lowest value, the first of those that tie; `None` where there is none.
///
/// No value may be NaN.
pub fn lowest<T: PartialOrd + Copy>(values: &[T]) -> Option<usize> {
    dispatch(Lowest { values })
}

struct Lowest<'a, T> {
    values: &'a [T],
}

impl<T: PartialOrd + Copy> Kernel for Lowest<'_, T> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let mut least = [*self.values.first()?; LANES];
        let (chunks, rest) = self.values.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                least[lane] = if chunk[lane] < least[lane] { chunk[lane] } else { least[lane] };
            }
        }
        let lower = |a: T, b: T| if b < a { b } else { a };
        let least = rest.iter().copied().fold(least.into_iter().reduce(lower)?, lower);
        first_equal(self.values, least)
    }
}

#[inline(always)]
fn first_equal<T: PartialOrd + Copy>(values: &[T], wanted: T) -> Option<usize> {
    let (chunks, _) = values.as_chunks::<LANES>();
    let holds = |chunk: &[T; LANES]| chunk.iter().fold(false, |found, value| found | (*value == wanted));
    let start = chunks.iter().position(holds).unwrap_or(chunks.len()) * LANES;
    values[start..].iter().position(|value| *value == wanted).map(|offset| start + offset)
}

/// Writes to `pooled[i]` the maximum of the `values` up to `reach` places away from `i`, clamped at
/// the ends. No value may be NaN.
pub fn pool_max(values: &[f64], reach: usize, pooled: &mut Vec<f64>) {
    dispatch(PoolMax { values, reach, pooled });
}

struct PoolMax<'a> {
    values: &'a [f64],
    reach: usize,
    pooled: &'a mut Vec<f64>,
}

impl Kernel for PoolMax<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (values, len) = (self.values, self.values.len());
        self.pooled.clear();
        self.pooled.extend_from_slice(values);
        for distance in 1..=self.reach.min(len.saturating_sub(1)) {
            raise(&mut self.pooled[distance..], &values[..len - distance]);
            raise(&mut self.pooled[..len - distance], &values[distance..]);
        }
    }
}

#[inline(always)]
fn raise(pooled: &mut [f64], values: &[f64]) {
    for (pooled, value) in pooled.iter_mut().zip(values) {
        *pooled = if *value > *pooled { *value } else { *pooled };
    }
}
