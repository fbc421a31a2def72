//! Budgets dealt out to caches: loss curves of one pass, the best allocation of a total, and what it really gives.
//!
//! What a cache is said to lose decides everything: lost mass and pyramids make a real model worse at the same
//! total (docs/answer.md). So nothing is dealt out by an objective that is not known to help unless it is named.

use super::candidates::Candidate;
use super::field::{Ask, Field, Ground, How, Measured, OfCache, Passes};
use super::sums::RowSums;
use super::trials::{Estimate, estimate};
use super::{Figure, Resamples};
use crate::allocation::exact::exact;
use crate::allocation::marginal::marginal;
use crate::allocation::{Allocation, Curves};
use crate::budgets::{CacheBudgets, Rounding};
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::experiment::{Budget, Listener, OpenTrace};
use crate::trace::{Head, StreamLabel};
use crate::word::Word;
use std::collections::BTreeMap;

/// What a cache is said to lose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Objective {
    /// Its rows' attention that went to positions no longer held.
    LostMass,
    /// The share of its rows that miss a peak, over its query heads.
    PeakMisses,
    /// The same times the mean sensitivity of its query heads.
    SensitivePeakMisses,
}

impl Word for Objective {
    const WORDS: &'static [(Objective, &'static str, &'static str)] = &[
        (Objective::LostMass, "lost-mass", "attention lost; raised the real loss of a model by 8 to 11 %"),
        (Objective::PeakMisses, "peak-misses", "rows that miss a peak; helped in two of four checks"),
        (
            Objective::SensitivePeakMisses,
            "sensitivity-peak-misses",
            "the same times one sensitivity a head (metadata sensitivity.LAYER); cut the real loss by 14 to 32 %",
        ),
    ];
}

/// What is to be dealt out.
pub struct Deal {
    /// On which traces: with several, the last is the one on which the others' choice is replayed.
    pub ground: Ground,
    /// The policy.
    pub candidate: Candidate,
    /// The average budget.
    pub budget: Budget,
    /// What caches are said to lose; `None`: what is known to help and the trace holds.
    pub objective: Option<Objective>,
    /// Budgets that a cache may have, ascending; none: quarters of the average, up to three times it.
    pub grid: Vec<usize>,
}

/// Budgets that were dealt out.
pub struct Dealt {
    /// What caches were said to lose.
    pub objective: Objective,
    /// The average budget.
    pub budget: usize,
    /// Each cache with its budget.
    pub budgets: Vec<(StreamLabel, usize)>,
    /// What the caches lose together by the objective.
    pub loss: f64,
    /// The same with one budget for all, where that is on the grid.
    pub uniform_loss: Option<f64>,
    /// What going along the hulls would lose.
    pub marginal_loss: f64,
    /// What each way to deal gives when it is replayed.
    pub replayed: Vec<Replayed>,
    /// The trace on which they were replayed, and whether it took no part in the choice.
    pub replayed_on: (String, bool),
}

/// What a way to deal budgets out gives when it is replayed.
pub struct Replayed {
    /// The way, as `--layer-budget` takes it.
    pub shape: &'static str,
    /// Share of rows that miss a peak.
    pub peak_misses: Estimate,
    /// Share of the attention that is lost.
    pub lost_mass: Estimate,
}

/// The name of the budgets that were found, among the ways to deal.
const FOUND: &str = "this";

/// Parts of the average budget in a grid where none is named, and how far it goes.
const PARTS: usize = 4;
const TIMES: usize = 3;

impl Deal {
    /// Finds the budgets, and replays them.
    ///
    /// # Errors
    /// When a trace cannot be read, no objective is known to help, or nothing can be dealt out.
    pub fn find(&self, passes: &dyn Passes, listener: &mut Listener<'_>) -> Result<Dealt> {
        let field = Field::open(&self.ground, listener)?;
        let budget = self.budget.resolve(field.positions());
        let objective = self.objective_on(&field)?;
        let (chosen_on, held_out) = field.split_last();
        let from = if objective == Objective::LostMass { 0 } else { budget + 1 };
        let how = How { budgets: &CacheBudgets::uniform(), from, passes };
        let (labels, curves) = self.curves(&chosen_on, objective, budget, &how)?;
        let total = budget * labels.len();
        let (found, marginal_loss) = allocate(&curves, total)?;
        let budgets: Vec<(StreamLabel, usize)> = labels.into_iter().zip(found.budgets).collect();
        let replayed_on = held_out.as_ref().unwrap_or(&chosen_on);
        let name = replayed_on.traces().next().map_or(String::new(), |trace| trace.info().name.clone());
        Ok(Dealt {
            objective,
            budget,
            loss: found.loss,
            uniform_loss: curves.uniform(budget).map(|uniform| uniform.loss),
            marginal_loss,
            replayed: self.replay(replayed_on, budget, &budgets, passes)?,
            replayed_on: (name, held_out.is_some()),
            budgets,
        })
    }

