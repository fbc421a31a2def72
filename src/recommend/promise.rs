//! The smallest budget at which a policy keeps a promise.
//!
//! Many budgets are lanes of one pass: each pass puts several between the largest that fails and the smallest
//! that keeps it, until these are neighbours. A budget keeps the promise where all larger ones that were tried
//! keep it too, so that luck at one budget is no answer.

use super::answer::AnswerLine;
use super::at_budget::kept;
use super::candidates::{Candidate, shares};
use super::field::{Ask, Field, How, Measured};
use super::ranks;
use super::resample::{Interval, Resamples};
use super::sums::{Figure, RowSums};
use super::trials::{Trial, best, reported};
use crate::error::Result;
use crate::experiment::Budget;
use crate::policy::spec::PolicySpec;
use std::collections::BTreeMap;

/// Budgets of the first pass, in parts of the largest.
const FIRST: [(usize, usize); 6] = [(1, 24), (1, 12), (1, 6), (1, 3), (2, 3), (1, 1)];

/// Budgets that a pass puts between two.
const BETWEEN: usize = 7;

/// More passes than any trace needs.
const MOST_PASSES: usize = 16;

/// Budgets around the answer, in percent of it, that its interval is read from.
const AROUND: [usize; 9] = [50, 60, 70, 80, 90, 110, 125, 150, 200];

/// What is promised.
#[derive(Clone, Copy)]
pub(super) struct Promise {
    pub figure: Figure,
    pub most: f64,
    /// The largest budget that is tried.
    pub largest: usize,
}

/// What was tried of a policy, budget by budget; nothing at a budget that it refuses.
type Tried = BTreeMap<usize, Vec<Trial>>;

impl Promise {
    /// What was tried of each policy until its smallest budget was found.
    pub(super) fn search(self, field: &Field, policies: &[PolicySpec], how: &How<'_>) -> Result<Vec<Tried>> {
        let mut tried: Vec<Tried> = vec![Tried::new(); policies.len()];
        let budgets = FIRST.map(|(part, whole)| (self.largest * part / whole).max(1));
        let wanted = |candidates: Vec<Candidate>| all_of(&budgets, &candidates);
        add(field, &mut tried, shares(policies).into_iter().map(wanted).collect(), how)?;
        for _ in 0..MOST_PASSES {
            let next: Vec<Vec<Ask>> = tried.iter().map(|tried| self.closer(tried)).collect();
            if next.iter().all(Vec::is_empty) {
                break;
            }
            add(field, &mut tried, next, how)?;
        }
        let around = tried.iter().map(|tried| self.around(tried)).collect();
        add(field, &mut tried, around, how)?;
        Ok(tried)
    }

    /// The smallest budget that keeps the promise by some sums, with all larger ones.
    fn smallest(self, tried: &Tried, sums: impl Fn(&Measured) -> RowSums) -> Option<(usize, &Trial)> {
        let keeps = |(budget, trials): (&usize, &'_ Vec<Trial>)| -> Option<(usize, usize)> {
            let trial = best(trials, self.figure, &sums)?;
            (self.figure.of(&sums(&trial.measured)) <= self.most).then_some((*budget, 0))
        };
        let last = tried.iter().rev().map_while(keeps).last()?.0;
        best(&tried[&last], self.figure, &sums).map(|trial| (last, trial))
    }

    /// Budgets between the largest that fails and the smallest that keeps the promise, for the best of both.
    fn closer(self, tried: &Tried) -> Vec<Ask> {
        let Some((high, at_high)) = self.smallest(tried, Measured::sums) else { return Vec::new() };
        let below = tried.range(..high).next_back();
        let low = below.map_or(0, |(budget, _)| *budget);
        let mut candidates = vec![at_high.candidate.clone()];
        let at_low = below.and_then(|(_, trials)| best(trials, self.figure, Measured::sums));
        candidates.extend(at_low.map(|trial| trial.candidate.clone()));
        candidates.dedup_by_key(|candidate| candidate.spelled());
        let step = |part: usize| low + (high - low) * part / (BETWEEN + 1);
        let mut budgets: Vec<usize> = (1..=BETWEEN).map(step).filter(|budget| *budget > low).collect();
        budgets.dedup();
        all_of(&budgets, &candidates)
    }

    /// Budgets around the answer.
    fn around(self, tried: &Tried) -> Vec<Ask> {
        let Some((budget, trial)) = self.smallest(tried, Measured::sums) else { return Vec::new() };
        let near = AROUND.map(|percent| (budget * percent / 100).clamp(1, self.largest));
        let near: Vec<usize> = near.into_iter().filter(|budget| !tried.contains_key(budget)).collect();
        all_of(&near, std::slice::from_ref(&trial.candidate))
    }

