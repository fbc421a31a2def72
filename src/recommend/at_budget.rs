//! The best policies at a budget.

use super::answer::{AnswerLine, Kept};
use super::candidates::{Candidate, beyond, first};
use super::field::{Ask, Field, How, Measured};
use super::ranks;
use super::resample::Resamples;
use super::sums::{Figure, RowSums};
use super::trials::{Trial, best, cost, estimate, reported, worst_layer};
use crate::error::Result;
use crate::experiment::Budget;
use crate::policy::spec::PolicySpec;

/// Edges of the tried settings are moved at most so often.
const MOST_MOVES: usize = 4;

/// What was tried of each policy at a budget.
pub(super) fn try_all(
    field: &Field,
    policies: &[PolicySpec],
    budget: Budget,
    lead: Figure,
    how: &How<'_>,
) -> Result<Vec<Vec<Trial>>> {
    let mut tried: Vec<Vec<Trial>> = vec![Vec::new(); policies.len()];
    let mut next = first(policies);
    for _ in 0..=MOST_MOVES {
        add(field, &mut tried, next, budget, how)?;
        next = tried.iter().map(|trials| beyond_best(field, trials, lead, budget)).collect();
        if next.iter().all(Vec::is_empty) {
            break;
        }
    }
    Ok(tried)
}

/// Measures more candidates of each policy.
fn add(
    field: &Field,
    tried: &mut [Vec<Trial>],
    candidates: Vec<Vec<Candidate>>,
    budget: Budget,
    how: &How<'_>,
) -> Result<()> {
    let asks: Vec<Ask> =
        candidates.iter().flatten().map(|candidate| Ask { candidate: candidate.clone(), budget }).collect();
    let mut measured = field.measure(&asks, how)?.into_iter();
    for (trials, candidates) in tried.iter_mut().zip(candidates) {
        for (candidate, measured) in candidates.into_iter().zip(&mut measured) {
            trials.extend(measured.map(|measured| Trial { candidate, measured }));
        }
    }
    Ok(())
}

/// What to try beyond the best of a policy's trials, where that is at the edge of them.
fn beyond_best(field: &Field, trials: &[Trial], lead: Figure, budget: Budget) -> Vec<Candidate> {
    let tried: Vec<&Candidate> = trials.iter().map(|trial| &trial.candidate).collect();
    let best = best(trials, lead, Measured::sums);
    best.map_or(Vec::new(), |best| beyond(&tried, &best.candidate, budget.resolve(field.positions())))
}

/// Policies in their ranks, and what they keep.
pub(super) fn ranked(field: &Field, tried: &[Vec<Trial>], lead: Figure) -> Vec<AnswerLine> {
    let chosen = tried.iter().filter_map(|trials| {
        let trial = best(trials, lead, Measured::sums)?;
        let on_others = |trace: usize| best(trials, lead, |measured| measured.without(trace));
        let units = reported(field, trial, |trace| on_others(trace).map(|trial| trial.measured.clone()))?;
        Some((trial, units))
    });
    let mut chosen: Vec<(&Trial, Vec<RowSums>)> = chosen.collect();
    let order = |units: &[RowSums]| {
        let sums = RowSums::sum(units);
        (lead.of(&sums), Figure::LostMass.of(&sums))
    };
    chosen.sort_by(|(_, a), (_, b)| order(a).0.total_cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1)));
    let Some((first, _)) = chosen.first() else { return Vec::new() };
    let resamples = Resamples::new(field.units(&first.measured));
    let drawn: Vec<Vec<f64>> = chosen.iter().map(|(_, units)| resamples.values(units, lead)).collect();
    let line = |(rank, (trial, units)): (usize, (&Trial, Vec<RowSums>))| AnswerLine {
        rank: Some(rank),
        candidate: trial.candidate.clone(),
        kept: Some(kept(field, trial, &units, &resamples)),
    };
    ranks::shared(&drawn).into_iter().zip(chosen).map(line).collect()
}

/// What a trial needs and keeps, where `units` are reported of it.
pub(super) fn kept(field: &Field, trial: &Trial, units: &[RowSums], resamples: &Resamples) -> Kept {
    let shortest = field.traces().zip(&trial.measured.traces).min_by_key(|(trace, _)| trace.chosen.positions);
    let has_changes = units.iter().any(|unit| unit.changed_rows > 0.0);
    Kept {
        budget: shortest.map_or(0, |(_, on_trace)| on_trace.budget),
        budget_interval: None,
        peak_misses: estimate(units, Figure::PeakMisses, resamples),
        lost_mass: estimate(units, Figure::LostMass, resamples),
        predicted_loss: has_changes.then(|| estimate(units, Figure::PredictedLoss, resamples)),
        worst_layer: worst_layer(&trial.measured),
        cost: cost(&trial.measured),
    }
}
