//! Loops over slices that the compiler turns into vector code, compiled for several processors.
//!
//! Each loop is written once, in plain safe Rust over chunks of [`LANES`]; `dispatch` picks the
//! version for the best instruction set that the running processor has. The versions agree to the
//! bit: sums keep [`LANES`] partial accumulators that are combined in a fixed order, whatever the
//! vector width. The two loops that see every weight of a row or every slot of a lane have a twin in
//! `avx512`, written with that instruction set's own operations. Knows nothing of traces, policies
//! or lanes.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod tests;

use crate::position::Position;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use std::ops::Deref;

/// Number of partial accumulators, and of elements that a loop takes at a time.
pub const LANES: usize = 16;

/// Whether this processor has the 512-bit instructions that [`avx512`] uses.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
}

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
        if has_avx512() {
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
    weights: Vec<f32>,
    positions: Vec<u32>,
    len: usize,
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
    fn start(&mut self, row_len: usize) {
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

fn scan_row_portably(row: &[f32], limits: RowLimits, picked: &mut Picked) -> RowScan {
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

/// What the kept weights of a row are compared with.
#[derive(Clone, Copy, Debug)]
pub struct KeptLimits {
    /// A weight above this is pivotal.
    pub pivotal: f32,
    /// A weight above this is heavy.
    pub heavy: f32,
}

/// What a kept set holds of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gathered {
    /// Sum of the kept weights.
    pub mass: f64,
    /// Number of kept pivotal positions.
    pub pivotal: u32,
    /// Number of kept weights above the limit of heavy ones.
    pub heavy: u32,
}

/// Copies the weights at `kept` from `row` to `out`, sums them and compares them with the limits.
///
/// `kept` must be ascending and within the row; `out` as long as `kept`.
pub fn gather(row: &[f32], kept: &[Position], limits: KeptLimits, out: &mut [f32]) -> Gathered {
    assert_eq!(kept.len(), out.len(), "one weight for each kept position");
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::gather(row, kept, limits, out);
    }
    gather_portably(row, kept, limits, out)
}

/// As [`gather`], for a policy that does not look at the weights.
pub fn measure(row: &[f32], kept: &[Position], limits: KeptLimits, scratch: &mut [f32]) -> Gathered {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::measure(row, kept, limits);
    }
    gather(row, kept, limits, scratch)
}

fn gather_portably(row: &[f32], kept: &[Position], limits: KeptLimits, out: &mut [f32]) -> Gathered {
    dispatch(CopyKept { row, kept, out });
    Gathered { mass: sum(out), pivotal: count_over(out, limits.pivotal), heavy: count_over(out, limits.heavy) }
}

struct CopyKept<'a> {
    row: &'a [f32],
    kept: &'a [Position],
    out: &'a mut [f32],
}

impl Kernel for CopyKept<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (kept, kept_rest) = self.kept.as_chunks::<LANES>();
        let (out, out_rest) = self.out.as_chunks_mut::<LANES>();
        for (kept, out) in kept.iter().zip(out) {
            copy_weights(self.row, kept, out);
        }
        for (position, weight) in kept_rest.iter().zip(out_rest) {
            *weight = self.row[position.index()];
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

/// Widens weights that are stored as f16, given as bits; one for each place in `out`.
pub fn widen_f16(bits: &[u16], out: &mut [f32]) {
    assert_eq!(bits.len(), out.len(), "one place for each weight");
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::widen_f16(bits, out);
    }
    bits.reinterpret_cast::<f16>().convert_to_f32_slice(out);
}

/// Widens weights that are stored as bf16, given as bits: the upper half of an f32.
pub fn widen_bf16(bits: &[u16], out: &mut [f32]) {
    assert_eq!(bits.len(), out.len(), "one place for each weight");
    dispatch(WidenBf16 { bits, out });
}

struct WidenBf16<'a> {
    bits: &'a [u16],
    out: &'a mut [f32],
}

impl Kernel for WidenBf16<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (bits, weight) in self.bits.iter().zip(self.out) {
            *weight = f32::from_bits(u32::from(*bits) << 16);
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

/// A figure that slots are judged by.
pub trait Figure: Copy + PartialOrd {
    /// The least of some values, none of them NaN; `None` where there is none.
    fn least(values: &[Self]) -> Option<Self>;
}

impl Figure for u32 {
    #[inline(always)]
    fn least(values: &[u32]) -> Option<u32> {
        values.iter().copied().min()
    }
}

impl Figure for f32 {
    #[inline(always)]
    fn least(values: &[f32]) -> Option<f32> {
        least_of_floats(values)
    }
}

impl Figure for f64 {
    #[inline(always)]
    fn least(values: &[f64]) -> Option<f64> {
        least_of_floats(values)
    }
}

#[inline(always)]
fn least_of_floats<T: Copy + PartialOrd>(values: &[T]) -> Option<T> {
    let smaller = |a: T, b: T| if b < a { b } else { a };
    let mut least = [*values.first()?; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            least[lane] = smaller(least[lane], chunk[lane]);
        }
    }
    least.into_iter().chain(rest.iter().copied()).reduce(smaller)
}

