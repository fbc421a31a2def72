//! The weighted sum of values: what a head hands on.
//!
//! Every channel is one chain of sums in f64 over the slots, first to last. A product of two f32 is exact in f64, so
//! that it makes no difference whether it is fused, and slots of weight 0 change nothing: the same bits for a set with
//! and without them.

use super::{Kernel, dispatch};

/// Channels that are summed at a time.
const CHANNELS: usize = 32;

/// Adds up `weights[slot] * values[row_of(slot)]` into `sums`, whose length is the width of a value, and returns the
/// sum of the weights.
pub fn weighted_values(weights: &[f32], row_of: impl Fn(usize) -> usize, values: &[f32], sums: &mut [f64]) -> f64 {
    dispatch(WeightedValues { weights, row_of, values, sums })
}

struct WeightedValues<'a, R> {
    weights: &'a [f32],
    row_of: R,
    values: &'a [f32],
    sums: &'a mut [f64],
}

impl<R: Fn(usize) -> usize> Kernel for WeightedValues<'_, R> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let WeightedValues { weights, row_of, values, sums } = self;
        let width = sums.len();
        let (blocks, rest) = sums.as_chunks_mut::<CHANNELS>();
        let first_of_rest = blocks.len() * CHANNELS;
        for (block, sums) in blocks.iter_mut().enumerate() {
            let mut partial = [0.0; CHANNELS];
            for (slot, weight) in weights.iter().enumerate() {
                let start = row_of(slot) * width + block * CHANNELS;
                let value: &[f32; CHANNELS] = values[start..start + CHANNELS].try_into().expect("a whole block");
                let weight = f64::from(*weight);
                for (sum, number) in partial.iter_mut().zip(value) {
                    *sum += weight * f64::from(*number);
                }
            }
            *sums = partial;
        }
        for (at, sum) in rest.iter_mut().enumerate() {
            let number = |slot: usize| f64::from(values[row_of(slot) * width + first_of_rest + at]);
            *sum = weights.iter().enumerate().fold(0.0, |sum, (slot, weight)| sum + f64::from(*weight) * number(slot));
        }
        weights.iter().fold(0.0, |sum, weight| sum + f64::from(*weight))
    }
}
