//! `sift-attention` (a selector): reads what weighs more than a threshold that falls with the length.
//!
//! *Idea.* The quantiles of a row follow a power law of its length. The last rows of the prompt are read
//! whole and the law is fitted to their quantiles; from then on the law says what is worth reading, and
//! no row has to be sorted.
//! *Paper.* Power Law Guided Dynamic Sifting for Efficient Attention, 2025,
//! arXiv 2506.05300; known from a reading, not from code.
//! *How this differs from the paper.* It warms up on the first rows of the answer; here the last rows of
//! the prompt serve, so that every row after it is measured. It claims no defaults; those here are ours.
//! The quantile is linear between order statistics, at `(length - 1) x quantile`, in f64. A query head
//! whose rows have fewer than two quantiles above 0 at different lengths gets no law: it reads every
//! weight above 0. Where a layer attends through a window, a row is what lies in the window.
//! *Parameters.* `quantile` (0.9), `warm-up` (64): the last rows of the prompt, as many as there are.
//! A window of 64 rows spans little of the length, so that the exponent is hardly determined: hold the
//! law (`fit_log_scale`, `fit_exponent`) against the mass.
//! *Cost.* A sort per row of the warm-up, one pass per row; a few numbers for each query head.

use crate::keeping::PromptMode;
use crate::kernels::{count_over, f32_not_above};
use crate::needs::Needs;
use crate::policy::entry::{Make, OwnKeeping, PolicyEntry};
use crate::policy::parameter::{QUANTILE, Value, WARM_UP};
use crate::policy::selector::{Law, Selector};
use std::collections::VecDeque;

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "sift-attention",
    "selector: reads what weighs more than a power law of the length, fitted to the prompt's end",
    Make::Selector(|setting, heads| {
        let values = &setting.values;
        let head = Head { points: VecDeque::new(), law: None };
        Box::new(SiftAttention {
            quantile: values.real(&QUANTILE),
            warm_up: values.count(&WARM_UP),
            heads: vec![head; heads],
            sorted: Vec::new(),
        })
    }),
)
.paper("SiftAttention (Power Law Guided Dynamic Sifting), 2025, arXiv 2506.05300")
.parameters(&[(&QUANTILE, Value::Real(0.9)), (&WARM_UP, Value::Count(64))])
.needs(Needs::WHOLE_ROWS.and(Needs::PROMPT_END))
.keeps(OwnKeeping { prompt: Some(PromptMode::Once), ..OwnKeeping::NOTHING });

struct SiftAttention {
    quantile: f64,
    warm_up: usize,
    heads: Vec<Head>,
    sorted: Vec<f32>,
}

/// What is known of a query head.
#[derive(Clone)]
struct Head {
    /// Length and quantile of the last rows of the prompt; empty once the law is fitted.
    points: VecDeque<(usize, f64)>,
    law: Option<Law>,
}

impl Selector for SiftAttention {
    fn prepare(&mut self, head: usize, row: &[f32]) {
        let point = (row.len(), quantile(row, self.quantile, &mut self.sorted));
        let points = &mut self.heads[head].points;
        points.push_back(point);
        if points.len() > self.warm_up {
            points.pop_front();
        }
    }

    fn read(&mut self, head: usize, row: &[f32]) -> usize {
        let head = &mut self.heads[head];
        if !head.points.is_empty() {
            head.law = fit(head.points.drain(..));
        }
        let threshold = head.law.map_or(0.0, |law| law.threshold(row.len()));
        count_over(row, f32_not_above(threshold)) as usize
    }

    fn law(&self, head: usize) -> Option<Law> {
        self.heads[head].law
    }
}

/// The quantile of a row, linear between order statistics.
fn quantile(row: &[f32], share: f64, sorted: &mut Vec<f32>) -> f64 {
    sorted.clear();
    sorted.extend_from_slice(row);
    sorted.sort_unstable_by(f32::total_cmp);
    let place = (row.len() - 1) as f64 * share;
    let below = place.floor() as usize;
    let (low, high) = (f64::from(sorted[below]), f64::from(sorted[(below + 1).min(row.len() - 1)]));
    low + (high - low) * (place - below as f64)
}

/// Least squares of the logarithm of quantiles above 0 against that of the length.
fn fit(points: impl Iterator<Item = (usize, f64)>) -> Option<Law> {
    let logs: Vec<(f64, f64)> =
        points.filter(|(_, value)| *value > 0.0).map(|(length, value)| ((length as f64).ln(), value.ln())).collect();
    let count = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let together: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = together / spread;
    (spread > 0.0).then(|| Law::new(mean_y - slope * mean_x, -slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_order_statistics() {
        let row = [0.5, 0.125, 0.25, 0.0];
        for (share, wanted) in [(0.0, 0.0), (1.0, 0.5), (0.5, 0.1875), (0.9, 0.25 + 0.7 * 0.25)] {
            let found = quantile(&row, share, &mut Vec::new());
            assert!((found - wanted).abs() < 1e-12, "{share}: {found}");
        }
        assert_eq!(quantile(&[0.5], 0.9, &mut Vec::new()), 0.5);
    }

    #[test]
    fn a_law_that_holds_is_found_and_zeros_are_passed_over() {
        let exact = (10..50_usize).map(|length| (length, 3.0 * (length as f64).powf(-1.5)));
        let law = fit(exact.chain([(60, 0.0)])).expect("many lengths");
        assert!((law.log_scale - 3.0_f64.ln()).abs() < 1e-9 && (law.exponent - 1.5).abs() < 1e-9, "{law:?}");
        assert!((law.threshold(100) - 0.003).abs() < 1e-12);
        assert_eq!(fit([(10, 0.5), (20, 0.0)].into_iter()), None, "one quantile above 0");
        assert_eq!(fit(std::iter::empty()), None);
    }
}
