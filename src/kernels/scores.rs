//! Loops over the scores of slots: votes, scores, and which is the lowest.

use super::{Kernel, LANES, dispatch};

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

/// Sets `marks[i]` to `mark` where `weights[i]` is above `threshold`.
pub fn mark_above(marks: &mut [u32], weights: &[f32], threshold: f32, mark: u32) {
    dispatch(MarkAbove { marks, weights, threshold, mark });
}

struct MarkAbove<'a> {
    marks: &'a mut [u32],
    weights: &'a [f32],
    threshold: f32,
    mark: u32,
}

impl Kernel for MarkAbove<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (mark, weight) in self.marks.iter_mut().zip(self.weights) {
            *mark = if *weight > self.threshold { self.mark } else { *mark };
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

/// A score that slots are judged by.
pub trait Score: Copy + PartialOrd {
    /// The least of some values, none of them NaN; `None` where there is none.
    fn least(values: &[Self]) -> Option<Self>;

    /// The value as a number that holds it exactly.
    fn as_f64(self) -> f64;
}

impl Score for u32 {
    #[inline(always)]
    fn least(values: &[u32]) -> Option<u32> {
        values.iter().copied().min()
    }

    fn as_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Score for f32 {
    #[inline(always)]
    fn least(values: &[f32]) -> Option<f32> {
        least_of_floats(values)
    }

    fn as_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Score for f64 {
    #[inline(always)]
    fn least(values: &[f64]) -> Option<f64> {
        least_of_floats(values)
    }

    fn as_f64(self) -> f64 {
        self
    }
}

/// What is left of whole chunks is looked at with the last values as one more chunk: seeing a value twice does
/// no harm, and a chunk takes no longer than one value.
#[inline(always)]
fn least_of_floats<T: Copy + PartialOrd>(values: &[T]) -> Option<T> {
    let Some(last) = values.last_chunk::<LANES>() else { return values.iter().copied().reduce(smaller) };
    let mut least = *last;
    for chunk in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            least[lane] = smaller(least[lane], chunk[lane]);
        }
    }
    Some(least_of_chunk(least))
}

#[inline(always)]
fn smaller<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

/// A function of its own, lest the compiler choose narrow vectors for the loop before it.
#[inline(never)]
fn least_of_chunk<T: Copy + PartialOrd>(mut least: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            least[lane] = smaller(least[lane], least[lane + width]);
        }
        width /= 2;
    }
    least[0]
}

/// The index of the lowest value, the first of those that tie; `None` where there is none.
///
/// No value may be NaN.
pub fn lowest<T: Score>(values: &[T]) -> Option<usize> {
    dispatch(Lowest { values })
}

struct Lowest<'a, T> {
    values: &'a [T],
}

impl<T: Score> Kernel for Lowest<'_, T> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let least = T::least(self.values)?;
        first_equal(self.values, least)
    }
}

#[inline(always)]
fn first_equal<T: Score>(values: &[T], wanted: T) -> Option<usize> {
    let (chunks, _) = values.as_chunks::<LANES>();
    let holds = |chunk: &[T; LANES]| chunk.iter().fold(false, |found, value| found | (*value == wanted));
    let start = chunks.iter().position(holds).unwrap_or(chunks.len()) * LANES;
    values[start..].iter().position(|value| *value == wanted).map(|offset| start + offset)
}
