//! A lane: one policy or bound with concrete parameters on one cache.

use super::block::StepBlock;
use super::bound_lane::BoundLane;
use super::plan::{CachePlan, LanePlan};
use super::policy_lane::PolicyLane;
use super::run::ViewKind;
use super::tally::Tally;
use crate::error::Result;
use crate::policy::table::{Make, Setting};
use crate::position::Position;
use crate::trace::SelfAttention;

/// What a lane did in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Position of the token that attended.
    pub step: Position,
    /// Positions held after eviction.
    pub kept: usize,
    /// What the step's rows showed, pooled over query heads; `None` without information.
    pub measured: Option<StepMeasure>,
    /// Positions evicted after the row, ascending.
    pub victims: Vec<Position>,
}

/// What was kept of one step's rows.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct StepMeasure {
    /// Kept mass.
    pub retained: f64,
    /// Kept heavy positions.
    pub heavy_hits: u64,
    /// Heavy positions.
    pub heavy_possible: u64,
    /// Kept pivotal positions.
    pub pivotal_hits: u64,
    /// Pivotal positions.
    pub pivotal_possible: u64,
}

/// A lane of either kind.
pub(super) enum Lane {
    Policy(PolicyLane),
    Bound(BoundLane),
}

impl Lane {
    pub(super) fn new(plan: &LanePlan, cache: &CachePlan, kind: SelfAttention, view: ViewKind) -> Lane {
        let asked = plan.setting(cache.place);
        let budget = plan.budget.map(|_| (plan.entry.cache_budget)(&asked));
        let setting = Setting { budget: budget.unwrap_or(usize::MAX), ..asked };
        match plan.entry.make {
            Make::Policy(make) => Lane::Policy(PolicyLane::new(plan.entry.name, make(&setting), budget, kind, view)),
            Make::Bound(make) => Lane::Bound(BoundLane::new(make(&setting), setting.budget, kind)),
        }
    }

    /// Replays a block of steps; records each where a log is given.
    pub(super) fn run(&mut self, block: &StepBlock, log: Option<&mut Vec<StepRecord>>) -> Result<()> {
        match self {
            Lane::Policy(lane) => lane.run(block, log),
            Lane::Bound(lane) => {
                lane.run(block);
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Tally {
        match self {
            Lane::Policy(lane) => lane.finish(),
            Lane::Bound(lane) => lane.finish(),
        }
    }
}
