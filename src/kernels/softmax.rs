//! From scores to the weights of a row: scale, soft cap, softmax, learned sink.
//!
//! Everything is part of the program: exp and tanh of platforms differ. A polynomial in fused multiply-adds, a sum
//! of [`LANES`] partial sums in f64 that are combined in a fixed order, one rounding at the end. The same bits on
//! every processor.

use super::{Kernel, LANES, dispatch, fold};

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

impl Kernel for Softmax<'_> {
    type Output = Option<Normalizer>;

    #[inline(always)]
    fn run(self) -> Option<Normalizer> {
        let Softmax { scores, logits } = self;
        let mut scale = logits.scale;
        let mut most = largest(scores)? * scale;
        if let Some(cap) = logits.softcap {
            scores.iter_mut().for_each(|score| *score = capped(*score * scale, cap));
            most = largest(scores)?;
            scale = 1.0;
        }
        most = logits.sink.map_or(most, |sink| larger(most, sink));
        if !most.is_finite() {
            return None;
        }
        let sink = logits.sink.map_or(0.0, |sink| f64::from(exp(sink - most)));
        let sum = raise(scores, scale, most) + sink;
        divide(scores, sum);
        Some(Normalizer { most, sum })
    }
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The largest score; `None` where one is not finite.
#[inline(always)]
fn largest(scores: &[f32]) -> Option<f32> {
    let (mut most, mut sizes) = ([f32::NEG_INFINITY; LANES], [0_u32; LANES]);
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let size = |score: f32| score.to_bits() & !(1 << 31);
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = larger(chunk[lane], most[lane]);
            sizes[lane] = sizes[lane].max(size(chunk[lane]));
        }
    }
    for (lane, score) in rest.iter().enumerate() {
        most[lane] = larger(*score, most[lane]);
        sizes[lane] = sizes[lane].max(size(*score));
    }
    // What is no number has more bits set than infinity.
    let finite = sizes.into_iter().all(|size| size < f32::INFINITY.to_bits());
    finite.then(|| most.into_iter().fold(f32::NEG_INFINITY, larger))
}

/// Replaces scores by `exp(scale * score - most)` and sums these.
#[inline(always)]
fn raise(scores: &mut [f32], scale: f32, most: f32) -> f64 {
    let mut partial = [0.0; LANES];
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            chunk[lane] = exp(chunk[lane] * scale - most);
        }
        for lane in 0..LANES {
            partial[lane] += f64::from(chunk[lane]);
        }
    }
    for (score, partial) in rest.iter_mut().zip(&mut partial) {
        *score = exp(*score * scale - most);
        *partial += f64::from(*score);
    }
    fold(&partial)
}

/// Divides by the sum, through its reciprocal in f64 and one rounding to f32 at the end. That is the f32 next to
/// the quotient wherever the quotient is `1 / n` for an n below 2^24: none of these lies within 2^-49 of itself of
/// a number at which rounding to f32 turns, and the reciprocal and the product are off by less than 2^-51.
#[inline(always)]
fn divide(weights: &mut [f32], sum: f64) {
    let reciprocal = 1.0 / sum;
    for weight in weights {
        *weight = (f64::from(*weight) * reciprocal) as f32;
    }
}

/// Added to a number below 2^22 it leaves its nearest whole number in the low bits, 64 more than it is.
const ROUND: f32 = 1.5 * (1 << 23) as f32 + 64.0;

/// Below this exp is less than half of the least f32.
const LEAST: f32 = -120.0;

/// `2^f = 1 + f * p(f)` for f from -1/2 to 1/2: the polynomial of this degree with the least relative error, 2.6e-9,
/// and the value 1 at 0.
const EXP2: [f32; 6] = [0.693_147_24, 0.240_226_52, 0.055_503_104, 0.009_617_693, 0.001_340_664_3, 0.000_155_946_76];

/// exp of a number that is not above 0; exactly 1 at 0. Results too small for a normal f32 are rounded once.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = larger(x, LEAST);
    let rounded = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let part = x.mul_add(std::f32::consts::LOG2_E, ROUND - rounded);
    let power = horner(part);
    // 2^64 too large, so that it is a normal number whatever comes.
    let raised = f32::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 23));
    raised * (1.0 / (1_u128 << 64) as f32)
}

/// `1 + f * p(f)`.
#[inline(always)]
fn horner(f: f32) -> f32 {
    let [first @ .., last] = EXP2;
    first.iter().rev().fold(last, |sum, coefficient| sum.mul_add(f, *coefficient)).mul_add(f, 1.0)
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

/// exp of a number that is not above 0, in f64; 2e-18 for anything below -40.
#[inline(always)]
fn exp_f64(x: f64) -> f64 {
    let x = if x > -40.0 { x } else { -40.0 };
    let rounded = x.mul_add(std::f64::consts::LOG2_E, ROUND_F64);
    let part = x.mul_add(std::f64::consts::LOG2_E, ROUND_F64 - rounded);
    let [first @ .., last] = SERIES;
    let power = first.iter().rev().fold(last, |sum, term| sum.mul_add(part, *term));
    f64::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 52))
}