/// The index of the lowest value, the first of those that tie; `None` where there is none.
///
/// No value may be NaN.
pub fn lowest<T: Figure>(values: &[T]) -> Option<usize> {
    dispatch(Lowest { values })
}

struct Lowest<'a, T> {
    values: &'a [T],
}

impl<T: Figure> Kernel for Lowest<'_, T> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let least = T::least(self.values)?;
        first_equal(self.values, least)
    }
}

#[inline(always)]
fn first_equal<T: Figure>(values: &[T], wanted: T) -> Option<usize> {
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
    /// Maxima over windows twice as wide come from two windows side by side; the last two may
    /// overlap, which changes no maximum.
    #[inline(always)]
    fn run(self) {
        let len = self.values.len();
        let reach = self.reach.min(len);
        let window = 2 * reach + 1;
        self.pooled.clear();
        self.pooled.resize(reach, f64::NEG_INFINITY);
        self.pooled.extend_from_slice(self.values);
        self.pooled.resize(len + 2 * reach, f64::NEG_INFINITY);
        let mut width = 1;
        while width < window {
            let shift = width.min(window - width);
            raise(self.pooled, shift);
            width += shift;
        }
        self.pooled.truncate(len);
    }
}

/// Raises each value to the one `shift` places after it.
#[inline(always)]
fn raise(values: &mut [f64], shift: usize) {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let end = values.len().saturating_sub(shift);
    let whole = end - end % LANES;
    for start in (0..whole).step_by(LANES) {
        let own: [f64; LANES] = values[start..start + LANES].try_into().expect("a whole chunk");
        let after: [f64; LANES] = values[start + shift..start + shift + LANES].try_into().expect("a whole chunk");
        let raised: [f64; LANES] = std::array::from_fn(|lane| larger(own[lane], after[lane]));
        values[start..start + LANES].copy_from_slice(&raised);
    }
    for index in whole..end {
        values[index] = larger(values[index], values[index + shift]);
    }
}

/// Writes to `sums[i]` the sum of `rows[..][i]`, added in the order of the rows.
///
/// Every row must be as long as `sums`.
pub fn add_rows<R: Deref<Target = [f32]>>(rows: &[R], sums: &mut [f64]) {
    sums.fill(0.0);
    dispatch(AddRows { rows, sums });
}

struct AddRows<'a, R> {
    rows: &'a [R],
    sums: &'a mut [f64],
}

impl<R: Deref<Target = [f32]>> Kernel for AddRows<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (chunks, rest) = self.sums.as_chunks_mut::<LANES>();
        let whole = chunks.len() * LANES;
        for (index, chunk) in chunks.iter_mut().enumerate() {
            let mut sums = *chunk;
            for row in self.rows {
                let weights = &row[index * LANES..(index + 1) * LANES];
                for lane in 0..LANES {
                    sums[lane] += f64::from(weights[lane]);
                }
            }
            *chunk = sums;
        }
        for (index, sum) in rest.iter_mut().enumerate() {
            self.rows.iter().for_each(|row| *sum += f64::from(row[whole + index]));
        }
    }
}

/// Whether sums of few such weights are exact in f64, whatever their order: each is 0 or lies
/// between 2^-24 and 2, so that all are multiples of 2^-47.
pub fn add_exactly(weights: &[f32]) -> bool {
    dispatch(AddExactly { weights })
}

struct AddExactly<'a> {
    weights: &'a [f32],
}

impl Kernel for AddExactly<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        const LEAST: f32 = 1.0 / (1 << 24) as f32;
        let fits = |weight: &f32| (*weight == 0.0) | ((*weight >= LEAST) & (*weight < 2.0));
        self.weights.iter().fold(0, |off, weight| off | u32::from(!fits(weight))) == 0
    }
}

/// Replaces `old` by `new` and adds the differences to `sums`.
pub fn replace(sums: &mut [f64], old: &mut [f32], new: &[f32]) {
    assert!(sums.len() == new.len() && old.len() == new.len(), "one sum, old and new weight for each slot");
    dispatch(Replace { sums, old, new });
}

struct Replace<'a> {
    sums: &'a mut [f64],
    old: &'a mut [f32],
    new: &'a [f32],
}

impl Kernel for Replace<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((sum, old), new) in self.sums.iter_mut().zip(self.old).zip(self.new) {
            *sum += f64::from(*new) - f64::from(*old);
            *old = *new;
        }
    }
}
