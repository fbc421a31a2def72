//! The power law of attention that the Scissorhands paper assumes, fitted to a stream, with what it
//! would mean for a cache.
//!
//! *The law.* Theorem 4.1 of the paper (Liu et al., NeurIPS 2023, arXiv 2305.17118) takes the weights of a
//! row to be independent draws, up to a common factor, from the density `f(x) = c (x + b)^-k` with k > 2.
//! Scaled to a mean of 1, as here, b is `k - 2` and one number is left: the exponent k.
//!
//! *The fit.* Maximum likelihood over every weight of every row of at least [`SHORTEST`] positions, each
//! row divided by its mean. Weights are counted in bins, 32 to an octave, so that a stream is read once;
//! a weight of 0 counts as 0. Rows of one sequence are not independent: the interval is from leaving out
//! one of [`BLOCKS`] stretches of rows at a time (the jackknife), two standard errors to each side.
//! *Goodness* is the largest distance between the two cumulative distributions (Kolmogorov and Smirnov): 0
//! is a perfect fit, and above [`GOOD`] the exponent describes little.
//!
//! *What it predicts.* The heaviest share q of infinitely many such draws holds
//! `R(q) = (k - 1) q^((k-2)/(k-1)) - (k - 2) q` of the mass: the mean of the Lomax distribution above its
//! quantile. What a row really holds beside it is what `oracle` retains.
//!
//! *The paper's bound* on the deviation of a layer's output, for the limit of its free ε at 0, is
//! `2.1 (1 - q) (k - (k - 1) q^(-1/(k-1)))`. It falls below 0, and so bounds nothing, where
//! `q < ((k-1)/k)^(k-1)`: at 0.44 for k = 3 and at 0.37 for the largest k. It is given as absent there.
//!
//! Logarithms and powers are the platform's: what is handed on is [`rounded`], so that machines agree.

use crate::trace::Row;
use serde::Serialize;

/// Shortest row that is counted.
pub const SHORTEST: usize = 32;

/// Stretches of rows for the interval.
pub const BLOCKS: usize = 20;

/// Largest distance of distributions that is called a good fit.
pub const GOOD: f64 = 0.1;

/// Exponents that are tried: the law needs more than 2, and beyond the largest it is an exponential.
const EXPONENTS: (f64, f64) = (2.000_1, 100.0);

/// Bits of an f32 that name its bin: the exponent and five bits behind it.
const BIN_SHIFT: u32 = 18;
const BINS: usize = 1 << (31 - BIN_SHIFT);

/// The law fitted to one stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerLaw {
    /// Weights that were counted.
    pub weights: u64,
    /// The exponent k.
    pub exponent: f64,
    /// Two standard errors below and above the exponent; absent where there are too few rows.
    pub interval: Option<(f64, f64)>,
    /// Largest distance between the fitted and the observed cumulative distribution.
    pub distance: f64,
}

impl PowerLaw {
    /// Whether the law describes the weights at all.
    pub fn is_good(&self) -> bool {
        self.distance <= GOOD
    }

    /// Share of the mass that the heaviest `share` (0 to 1) of the positions hold under the law.
    pub fn retained(&self, share: f64) -> f64 {
        retained(self.exponent, share)
    }

    /// The paper's bound on the deviation of the output where that share is kept; `None` where it is
    /// below 0 and so not a bound.
    pub fn paper_bound(&self, share: f64) -> Option<f64> {
        paper_bound(self.exponent, share)
    }
}

/// A figure to six decimals.
pub fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

/// See [`PowerLaw::retained`].
pub fn retained(exponent: f64, share: f64) -> f64 {
    if share >= 1.0 {
        return 1.0;
    }
    (exponent - 1.0) * share.powf((exponent - 2.0) / (exponent - 1.0)) - (exponent - 2.0) * share
}

/// See [`PowerLaw::paper_bound`].
pub fn paper_bound(exponent: f64, share: f64) -> Option<f64> {
    let bracket = exponent - (exponent - 1.0) * share.powf(-1.0 / (exponent - 1.0));
    (bracket >= 0.0).then_some(2.1 * (1.0 - share) * bracket)
}

/// Counts the weights of one stream.
pub(super) struct PowerLawFit {
    /// Rows of a stretch.
    stretch: usize,
    rows: usize,
    stretches: Vec<Histogram>,
}

