//! From scores to the weights of a row: scale, soft cap, softmax, learned sink.
//!
//! Everything is part of the program: exp and tanh of platforms differ. A polynomial in fused multiply-adds, a sum
//! of [`LANES`] partial sums in f64 that are combined in a fixed order, one rounding at the end. The same bits on
//! every processor.

use super::simd::{Plain, Simd, SimdKernel, dispatch};
use super::{LANES, fold};

/// What is done to the scores of a query head before their softmax.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Logits {
    /// What scores are multiplied by.
    pub scale: f32,
    /// c: a scaled score x becomes `c * tanh(x / c)`.
    pub softcap: Option<f32>,
    /// A logit that takes part in the denominator and has no position: neither scaled nor capped.
    pub sink: Option<f32>,
}

/// What turns a logit x of a row into its weight: `exp(x - most) / sum`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Normalizer {
    /// The largest logit, the sink's included.
    pub most: f32,
    /// The sum of `exp(x - most)` over all logits, the sink's included.
    pub sum: f64,
}

/// Turns the scores of the positions that a row attends to into its weights.
///
/// `None` where a score or a logit is more than an f32 can hold: the numbers are then no attention, and `scores`
/// is left in any state.
pub fn softmax(scores: &mut [f32], logits: Logits) -> Option<Normalizer> {
    dispatch(Softmax { scores, logits })
}

pub(super) struct Softmax<'a> {
    pub scores: &'a mut [f32],
    pub logits: Logits,
}

impl SimdKernel for Softmax<'_> {
    type Output = Option<Normalizer>;

    #[inline(always)]
    fn run<S: Simd, const WIDE: bool>(self, simd: S) -> Option<Normalizer> {
        let Softmax { scores, logits } = self;
        let mut scale = logits.scale;
        let mut most = largest(simd, scores)? * scale;
        if let Some(cap) = logits.softcap {
            for score in &mut *scores {
                *score = capped(*score * scale, cap);
            }
            most = largest(simd, scores)?;
            scale = 1.0;
        }
        let sink = logits.sink.unwrap_or(f32::NEG_INFINITY);
        most = if most > sink { most } else { sink };
        if !most.is_finite() {
            return None;
        }
        let sum = raise(simd, scores, scale, most) + f64::from(exp_of_one(sink - most));
        divide(simd, scores, sum);
        Some(Normalizer { most, sum })
    }
}

/// The largest score; `None` where one is not finite.
#[inline(always)]
fn largest<S: Simd>(simd: S, scores: &[f32]) -> Option<f32> {
    let (mut most, mut size) = (simd.splat(f32::NEG_INFINITY), simd.splat(0.0));
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let mut last = [f32::NEG_INFINITY; LANES];
    last[..rest.len()].copy_from_slice(rest);
    for chunk in chunks {
        let chunk = simd.load(chunk);
        most = simd.larger(chunk, most);
        size = simd.larger_size(chunk, size);
    }
    let (mut mosts, mut sizes) = ([0.0; LANES], [0.0; LANES]);
    simd.store(simd.larger(simd.load(&last), most), &mut mosts);
    simd.store(size, &mut sizes);
    // What is not a number is larger than infinity here.
    let finite = sizes.iter().chain(rest).all(|size| size.is_finite());
    finite.then(|| mosts.into_iter().fold(f32::NEG_INFINITY, f32::max))
}

/// Replaces scores by `exp(scale * score - most)` and sums these.
#[inline(always)]
fn raise<S: Simd>(simd: S, scores: &mut [f32], scale: f32, most: f32) -> f64 {
    let (scale, most) = (simd.splat(scale), simd.splat(most));
    let mut sums = simd.zeros();
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        let raised = exp(simd, simd.subtract(simd.multiply(simd.load(chunk), scale), most));
        simd.store(raised, chunk);
        sums = simd.add(sums, raised);
    }
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    let raised = exp(simd, simd.subtract(simd.multiply(simd.load(&last), scale), most));
    simd.store(raised, &mut last);
    last[rest.len()..].fill(0.0);
    rest.copy_from_slice(&last[..rest.len()]);
    let mut partial = [0.0; LANES];
    simd.store_doubles(simd.add(sums, simd.load(&last)), &mut partial);
    fold(&partial)
}

