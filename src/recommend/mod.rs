//! Which policy, which window, which budget: the answer to a question about traces.
//!
//! A [`Question`] names traces and a [`Goal`]; what matters is tried, the edge of what was tried is moved on by
//! itself, and an [`Answer`] ranks policies at their best settings. Where there are several traces, a setting is
//! chosen on the others and reported on each. Intervals come of a bootstrap over traces, or over blocks of rows;
//! policies whose difference is not clear share a rank. Stands above the experiment; knows no command line.

mod allocate;
mod answer;
mod at_budget;
mod blocks;
mod candidates;
mod cost;
mod dealt_text;
mod field;
mod promise;
mod ranks;
mod resample;
mod results;
mod sums;
mod text;
mod trials;

pub use allocate::{Deal, Dealt, Objective, Replayed};
pub use answer::{Answer, AnswerLine, Basis, Goal, Kept};
pub use candidates::{Candidate, every_policy};
pub use cost::Cost;
pub use field::{Ask, Field, Ground, How, Measured, OfCache, OnTrace, Passes};
pub use resample::Interval;
pub use sums::{Figure, RowSums};
pub use trials::Estimate;

use crate::budgets::CacheBudgets;
use crate::error::{Error, Result};
use crate::experiment::{Budget, Listener};
use crate::policy::spec::PolicySpec;
use promise::Promise;
use resample::Resamples;

/// What is asked.
pub struct Question {
    /// On which traces, and how caches are kept.
    pub ground: Ground,
    /// The policies that are compared; none: [`every_policy`].
    pub policies: Vec<PolicySpec>,
    /// What is wanted.
    pub goal: Goal,
}

impl Question {
    /// Finds the answer.
    ///
    /// # Errors
    /// When a trace cannot be read, or the question makes no sense on it.
    pub fn answer(&self, passes: &dyn Passes, listener: &mut Listener<'_>) -> Result<Answer> {
        let policies = if self.policies.is_empty() { every_policy() } else { self.policies.clone() };
        let field = Field::open(&self.ground, listener)?;
        let lead = if field.has_loss() { Figure::PredictedLoss } else { Figure::PeakMisses };
        let how = How { budgets: &CacheBudgets::uniform(), from: 0, passes };
        let largest = field.positions() * 3 / 4;
        let lines = match self.goal {
            Goal::Budget(budget) => at_budget(&field, &policies, budget, lead, &how)?,
            Goal::Promise(Figure::PredictedLoss, _) if !field.has_loss() => {
                return Err(Error::usage(
                    "--loss: there is no predicted loss here: it needs queries, keys, values and gradients of all layers \
                     (record.py --what qkv --gradients 4), and all caches",
                ));
            }
            Goal::Promise(figure, most) => {
                let promise = Promise { figure, most, largest };
                promise.ranked(&field, &policies, &promise.search(&field, &policies, &how)?)
            }
        };
        if lines.is_empty() {
            return Err(Error::usage(
                "no policy is possible here: another budget, or fewer words of how caches are kept",
            ));
        }
        let basis = basis(&field, &policies, &lines, largest);
        Ok(Answer { goal: self.goal, lead, lines, basis })
    }
}

fn at_budget(
    field: &Field,
    policies: &[PolicySpec],
    budget: Budget,
    lead: Figure,
    how: &How<'_>,
) -> Result<Vec<AnswerLine>> {
    for trace in field.traces() {
        let (name, positions) = (&trace.info().name, trace.chosen.positions);
        let positions_held = budget.resolve(positions);
        if positions_held >= positions {
            return Err(Error::usage(format!(
                "{name}: a budget of {positions_held} holds all its {positions} positions: nothing is evicted, name less"
            )));
        }
    }
    let tried = at_budget::try_all(field, policies, budget, lead, how)?;
    Ok(at_budget::ranked(field, &tried, lead))
}

fn basis(field: &Field, policies: &[PolicySpec], lines: &[AnswerLine], largest: usize) -> Basis {
    let is_there = |spec: &&PolicySpec| lines.iter().any(|line| line.candidate.entry.name == spec.entry.name);
    Basis {
        traces: field.traces().map(|trace| trace.info().name.clone()).collect(),
        positions: field.positions(),
        prompts: field.prompts().collect(),
        blocks: field.blocks(),
        caches: field.caches(),
        largest,
        left_out: policies.iter().filter(|spec| !is_there(spec)).map(|spec| spec.entry.name).collect(),
    }
}
