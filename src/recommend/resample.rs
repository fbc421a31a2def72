//! Bootstrap: what is drawn again and again, and the intervals that come of it.
//!
//! Of several traces, traces are drawn; of one, blocks of consecutive rows, since rows near each other are
//! alike; of a sample of caches, caches too. Every lane gets the same draws, so that differences are of pairs.
//! The draws are those of a fixed seed.

use super::sums::{Figure, RowSums};
use crate::trace::rng::Xoshiro128;

/// Draws of a bootstrap.
const DRAWS: usize = 1000;

/// The seed of all draws.
const SEED: u32 = 14;

/// What is drawn, from the outside in; each counts at least 1, and 1 is never drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Units {
    pub traces: usize,
    pub caches: usize,
    pub blocks: usize,
}

/// How often each unit was drawn, draw by draw.
pub(super) struct Resamples {
    times: Vec<Vec<f64>>,
}

/// An interval that holds 95 % of what was drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Resamples {
    pub(super) fn new(units: Units) -> Resamples {
        let mut random = Xoshiro128::new(SEED);
        Resamples { times: (0..DRAWS).map(|_| draw(units, &mut random)).collect() }
    }

    /// The figure of units in each draw.
    pub(super) fn values(&self, units: &[RowSums], figure: Figure) -> Vec<f64> {
        let value = |times: &Vec<f64>| {
            let mut sum = RowSums::default();
            units.iter().zip(times).filter(|(_, times)| **times > 0.0).for_each(|(unit, times)| sum.add(unit, *times));
            figure.of(&sum)
        };
        self.times.iter().map(value).collect()
    }
}

/// One draw: how often each unit comes up, by trace, then cache, then block.
fn draw(units: Units, random: &mut Xoshiro128) -> Vec<f64> {
    let traces = draw_of(units.traces, random);
    let mut times = Vec::with_capacity(units.traces * units.caches * units.blocks);
    for of_trace in traces {
        let (caches, blocks) = (draw_of(units.caches, random), draw_of(units.blocks, random));
        for of_cache in caches {
            times.extend(blocks.iter().map(|of_block| of_trace * of_cache * of_block));
        }
    }
    times
}

/// One less than there are, with replacement: then the spread of means is that of the mean of all, which is
/// too small where as many are drawn.
fn draw_of(count: usize, random: &mut Xoshiro128) -> Vec<f64> {
    if count == 1 {
        return vec![1.0];
    }
    let mut times = vec![0.0; count];
    (1..count).for_each(|_| times[random.below(count as u32) as usize] += 1.0);
    times
}

impl Interval {
    /// The interval of what was drawn.
    pub(super) fn of(mut values: Vec<f64>) -> Interval {
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        let beyond = values.len() / 40;
        Interval { low: values[beyond.min(last)], high: values[last - beyond.min(last)] }
    }

    /// The half of its width that is longer, seen from a value in it.
    pub fn reach(self, value: f64) -> f64 {
        (value - self.low).max(self.high - value).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(values: &[f64]) -> Vec<RowSums> {
        let unit = |lost: &f64| RowSums { rows: 1.0, total: 1.0, retained: 1.0 - lost, ..RowSums::default() };
        values.iter().map(unit).collect()
    }

    #[test]
    fn the_interval_of_a_mean_is_twice_its_standard_error_to_each_side() {
        let units: Vec<f64> = (0..64).map(|unit| f64::from(unit % 2)).collect();
        let resamples = Resamples::new(Units { traces: 1, caches: 1, blocks: 64 });
        let interval = Interval::of(resamples.values(&lost(&units), Figure::LostMass));
        let reach = 1.96 * 0.5 / 63_f64.sqrt();
        assert!((interval.low - (0.5 - reach)).abs() < 0.03, "{interval:?}");
        assert!((interval.high - (0.5 + reach)).abs() < 0.03, "{interval:?}");
    }

    #[test]
    fn what_is_one_is_never_drawn_and_equal_units_have_no_spread() {
        let resamples = Resamples::new(Units { traces: 1, caches: 1, blocks: 1 });
        assert_eq!(resamples.values(&lost(&[0.25]), Figure::LostMass), [0.25; DRAWS]);
        let resamples = Resamples::new(Units { traces: 2, caches: 3, blocks: 4 });
        let interval = Interval::of(resamples.values(&lost(&[0.25; 24]), Figure::LostMass));
        assert_eq!((interval.low, interval.high), (0.25, 0.25));
    }
}
