//! What the theory says of a budget, beside what was retained at it.
//!
//! The [power law](super::power_law) that was fitted to each stream predicts what the heaviest positions of
//! a row hold, as many as are held at a budget: that is what `oracle` retains, and no policy can retain
//! more. The prediction here is the mean over the rows of all streams that have a law, each at its own
//! length. The paper's bound on the deviation of a layer's output is given at the budget's share of the
//! whole sequence, for the stream where it is largest; where it is void in any stream there is none. Figures are
//! rounded as fits are. Knows fits and a finished sweep; no rows.

use super::StreamAnalysis;
use super::advice::Advice;
use super::power_law::{PowerLaw, rounded};
use crate::position::Position;
use crate::trace::{SelfAttention, TraceInfo};
use serde::Serialize;

/// The laws of a trace, and what they say at the budgets of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct Theory {
    /// Streams that a law was fitted to.
    pub streams: usize,
    /// Those that it describes.
    pub good_fits: usize,
    /// One entry for each budget of the sweep.
    pub at_budgets: Vec<AtBudget>,
}

/// Prediction and outcome at a budget.
#[derive(Clone, Debug, Serialize)]
pub struct AtBudget {
    /// The budget.
    pub budget: usize,
    /// The budget over the positions, at most 1.
    pub share: f64,
    /// Retained mass that the laws predict.
    pub predicted: f64,
    /// What `oracle` retains.
    pub oracle: f64,
    /// The policy of the sweep that retains most.
    pub best_policy: &'static str,
    /// What it retains.
    pub best_retained_mass: f64,
    /// The paper's bound on the deviation of the output; absent where it is void in a stream.
    pub deviation_bound: Option<f64>,
}

/// The theory of a trace whose sweep is done; `None` where no stream has a law.
pub fn theory(info: &TraceInfo, streams: &[StreamAnalysis], advice: &Advice) -> Option<Theory> {
    let laws: Vec<(&PowerLaw, usize)> = streams
        .iter()
        .zip(rows(info, streams))
        .filter_map(|(stream, rows)| Some((stream.power_law.as_ref()?, rows)))
        .collect();
    let at = |(budget, oracle): (&usize, &f64)| at_budget(info, &laws, advice, *budget, *oracle);
    let at_budgets = advice.budgets.iter().zip(&advice.oracle).filter_map(at).collect();
    let good_fits = laws.iter().filter(|(law, _)| law.is_good()).count();
    (!laws.is_empty()).then_some(Theory { streams: laws.len(), good_fits, at_budgets })
}

/// Rows of each stream.
fn rows<'a>(info: &'a TraceInfo, streams: &'a [StreamAnalysis]) -> impl Iterator<Item = usize> + 'a {
    let of = |label| info.streams.iter().find(|stream| stream.label == label).map_or(0, |stream| stream.rows);
    streams.iter().map(move |stream| of(stream.label.clone()))
}

fn at_budget(
    info: &TraceInfo,
    laws: &[(&PowerLaw, usize)],
    advice: &Advice,
    budget: usize,
    oracle: f64,
) -> Option<AtBudget> {
    let best = advice.at_budgets.iter().filter(|choice| choice.budget == budget);
    let best = best.reduce(|best, next| if next.best_retained_mass > best.best_retained_mass { next } else { best })?;
    let share = (budget as f64 / info.positions.max(1) as f64).min(1.0);
    let bounds: Option<Vec<f64>> = laws.iter().map(|(law, _)| law.paper_bound(share)).collect();
    Some(AtBudget {
        budget,
        share,
        predicted: predicted(info, laws, budget),
        oracle,
        best_policy: best.policy,
        best_retained_mass: best.best_retained_mass,
        deviation_bound: bounds.and_then(|bounds| bounds.into_iter().reduce(f64::max)).map(rounded),
    })
}

/// The mean over rows of what a law says of as many positions as are measured on.
fn predicted(info: &TraceInfo, laws: &[(&PowerLaw, usize)], budget: usize) -> f64 {
    let held = budget + usize::from(info.self_attention == SelfAttention::Included);
    let (mut mass, mut count) = (0.0, 0_u32);
    for (law, rows) in laws {
        for step in 0..*rows {
            let length = info.self_attention.row_len(Position(info.first_position.0 + step as u32));
            mass += law.retained((held as f64 / length as f64).min(1.0));
            count += 1;
        }
    }
    rounded(mass / f64::from(count.max(1)))
}