impl PowerLawFit {
    /// For a stream over so many positions.
    pub(super) fn new(positions: usize) -> PowerLawFit {
        PowerLawFit { stretch: positions.div_ceil(BLOCKS).max(1), rows: 0, stretches: Vec::new() }
    }

    pub(super) fn add(&mut self, row: Row<'_>) {
        let total: f64 = row.weights.iter().map(|weight| f64::from(*weight)).sum();
        if row.weights.len() < SHORTEST || total <= 0.0 {
            return;
        }
        if self.rows.is_multiple_of(self.stretch) {
            self.stretches.push(Histogram::default());
        }
        self.rows += 1;
        let scale = row.weights.len() as f64 / total;
        let histogram = self.stretches.last_mut().expect("the first row began a stretch");
        row.weights.iter().for_each(|weight| histogram.count((f64::from(*weight) * scale) as f32));
    }

    /// The fit; `None` where no row was long enough or the weights do not vary.
    pub(super) fn finish(self) -> Option<PowerLaw> {
        let mut all = Histogram::default();
        self.stretches.iter().for_each(|stretch| all.add(stretch));
        let exponent = all.most_likely()?;
        Some(PowerLaw {
            weights: all.total(),
            exponent: rounded(exponent),
            interval: self.interval(&all, exponent).map(|(from, to)| (rounded(from), rounded(to))),
            distance: rounded(all.distance(exponent)),
        })
    }

    /// The jackknife over stretches.
    fn interval(&self, all: &Histogram, exponent: f64) -> Option<(f64, f64)> {
        let without = |stretch: &Histogram| {
            let mut rest = all.clone();
            rest.take(stretch);
            rest.most_likely()
        };
        let left: Vec<f64> = self.stretches.iter().filter_map(without).collect();
        if left.len() < 2 || left.len() < self.stretches.len() {
            return None;
        }
        let count = left.len() as f64;
        let mean = left.iter().sum::<f64>() / count;
        let spread: f64 = left.iter().map(|exponent| (exponent - mean).powi(2)).sum();
        let error = (spread * (count - 1.0) / count).sqrt();
        Some((exponent - 2.0 * error, exponent + 2.0 * error))
    }
}

/// How many weights lie in each bin.
#[derive(Clone)]
struct Histogram {
    bins: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { bins: vec![0; BINS] }
    }
}

impl Histogram {
    /// Counts a weight, which is not negative.
    fn count(&mut self, weight: f32) {
        self.bins[(weight.to_bits() >> BIN_SHIFT) as usize & (BINS - 1)] += 1;
    }

    fn add(&mut self, other: &Histogram) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, other)| *bin += other);
    }

    fn take(&mut self, other: &Histogram) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, other)| *bin -= other);
    }

    fn total(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The middle weight and the count of every bin that has any, ascending.
    fn filled(&self) -> impl Iterator<Item = (f64, u64)> {
        let middle = |bin: usize| {
            let edge = |bin: usize| f64::from(f32::from_bits((bin as u32) << BIN_SHIFT));
            if bin == 0 { 0.0 } else { (edge(bin) + edge(bin + 1)) / 2.0 }
        };
        self.bins.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(bin, count)| (middle(bin), *count))
    }

    /// The exponent of the greatest likelihood, found by thirds; `None` where all weights share a bin.
    fn most_likely(&self) -> Option<f64> {
        let filled: Vec<(f64, u64)> = self.filled().collect();
        if filled.len() < 2 {
            return None;
        }
        let likelihood = |log: f64| log_likelihood(&filled, 2.0 + log.exp());
        let (mut low, mut high) = ((EXPONENTS.0 - 2.0).ln(), (EXPONENTS.1 - 2.0).ln());
        for _ in 0..60 {
            let third = (high - low) / 3.0;
            if likelihood(low + third) < likelihood(high - third) { low += third } else { high -= third }
        }
        Some(2.0 + ((low + high) / 2.0).exp())
    }

    fn distance(&self, exponent: f64) -> f64 {
        let total = self.total() as f64;
        let mut below = 0.0;
        let mut most: f64 = 0.0;
        for (weight, count) in self.filled() {
            let law = 1.0 - (1.0 + weight / (exponent - 2.0)).powf(1.0 - exponent);
            let middle = (below + count as f64 / 2.0) / total;
            most = most.max((law - middle).abs());
            below += count as f64;
        }
        most
    }
}

