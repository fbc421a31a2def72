//! A lane: one policy, bound or selector with concrete parameters on one cache.

use super::bound_lane::BoundLane;
use super::kept_outputs::Changes;
use super::lane_meters::Counts;
use super::observer::StepRecord;
use super::policy_lane::PolicyLane;
use super::selector_lane::SelectorLane;
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::meter::Tally;

/// A lane of each kind.
#[expect(clippy::large_enum_variant, reason = "most lanes are of the larger kind")]
pub(super) enum Lane {
    Policy(PolicyLane),
    Bound(BoundLane),
    Selector(SelectorLane),
}

impl Lane {
    /// Replays a batch of steps; records each where a log is given.
    pub(super) fn run(
        &mut self,
        batch: &StepBatch,
        counts: &mut Counts,
        log: Option<&mut Vec<StepRecord>>,
    ) -> Result<()> {
        match self {
            Lane::Policy(lane) => lane.run(batch, counts, log),
            Lane::Bound(lane) => {
                lane.run(batch, counts);
                Ok(())
            }
            Lane::Selector(lane) => {
                lane.run(batch, counts);
                Ok(())
            }
        }
    }

    /// By how much the outputs of a batch were off; `None` where nobody asked, of selectors.
    pub(super) fn changes(&self) -> Option<&Changes> {
        match self {
            Lane::Policy(lane) => lane.changes(),
            Lane::Bound(lane) => lane.changes(),
            Lane::Selector(_) => None,
        }
    }

    pub(super) fn finish(self) -> Tally {
        match self {
            Lane::Policy(lane) => lane.finish(),
            Lane::Bound(lane) => lane.finish(),
            Lane::Selector(lane) => lane.finish(),
        }
    }
}