    /// In each draw the smallest budget that keeps the promise; one more than the largest where none does.
    fn drawn(self, tried: &Tried, resamples: &Resamples) -> Vec<f64> {
        let beyond = self.largest as f64 + 1.0;
        let mut smallest: Vec<(f64, bool)> = Vec::new();
        for (budget, trials) in tried.iter().rev() {
            let values = match best(trials, self.figure, Measured::sums) {
                Some(trial) => resamples.values(&trial.measured.units(), self.figure),
                None => break,
            };
            smallest.resize(values.len(), (beyond, true));
            for ((least, keeps), value) in smallest.iter_mut().zip(values) {
                *keeps &= value <= self.most;
                *least = if *keeps { *budget as f64 } else { *least };
            }
        }
        smallest.into_iter().map(|(least, _)| least).collect()
    }

    /// Policies by the budget that they need, and those that do not keep the promise.
    pub(super) fn ranked(self, field: &Field, policies: &[PolicySpec], tried: &[Tried]) -> Vec<AnswerLine> {
        let found = tried.iter().filter_map(|tried| Some((tried, self.smallest(tried, Measured::sums)?)));
        let mut found: Vec<(&Tried, (usize, &Trial))> = found.collect();
        let order = |trial: &Trial| self.figure.of(&trial.measured.sums());
        found.sort_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(order(a.1).total_cmp(&order(b.1))));
        let mut lines = Vec::new();
        if let Some((_, (_, trial))) = found.first() {
            let resamples = Resamples::new(field.units(&trial.measured));
            let drawn: Vec<Vec<f64>> = found.iter().map(|(tried, _)| self.drawn(tried, &resamples)).collect();
            let ranks = ranks::shared(&drawn);
            for (((tried, (_, trial)), rank), drawn) in found.iter().zip(ranks).zip(drawn) {
                lines.extend(self.line(field, tried, trial, &resamples, rank, drawn));
            }
        }
        let fails = |(_, tried): &(&PolicySpec, &Tried)| {
            self.smallest(tried, Measured::sums).is_none() && tried.values().any(|trials| !trials.is_empty())
        };
        let failed = policies.iter().zip(tried).filter(fails);
        lines.extend(failed.filter_map(|(_, tried)| {
            let trials = tried.values().rev().find(|trials| !trials.is_empty())?;
            let candidate = best(trials, self.figure, Measured::sums)?.candidate.clone();
            Some(AnswerLine { rank: None, candidate, kept: None })
        }));
        lines
    }

    fn line(
        self,
        field: &Field,
        tried: &Tried,
        trial: &Trial,
        resamples: &Resamples,
        rank: usize,
        drawn: Vec<f64>,
    ) -> Option<AnswerLine> {
        let on_others = |trace: usize| self.smallest(tried, |measured| measured.without(trace));
        // A promise that the other traces do not let be kept is looked at where this trace keeps it.
        let choose = |trace: usize| Some(on_others(trace).map_or(trial, |(_, trial)| trial).measured.clone());
        let units = reported(field, trial, choose)?;
        let mut kept = kept(field, trial, &units, resamples);
        kept.budget_interval = Some(Interval::of(drawn));
        Some(AnswerLine { rank: Some(rank), candidate: trial.candidate.clone(), kept: Some(kept) })
    }
}

fn all_of(budgets: &[usize], candidates: &[Candidate]) -> Vec<Ask> {
    let ask = |budget: usize| {
        move |candidate: &Candidate| Ask { candidate: candidate.clone(), budget: Budget::Count(budget) }
    };
    budgets.iter().flat_map(|budget| candidates.iter().map(ask(*budget))).collect()
}

/// Measures more of each policy.
fn add(field: &Field, tried: &mut [Tried], asks: Vec<Vec<Ask>>, how: &How<'_>) -> Result<()> {
    let all: Vec<Ask> = asks.iter().flatten().cloned().collect();
    if all.is_empty() {
        return Ok(());
    }
    let mut measured = field.measure(&all, how)?.into_iter();
    for (tried, asks) in tried.iter_mut().zip(asks) {
        for (ask, measured) in asks.into_iter().zip(&mut measured) {
            let trials = tried.entry(ask.budget.resolve(0)).or_default();
            trials.extend(measured.map(|measured| Trial { candidate: ask.candidate, measured }));
        }
    }
    Ok(())
}
