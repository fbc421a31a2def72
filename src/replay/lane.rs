//! A lane: one policy or bound with concrete parameters on one cache.

use super::block::StepBlock;
use super::bound_lane::BoundLane;
use super::policy_lane::PolicyLane;
use super::tally::Tally;
use crate::error::Result;
use crate::position::Position;

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

impl StepMeasure {
    /// Adds what another query head's row showed.
    pub(super) fn add(&mut self, other: &StepMeasure) {
        self.retained += other.retained;
        self.heavy_hits += other.heavy_hits;
        self.heavy_possible += other.heavy_possible;
        self.pivotal_hits += other.pivotal_hits;
        self.pivotal_possible += other.pivotal_possible;
    }
}

/// A lane of either kind.
pub(super) enum Lane {
    Policy(PolicyLane),
    Bound(BoundLane),
}

impl Lane {
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
