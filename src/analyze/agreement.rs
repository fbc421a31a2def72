//! Agreement between layers: do adjacent layers attend to the same positions?
//!
//! Spearman's rank correlation of what each position gets, summed over the rows at or after `t` and
//! for positions below `t`, with `t = floor(T / 2)`: all of these rows see all of these positions. Sums over all
//! rows would correlate by age alone, because an old position is in more rows: they agree to 1.00 for a
//! random model. Ties take the mean of their ranks. Knows column sums; no policies.
//!
//! Streams with the same head label are compared, in layers that follow each other among those that the
//! trace holds. That heads of one number resemble each other across layers is a convention, not a
//! property of models; for head means the question does not arise.

use super::StreamAnalysis;
use crate::trace::{Head, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// How far two layers agree.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// The head label that both streams have.
    pub head: Head,
    /// The lower layer, and the next that the trace holds.
    pub layers: [u32; 2],
    /// Spearman's correlation, -1 to 1; absent where one side is the same everywhere.
    pub spearman: Option<f64>,
}

/// The pairs of adjacent layers, by lower layer, then head.
pub(super) fn between_layers(streams: &[StreamAnalysis]) -> Vec<Agreement> {
    let mut heads: BTreeMap<&Head, Vec<&StreamAnalysis>> = BTreeMap::new();
    for stream in streams {
        heads.entry(&stream.label.head).or_default().push(stream);
    }
    let pairs = heads.values().flat_map(|layers| layers.windows(2));
    let mut all: Vec<Agreement> = pairs.map(|pair| agreement(pair[0], pair[1])).collect();
    all.sort_by(|a, b| (a.layers, &a.head).cmp(&(b.layers, &b.head)));
    all
}

fn agreement(lower: &StreamAnalysis, upper: &StreamAnalysis) -> Agreement {
    Agreement {
        head: lower.label.head.clone(),
        layers: [lower.label.layer, upper.label.layer],
        spearman: spearman(&lower.late_attention, &upper.late_attention),
    }
}

/// Sums what early positions get from late rows.
pub(super) struct LateAttention {
    /// t
    half: usize,
    sums: Vec<f64>,
}

impl LateAttention {
    pub(super) fn new(positions: usize) -> LateAttention {
        LateAttention { half: positions / 2, sums: vec![0.0; positions / 2] }
    }

    pub(super) fn add(&mut self, Row { step, weights }: Row<'_>) {
        if step.index() < self.half {
            return;
        }
        for (sum, weight) in self.sums.iter_mut().zip(weights) {
            *sum += f64::from(*weight);
        }
    }

    pub(super) fn finish(self) -> Vec<f64> {
        self.sums
    }
}

/// Spearman's rank correlation of two equally long lists; `None` where one of them is the same
/// everywhere.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    // The mean of ranks is the same for any ties.
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let spread = (sum(&a, &a) * sum(&b, &b)).sqrt();
    (spread > 0.0).then(|| sum(&a, &b) / spread)
}

/// Ranks from 1 on; values that tie share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        tied.iter().for_each(|index| ranks[*index] = mean);
        before += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_take_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
        assert_eq!(ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn order_is_what_correlates() {
        assert_eq!(spearman(&[1.0, 2.0, 9.0], &[0.1, 0.2, 0.3]), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 9.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        // Ranks 1 2 3 4 and 1.5 1.5 4 3: the products of what they differ from 2.5 by sum to 3.5.
        let tied = spearman(&[1.0, 2.0, 3.0, 4.0], &[0.0, 0.0, 8.0, 5.0]).expect("both vary");
        assert!((tied - 3.5 / (5.0_f64 * 4.5).sqrt()).abs() < 1e-12, "{tied}");
    }

    #[test]
    fn what_is_the_same_everywhere_agrees_with_nothing() {
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[], &[]), None);
    }
}
