//! One lane of the plan on every cache that is replayed side by side.

use super::bound_lane::BoundLane;
use super::coupled_handle::handles;
use super::lane::Lane;
use super::lane_meters::Counts;
use super::lane_plan::LanePlan;
use super::lane_site::LaneSite;
use super::observer::StepRecord;
use super::policy_lane::PolicyLane;
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::meter::Tally;
use crate::policy::coupled::CoupledSetting;
use crate::policy::entry::{Make, Setting};
use crate::policy::future::{Departing, Departures};

/// One lane for each cache.
pub(super) enum CacheLanes {
    /// Each cache on its own: batches are replayed cache by cache.
    Apart(Vec<Lane>),
    /// One policy serves all caches: batches are replayed step by step, each cache in turn.
    Coupled(Vec<PolicyLane>),
}

/// What is needed to make a lane on a cache.
pub(super) struct LaneStart<'a> {
    /// The lane's setting there, with the budget in force.
    pub setting: Setting,
    pub site: LaneSite<'a>,
    /// Where the plan knows the future, or replays decisions: when each position goes.
    pub departures: Option<&'a Departures>,
}

impl CacheLanes {
    pub(super) fn new(plan: &LanePlan, starts: &[LaneStart<'_>]) -> CacheLanes {
        let apart = |LaneStart { setting, site, departures }: &LaneStart<'_>| match plan.entry.make {
            Make::Policy(make) => Lane::Policy(PolicyLane::new(site, make(setting))),
            Make::Bound(make) => Lane::Bound(BoundLane::new(site, make(setting))),
            Make::Future { .. } => {
                let departures = departures.expect("the future is planned before the replay").clone();
                Lane::Policy(PolicyLane::new(site, Box::new(Departing::new(departures, setting.budget))))
            }
            Make::Played => {
                let departures = departures.expect("decisions are checked before the replay").clone();
                Lane::Policy(PolicyLane::playing(site, departures))
            }
            Make::Coupled(_) => unreachable!("coupled lanes are made together"),
        };
        let Make::Coupled(make) = plan.entry.make else {
            return CacheLanes::Apart(starts.iter().map(apart).collect());
        };
        let budgets = starts.iter().map(|start| start.setting.budget).collect();
        let policy = make(&CoupledSetting { budgets, values: plan.values.clone() });
        let lanes =
            handles(policy, starts.len()).zip(starts).map(|(policy, start)| PolicyLane::new(&start.site, policy));
        CacheLanes::Coupled(lanes.collect())
    }

    /// Replays a batch of every cache; where logs are given, one for each cache, each step is
    /// recorded.
    pub(super) fn run(
        &mut self,
        batches: &[StepBatch],
        counts: &mut Counts,
        mut logs: Option<&mut [Vec<StepRecord>]>,
    ) -> Result<()> {
        match self {
            CacheLanes::Apart(lanes) => {
                for (cache, (lane, batch)) in lanes.iter_mut().zip(batches).enumerate() {
                    lane.run(batch, counts, logs.as_deref_mut().map(|logs| &mut logs[cache]))?;
                }
            }
            CacheLanes::Coupled(lanes) => {
                let steps = batches.iter().map(StepBatch::len).max().unwrap_or(0);
                for step in 0..steps {
                    run_step(lanes, batches, step, logs.as_deref_mut())?;
                }
                lanes.iter_mut().zip(batches).try_for_each(|(lane, batch)| lane.end_batch(batch))?;
            }
        }
        Ok(())
    }

    /// One tally for each cache.
    pub(super) fn finish(self) -> Vec<Tally> {
        match self {
            CacheLanes::Apart(lanes) => lanes.into_iter().map(Lane::finish).collect(),
            CacheLanes::Coupled(lanes) => lanes.into_iter().map(PolicyLane::finish).collect(),
        }
    }
}

/// One step of coupled lanes, in the order of caches; those whose rows have ended are passed over.
fn run_step(
    lanes: &mut [PolicyLane],
    batches: &[StepBatch],
    step: usize,
    mut logs: Option<&mut [Vec<StepRecord>]>,
) -> Result<()> {
    for (cache, (lane, batch)) in lanes.iter_mut().zip(batches).enumerate() {
        if step < batch.len() {
            lane.step(batch, step, logs.as_deref_mut().map(|logs| &mut logs[cache]))?;
        }
    }
    Ok(())
}