/// Divides by the sum, through its reciprocal in f64 and one rounding to f32 at the end. That is the f32 next to
/// the quotient wherever the quotient is `1 / n` for an n below 2^24: none of these lies within 2^-49 of itself of
/// a number at which rounding to f32 turns, and the reciprocal and the product are off by less than 2^-51.
#[inline(always)]
fn divide<S: Simd>(simd: S, weights: &mut [f32], sum: f64) {
    let reciprocal = 1.0 / sum;
    let (chunks, rest) = weights.as_chunks_mut::<LANES>();
    for chunk in chunks {
        simd.store(simd.scale(simd.load(chunk), reciprocal), chunk);
    }
    for weight in rest {
        *weight = (f64::from(*weight) * reciprocal) as f32;
    }
}

/// The logit of one score.
pub fn logit(score: f32, logits: Logits) -> f32 {
    let scaled = score * logits.scale;
    logits.softcap.map_or(scaled, |cap| capped(scaled, cap))
}

/// Added to a number below 2^22 it leaves its nearest whole number in the low bits, 64 more than it is.
const ROUND: f32 = 1.5 * (1 << 23) as f32 + 64.0;

/// Below this exp is less than half of the least f32.
const LEAST: f32 = -120.0;

/// `2^f = 1 + f * p(f)` for f from -1/2 to 1/2: the polynomial of this degree with the least relative error, 2.6e-9,
/// and the value 1 at 0.
const EXP2: [f32; 6] = [0.693_147_24, 0.240_226_52, 0.055_503_104, 0.009_617_693, 0.001_340_664_3, 0.000_155_946_76];

/// exp of numbers that are not above 0; exactly 1 at 0. Results too small for a normal f32 are rounded once.
#[inline(always)]
fn exp<S: Simd>(simd: S, x: S::Numbers) -> S::Numbers {
    let (round, log2_e) = (simd.splat(ROUND), simd.splat(std::f32::consts::LOG2_E));
    let x = simd.larger(x, simd.splat(LEAST));
    let rounded = simd.multiply_add(x, log2_e, round);
    let part = simd.multiply_add(x, log2_e, simd.subtract(round, rounded));
    let [first @ .., last] = EXP2;
    let mut power = simd.splat(last);
    for coefficient in first.iter().rev() {
        power = simd.multiply_add(power, part, simd.splat(*coefficient));
    }
    power = simd.multiply_add(power, part, simd.splat(1.0));
    // 2^64 too large, so that it is a normal number whatever comes.
    simd.multiply(simd.raise(power, rounded), simd.splat(1.0 / (1_u128 << 64) as f32))
}

/// exp of one number that is not above 0.
pub(super) fn exp_of_one(x: f32) -> f32 {
    exp(Plain, [x; LANES])[0]
}

/// `cap * tanh(x / cap)`, rounded once.
#[inline(always)]
pub(super) fn capped(x: f32, cap: f32) -> f32 {
    let (x, cap) = (f64::from(x), f64::from(cap));
    (cap * tanh(x / cap)) as f32
}

/// To 1e-15.
#[inline(always)]
fn tanh(x: f64) -> f64 {
    let raised = exp_f64(-2.0 * x.abs());
    ((1.0 - raised) / (1.0 + raised)).copysign(x)
}

/// As [`ROUND`], without the 64.
const ROUND_F64: f64 = 1.5 * (1_u64 << 52) as f64;

/// `ln(2)^k / k!`, from k = 0 on: the series of `2^f`, good to 4e-18 for f from -1/2 to 1/2.
const SERIES: [f64; 14] = series();

const fn series() -> [f64; 14] {
    let mut terms = [1.0; 14];
    let mut k = 1;
    while k < terms.len() {
        terms[k] = terms[k - 1] * std::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    terms
}

/// exp of a number that is not above 0, in f64, the same on every platform.
pub fn exp_below_zero(x: f64) -> f64 {
    if x >= -40.0 {
        return exp_f64(x);
    }
    // The 32nd power of what is in reach: 1e-14 of itself, and 0 where f64 ends.
    let root = if x > -1280.0 { exp_f64(x / 32.0) } else { 0.0 };
    (0..5).fold(root, |power, _| power * power)
}

/// exp of a number that is not above 0, in f64; 4e-18 for anything below -40.
#[inline(always)]
fn exp_f64(x: f64) -> f64 {
    let x = if x > -40.0 { x } else { -40.0 };
    let rounded = x.mul_add(std::f64::consts::LOG2_E, ROUND_F64);
    let part = x.mul_add(std::f64::consts::LOG2_E, ROUND_F64 - rounded);
    let [first @ .., last] = SERIES;
    let power = first.iter().rev().fold(last, |sum, term| sum.mul_add(part, *term));
    f64::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 52))
}