/// The log of the likelihood of binned weights of mean 1, less a constant.
fn log_likelihood(filled: &[(f64, u64)], exponent: f64) -> f64 {
    let scale = exponent - 2.0;
    let density = ((exponent - 1.0) / scale).ln();
    filled.iter().map(|(weight, count)| *count as f64 * (density - exponent * (1.0 + weight / scale).ln())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;
    use crate::trace::rng::Xoshiro128;

    /// Rows of draws from the law, by the inverse of its distribution.
    fn drawn(exponent: f64, rows: usize, length: usize) -> Vec<Vec<f32>> {
        let mut random = Xoshiro128::new(11);
        let mut draw = || {
            let uniform = (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
            ((exponent - 2.0) * (uniform.powf(-1.0 / (exponent - 1.0)) - 1.0)) as f32
        };
        (0..rows).map(|_| (0..length).map(|_| draw()).collect()).collect()
    }

    fn fit(rows: &[Vec<f32>]) -> PowerLaw {
        let mut fit = PowerLawFit::new(rows.len());
        for (step, weights) in rows.iter().enumerate() {
            fit.add(Row { step: Position(step as u32), weights });
        }
        fit.finish().expect("rows that vary")
    }

    /// The share of the mass on the heaviest share of the positions, mean over rows.
    fn really_retained(rows: &[Vec<f32>], share: f64) -> f64 {
        let of_row = |row: &Vec<f32>| {
            let mut sorted: Vec<f64> = row.iter().map(|weight| f64::from(*weight)).collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let total: f64 = sorted.iter().sum();
            sorted[..(share * row.len() as f64) as usize].iter().sum::<f64>() / total
        };
        rows.iter().map(of_row).sum::<f64>() / rows.len() as f64
    }

    #[test]
    fn a_law_that_was_drawn_from_is_found_again_and_predicts_what_is_retained() {
        for exponent in [3.5, 5.0, 8.0] {
            let rows = drawn(exponent, 200, 2000);
            let law = fit(&rows);
            assert!(law.is_good() && law.distance < 0.01, "{law:?}");
            // Rows are divided by their own mean, which for a heavy tail moves the exponent a little.
            assert!((law.exponent - exponent).abs() < 0.05 * exponent, "{law:?} of {exponent}");
            let (low, high) = law.interval.expect("twenty stretches");
            assert!(low < law.exponent && law.exponent < high, "{law:?}");
            for share in [0.1, 0.2, 0.5] {
                let (said, found) = (law.retained(share), really_retained(&rows, share));
                assert!((said - found).abs() < 0.01, "{exponent} at {share}: {said} for {found}");
            }
        }
    }

    #[test]
    fn the_formulas_give_what_is_known_of_them() {
        assert!((retained(3.0, 0.2) - 0.694_427).abs() < 1e-6, "1 - (1 - sqrt(q))^2");
        assert_eq!((retained(3.0, 1.0), retained(3.0, 0.0)), (1.0, 0.0));
        assert_eq!(paper_bound(3.0, 1.0), Some(0.0));
        assert_eq!(paper_bound(3.0, 0.2), None, "below 0.444 the printed bound is negative");
        assert!(paper_bound(3.0, 0.445).is_some() && paper_bound(3.0, 0.444).is_none());
    }

    #[test]
    fn weights_of_another_law_are_said_to_fit_badly() {
        let two_kinds: Vec<Vec<f32>> =
            (0..60).map(|_| (0..400).map(|at| if at % 4 == 0 { 3.99 } else { 0.003 }).collect()).collect();
        let law = fit(&two_kinds);
        assert!(!law.is_good(), "{law:?}");
    }

    #[test]
    fn rows_without_variation_or_length_have_no_exponent() {
        let even = PowerLawFit::new(10);
        assert_eq!(even.finish(), None);
        let mut even = PowerLawFit::new(100);
        even.add(Row { step: Position(0), weights: &[0.5; 64] });
        even.add(Row { step: Position(1), weights: &[1.0; SHORTEST - 1] });
        even.add(Row { step: Position(2), weights: &[0.0; 64] });
        assert_eq!(even.finish(), None);
    }
}
