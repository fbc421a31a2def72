//! Where the attention of a stream goes: to the first positions, to a few heavy ones, to the newest,
//! to the token itself; and how many positions it is really spread over.
//!
//! Shares are shares of all mass: the sum of all weights of all rows. What is measured per row counts
//! each row once, however much mass it has; rows without mass are left out. Knows rows; no policies.

use crate::trace::{Row, SelfAttention, TraceInfo};
use serde::Serialize;

/// Positions from the start that count as first: where sinks are expected.
const FIRST: usize = 4;

/// A position with more than this share of all mass is heavy.
const HEAVY: f64 = 0.05;

/// Where the attention of one stream goes.
#[derive(Debug, Clone, Serialize)]
pub struct LocalityFigures {
    /// Rows with mass.
    pub rows: u64,
    /// Share of all mass on the first four positions.
    pub first_4: Option<f64>,
    /// Share of all mass that tokens pay to themselves; absent where rows exclude it.
    pub on_self: Option<f64>,
    /// The median over rows of the number of newest positions that hold 90 % of what the row pays to
    /// positions other than the first four; rows that pay nothing there are left out.
    pub local_90: Option<f64>,
    /// The mean over rows of exp(entropy), in positions: a row that is even over k positions counts k.
    /// The entropy is that of the row divided by its sum, in nats.
    pub effective_size: Option<f64>,
    /// Positions with more than 5 % of all mass, ascending.
    pub heavy: Vec<HeavyPosition>,
}

/// A position with a large share of all mass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeavyPosition {
    /// The position.
    pub position: usize,
    /// Its share of all mass.
    pub share: f64,
}

/// Reads the rows of one stream.
pub(super) struct Locality {
    kind: SelfAttention,
    rows: u64,
    /// What each position got.
    columns: Vec<f64>,
    on_self: f64,
    effective: f64,
    /// How many rows have a local band of this width.
    widths: Vec<u64>,
}

impl Locality {
    pub(super) fn new(info: &TraceInfo) -> Locality {
        let positions = info.reached();
        Locality {
            kind: info.self_attention,
            rows: 0,
            columns: vec![0.0; positions],
            on_self: 0.0,
            effective: 0.0,
            widths: vec![0; positions + 1],
        }
    }

    pub(super) fn add(&mut self, Row { step, weights }: Row<'_>) {
        let total = sum(weights);
        if total <= 0.0 {
            return;
        }
        self.rows += 1;
        self.on_self += sum(weights.get(step.index()..).unwrap_or(&[]));
        self.effective += effective_size(weights, total);
        self.columns.iter_mut().zip(weights).for_each(|(column, weight)| *column += f64::from(*weight));
        if let Some(width) = local_width(weights.get(FIRST..).unwrap_or(&[])) {
            self.widths[width] += 1;
        }
    }

    pub(super) fn finish(self) -> LocalityFigures {
        let total: f64 = self.columns.iter().sum();
        let share = |part: f64| (total > 0.0).then(|| part / total);
        let heavy = |(position, column): (usize, &f64)| {
            share(*column).filter(|share| *share > HEAVY).map(|share| HeavyPosition { position, share })
        };
        LocalityFigures {
            rows: self.rows,
            first_4: share(self.columns.iter().take(FIRST).sum()),
            on_self: share(self.on_self).filter(|_| self.kind == SelfAttention::Included),
            local_90: median(&self.widths),
            effective_size: (self.rows > 0).then(|| self.effective / self.rows as f64),
            heavy: self.columns.iter().enumerate().filter_map(heavy).collect(),
        }
    }
}

fn sum(weights: &[f32]) -> f64 {
    weights.iter().map(|weight| f64::from(*weight)).sum()
}

/// exp(entropy) of the weights divided by their sum: with w = p x total, the entropy is
/// ln(total) - sum(w ln w) / total.
fn effective_size(weights: &[f32], total: f64) -> f64 {
    let held = weights.iter().map(|weight| f64::from(*weight)).filter(|weight| *weight > 0.0);
    let information: f64 = held.map(|weight| weight * weight.ln()).sum();
    (total.ln() - information / total).exp()
}

/// The least number of last weights that hold nine tenths of the sum; `None` where that is 0.
fn local_width(weights: &[f32]) -> Option<usize> {
    // Summed from the newest on, both times, so that the last sum is the total itself.
    let newest = || {
        weights.iter().rev().scan(0.0, |sum, weight| {
            *sum += f64::from(*weight);
            Some(*sum)
        })
    };
    let total = newest().last().filter(|total| *total > 0.0)?;
    newest().position(|held| 10.0 * held >= 9.0 * total).map(|before| before + 1)
}

/// The median of values counted by value: the mean of the middle two where they are even in number.
fn median(counts: &[u64]) -> Option<f64> {
    let values: u64 = counts.iter().sum();
    let middle = |rank: u64| {
        let mut seen = 0;
        counts.iter().position(|count| {
            seen += count;
            seen > rank
        })
    };
    let lower = middle(values.checked_sub(1)? / 2)?;
    let upper = middle(values / 2)?;
    Some((lower + upper) as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&[0, 1, 0, 0, 1]), Some(2.5));
        assert_eq!(median(&[0, 2, 0, 1]), Some(1.0));
        assert_eq!(median(&[0, 0]), None);
    }

    #[test]
    fn nine_tenths_are_counted_from_the_newest() {
        assert_eq!(local_width(&[1.0; 10]), Some(9));
        assert_eq!(local_width(&[1.0, 0.0, 0.0, 8.0, 1.0]), Some(2));
        assert_eq!(local_width(&[1.5, 0.0, 0.0, 8.0, 1.0]), Some(5));
        assert_eq!(local_width(&[0.0, 0.0]), None);
        assert_eq!(local_width(&[]), None);
    }

    #[test]
    fn an_even_row_has_the_size_of_its_length() {
        assert!((effective_size(&[0.25; 4], 1.0) - 4.0).abs() < 1e-12);
        assert!((effective_size(&[0.0, 3.0, 3.0], 6.0) - 2.0).abs() < 1e-12, "whatever the sum");
        assert!((effective_size(&[1.0], 1.0) - 1.0).abs() < 1e-12);
    }
}
