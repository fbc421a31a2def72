//! Loops over rings of rows: their sums slot by slot, and the maximum over neighbours.

use super::{Kernel, LANES, dispatch};
use std::ops::Deref;

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