    /// What is asked for, or what is known to help.
    fn objective_on(&self, field: &Field) -> Result<Objective> {
        let knows = field.traces().all(|trace| !sensitivities(trace).is_empty());
        match self.objective {
            Some(Objective::SensitivePeakMisses) | None if !knows => Err(Error::usage(
                "no objective that is known to help: the trace has no sensitivities (metadata sensitivity.LAYER, which \
                 record.py --sensitivity writes). Name lost-mass or peak-misses to deal out by these all the same",
            )),
            None => Ok(Objective::SensitivePeakMisses),
            Some(objective) => Ok(objective),
        }
    }

    /// What each cache loses at each budget of the grid, summed over traces.
    fn curves(
        &self,
        field: &Field,
        objective: Objective,
        budget: usize,
        how: &How<'_>,
    ) -> Result<(Vec<StreamLabel>, Curves)> {
        let part = (budget / PARTS).max(1);
        let by_default = || (1..=PARTS * TIMES).map(|parts| parts * part).collect();
        let grid: Vec<usize> = if self.grid.is_empty() { by_default() } else { self.grid.clone() };
        let ask = |budget: &usize| Ask { candidate: self.candidate.clone(), budget: Budget::Count(*budget) };
        let measured = field.measure(&grid.iter().map(ask).collect::<Vec<_>>(), how)?;
        let possible = grid.into_iter().zip(measured);
        let possible: Vec<(usize, Measured)> =
            possible.filter_map(|(budget, measured)| Some((budget, measured?))).collect();
        let Some((_, first)) = possible.first() else {
            return Err(Error::usage(
                "no budget of the grid is possible for this policy: a window in percent leaves room",
            ));
        };
        let labels: Vec<StreamLabel> = first.traces[0].caches.iter().map(|cache| cache.label.clone()).collect();
        let mut losses = vec![Vec::new(); labels.len()];
        for (_, measured) in &possible {
            let of_budget = losses_at(field, measured, objective, &labels)?;
            losses.iter_mut().zip(of_budget).for_each(|(curve, loss)| curve.push(loss));
        }
        let grid = possible.into_iter().map(|(budget, _)| budget).collect();
        Ok((labels, Curves::new(grid, losses).map_err(|problem| Error::usage(format!("--grid: {problem}")))?))
    }

    fn replay(
        &self,
        field: &Field,
        budget: usize,
        budgets: &[(StreamLabel, usize)],
        passes: &dyn Passes,
    ) -> Result<Vec<Replayed>> {
        let pyramid = CacheBudgets::pyramid(Decimal::whole(4), Rounding::LargestRemainder);
        let ways = [
            (FOUND, CacheBudgets::of_caches(budgets.iter().cloned())),
            ("uniform", CacheBudgets::uniform()),
            ("pyramid:4", pyramid),
        ];
        let mut replayed = Vec::new();
        for (shape, ways) in ways {
            let how = How { budgets: &ways, from: 0, passes };
            let ask = Ask { candidate: self.candidate.clone(), budget: Budget::Count(budget) };
            let measured = field.measure(&[ask], &how)?.pop().flatten();
            replayed.extend(measured.map(|measured| of_way(field, shape, &measured)));
        }
        Ok(replayed)
    }
}

fn of_way(field: &Field, shape: &'static str, measured: &Measured) -> Replayed {
    let (units, resamples) = (measured.units(), Resamples::new(field.units(measured)));
    let of = |figure| estimate(&units, figure, &resamples);
    Replayed { shape, peak_misses: of(Figure::PeakMisses), lost_mass: of(Figure::LostMass) }
}

