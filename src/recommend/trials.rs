//! Trials: candidates that were measured, the best of a policy's, and what is reported of it.

use super::candidates::Candidate;
use super::cost::Cost;
use super::field::{Field, Measured};
use super::resample::{Interval, Resamples};
use super::sums::{Figure, RowSums};
use std::collections::BTreeMap;

/// A candidate and what it kept.
#[derive(Clone)]
pub(super) struct Trial {
    pub candidate: Candidate,
    pub measured: Measured,
}

/// A figure with its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Where it would lie on other rows, or other traces, of the kind.
    pub interval: Interval,
}

/// The best by a figure of some sums, then by lost mass; the first of those that tie.
pub(super) fn best(trials: &[Trial], lead: Figure, sums: impl Fn(&Measured) -> RowSums) -> Option<&Trial> {
    let key = |trial: &Trial| {
        let sums = sums(&trial.measured);
        (lead.of(&sums), Figure::LostMass.of(&sums))
    };
    let keyed = trials.iter().map(|trial| (key(trial), trial));
    let least = keyed.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    least.map(|(_, trial)| trial)
}

/// What is reported of a policy, as units of a bootstrap: of one trace that of the trial itself; of several, that
/// of each trace by the trial which `choose` finds best on the others.
pub(super) fn reported(
    field: &Field,
    trial: &Trial,
    choose: impl Fn(usize) -> Option<Measured>,
) -> Option<Vec<RowSums>> {
    let traces = field.traces().count();
    if traces == 1 {
        return Some(trial.measured.units());
    }
    (0..traces).map(|trace| Some(choose(trace)?.units()[trace])).collect()
}

/// A figure of units, with its interval.
pub(super) fn estimate(units: &[RowSums], figure: Figure, resamples: &Resamples) -> Estimate {
    let interval = Interval::of(resamples.values(units, figure));
    Estimate { value: figure.of(&RowSums::sum(units)), interval }
}

/// The layer that loses the largest share of its attention, where there are several.
pub(super) fn worst_layer(measured: &Measured) -> Option<(u32, f64)> {
    let mut layers: BTreeMap<u32, RowSums> = BTreeMap::new();
    for cache in measured.traces.iter().flat_map(|on_trace| &on_trace.caches) {
        layers.entry(cache.label.layer).or_default().add(&cache.sums, 1.0);
    }
    let lost = layers.iter().map(|(layer, sums)| (*layer, Figure::LostMass.of(sums)));
    let worst = lost.reduce(|worst, next| if next.1 > worst.1 { next } else { worst });
    worst.filter(|_| layers.len() > 1)
}

/// What a sequence takes, on the trace where it takes most.
pub(super) fn cost(measured: &Measured) -> Option<Cost> {
    let costs = measured.traces.iter().map(|on_trace| on_trace.cost);
    costs.reduce(|most, next| if next.share > most.share { next } else { most })
}
