//! The power laws of streams for people, and what they say at a budget beside what was retained.

use super::text::{counted, number, table};
use kvsim::analyze::StreamAnalysis;
use kvsim::analyze::power_law::{GOOD, PowerLaw};
use kvsim::analyze::theory::{AtBudget, Theory};

/// A line for each stream that has a law; nothing where none has.
pub fn laws(streams: &[StreamAnalysis]) -> Option<String> {
    let fitted = streams.iter().filter_map(|stream| Some((stream, stream.power_law.as_ref()?)));
    let rows: Vec<Vec<String>> = fitted.map(|(stream, law)| row(stream, law)).collect();
    (!rows.is_empty()).then(|| {
        format!(
            "Power law of attention, f(x) = c (x + b)^-k: the exponent k that fits best, two standard errors to each side,\n\
             and the largest distance of distributions; above {GOOD} the law describes little\n\n{}",
            table(&["stream", "fit", "k", "from", "to", "distance"], 2, rows)
        )
    })
}

fn row(stream: &StreamAnalysis, law: &PowerLaw) -> Vec<String> {
    let (from, to) = law.interval.unzip();
    let fit = if law.is_good() { "good" } else { "bad" };
    let figures = [Some(law.exponent), from, to, Some(law.distance)].map(number);
    [stream.label.to_string(), fit.to_owned()].into_iter().chain(figures).collect()
}

/// Prediction and outcome at each budget of the sweep.
pub fn theory(theory: &Theory) -> String {
    let rows = theory.at_budgets.iter().map(at_budget).collect();
    format!(
        "Theory: retained mass that the power laws predict (mean over rows and streams) beside what was retained, and\n\
         the Scissorhands paper's bound on the deviation of the output, void (-) at small shares\n\n{}\n{}",
        table(&["budget", "share", "predicted", "oracle", "best policy", "retained", "deviation bound"], 0, rows),
        honesty(theory)
    )
}

fn at_budget(at: &AtBudget) -> Vec<String> {
    let [share, predicted, oracle, retained] =
        [at.share, at.predicted, at.oracle, at.best_retained_mass].map(|figure| number(Some(figure)));
    let best = at.best_policy.to_owned();
    vec![at.budget.to_string(), share, predicted, oracle, best, retained, number(at.deviation_bound)]
}

/// How far the prediction can be trusted.
fn honesty(Theory { streams, good_fits, .. }: &Theory) -> String {
    let all = counted(*streams, "stream");
    match streams - good_fits {
        0 => format!("The law fits all {all} within {GOOD}.\n"),
        bad => format!(
            "The law fits badly in {bad} of {all} (distance above {GOOD}): there the exponent describes little, and neither\n\
             prediction nor bound can be relied on.\n"
        ),
    }
}