/// The best allocation, and what going along the hulls loses.
fn allocate(curves: &Curves, total: usize) -> Result<(Allocation, f64)> {
    let least = curves.least_total();
    let (along, _) = marginal(curves, total).ok_or_else(|| {
        Error::usage(format!("the smallest budgets of the grid add up to {least} already, more than {total} in all"))
    })?;
    let loss = along.loss;
    Ok((exact(curves, total).unwrap_or(along), loss))
}

/// What each cache loses at a budget, summed over traces.
fn losses_at(field: &Field, measured: &Measured, objective: Objective, labels: &[StreamLabel]) -> Result<Vec<f64>> {
    let mut losses = vec![0.0; labels.len()];
    for (trace, on_trace) in field.traces().zip(&measured.traces) {
        let same = on_trace.caches.iter().map(|cache| &cache.label).eq(labels);
        if !same {
            let name = &trace.info().name;
            return Err(Error::usage(format!("{name}: its caches are not those of the first trace")));
        }
        let weights = weights(trace, objective)?;
        let of_cache = |(at, cache): (usize, &OfCache)| {
            let heads = trace.caches().get(at).map_or(1, |plan| plan.streams.len());
            loss_of(&cache.sums, objective, heads) * weights.get(at).copied().unwrap_or(1.0)
        };
        let of_caches = on_trace.caches.iter().enumerate().map(of_cache);
        losses.iter_mut().zip(of_caches).for_each(|(sum, loss)| *sum += loss);
    }
    Ok(losses)
}

fn loss_of(sums: &RowSums, objective: Objective, heads: usize) -> f64 {
    match objective {
        Objective::LostMass => sums.total - sums.retained,
        _ if sums.rows == 0.0 => 0.0,
        // The shares of its query heads, which have as many rows each, added up.
        Objective::PeakMisses | Objective::SensitivePeakMisses => sums.misses * heads as f64 / sums.seen,
    }
}

/// The mean sensitivity of each cache's query heads; none where the objective goes without.
fn weights(trace: &OpenTrace, objective: Objective) -> Result<Vec<f64>> {
    if objective != Objective::SensitivePeakMisses {
        return Ok(Vec::new());
    }
    let known = sensitivities(trace);
    let info = trace.info();
    let weight = |cache: &crate::replay::CachePlan| {
        let heads = cache.streams.iter().flat_map(|stream| query_heads(trace, &info.streams[*stream].label));
        let found: Vec<f64> = heads.filter_map(|(layer, head)| known.get(&layer)?.get(head).copied()).collect();
        match found.is_empty() {
            true => Err(Error::data(&info.name, format!("no sensitivity of the heads of cache {}", cache.label))),
            false => Ok(found.iter().sum::<f64>() / found.len() as f64),
        }
    };
    trace.caches().iter().map(weight).collect()
}

/// The query heads that a stream is of: itself, or those of its KV head or layer.
fn query_heads(trace: &OpenTrace, label: &StreamLabel) -> Vec<(u32, usize)> {
    let facts = &trace.info().facts;
    let heads = facts.query_heads.of(label.layer).unwrap_or(0);
    let kv_heads = facts.kv_heads.of(label.layer).unwrap_or(heads).max(1);
    let heads = match (&label.head, facts.group.as_deref()) {
        (Head::Number(head), Some("kv")) => {
            let group = heads / kv_heads;
            let first = *head as usize * group;
            first..first + group
        }
        (Head::Number(head), _) => *head as usize..*head as usize + 1,
        (Head::Word(_), _) => 0..heads,
    };
    heads.map(|head| (label.layer, head)).collect()
}

/// For each layer, the sensitivities of its query heads, as the metadata has them.
fn sensitivities(trace: &OpenTrace) -> BTreeMap<u32, Vec<f64>> {
    let entries = trace.info().metadata.iter();
    let of_layer = |(key, text): (&String, &String)| {
        let layer = key.strip_prefix("sensitivity.")?.parse().ok()?;
        Some((layer, serde_json::from_str::<Vec<f64>>(text).ok()?))
    };
    entries.filter_map(of_layer).collect()
}
