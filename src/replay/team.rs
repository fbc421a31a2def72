//! A team: one lane of the plan on every cache that is replayed side by side.

use super::block::StepBlock;
use super::bound_lane::BoundLane;
use super::coupled::members;
use super::lane::{Lane, StepRecord};
use super::plan::LanePlan;
use super::policy_lane::{LaneSetup, PolicyLane};
use super::tally::Tally;
use crate::error::Result;
use crate::policy::coupled::CoupledSetting;
use crate::policy::future::{Schedule, Scheduled};
use crate::policy::table::{Make, Setting};

/// One lane for each cache.
pub(super) enum Team {
    /// Each cache on its own: blocks are replayed cache by cache.
    Apart(Vec<Lane>),
    /// One policy serves all caches: blocks are replayed step by step, each cache in turn.
    Coupled(Vec<PolicyLane>),
}

/// What a team needs to know of a cache.
pub(super) struct Post<'a> {
    /// The lane's setting there, with the budget in force.
    pub setting: Setting,
    /// What the lane is told of the cache and of the run.
    pub setup: LaneSetup,
    /// Where the plan knows the future: when each position goes.
    pub schedule: Option<&'a Schedule>,
}

impl Team {
    pub(super) fn new(plan: &LanePlan, posts: &[Post<'_>]) -> Team {
        let apart = |Post { setting, setup, schedule }: &Post<'_>| match plan.entry.make {
            Make::Policy(make) => Lane::Policy(PolicyLane::new(*setup, make(setting))),
            Make::Bound(make) => Lane::Bound(BoundLane::new(setup, make(setting))),
            Make::Future { .. } => {
                let schedule = schedule.expect("the future is planned before the replay").clone();
                Lane::Policy(PolicyLane::new(*setup, Box::new(Scheduled::new(schedule, setting.budget))))
            }
            Make::Coupled(_) => unreachable!("coupled lanes are made together"),
        };
        let Make::Coupled(make) = plan.entry.make else {
            return Team::Apart(posts.iter().map(apart).collect());
        };
        let budgets = posts.iter().map(|post| post.setting.budget).collect();
        let policy = make(&CoupledSetting { budgets, values: plan.values.clone() });
        let lanes = members(policy, posts.len()).zip(posts).map(|(policy, post)| PolicyLane::new(post.setup, policy));
        Team::Coupled(lanes.collect())
    }

    /// Replays a block of every cache; where logs are given, one for each cache, each step is
    /// recorded.
    pub(super) fn run(&mut self, blocks: &[StepBlock], mut logs: Option<&mut [Vec<StepRecord>]>) -> Result<()> {
        match self {
            Team::Apart(lanes) => {
                for (cache, (lane, block)) in lanes.iter_mut().zip(blocks).enumerate() {
                    lane.run(block, logs.as_deref_mut().map(|logs| &mut logs[cache]))?;
                }
            }
            Team::Coupled(lanes) => {
                let steps = blocks.iter().map(StepBlock::len).max().unwrap_or(0);
                for step in 0..steps {
                    run_step(lanes, blocks, step, logs.as_deref_mut())?;
                }
            }
        }
        Ok(())
    }

    /// One tally for each cache.
    pub(super) fn finish(self) -> Vec<Tally> {
        match self {
            Team::Apart(lanes) => lanes.into_iter().map(Lane::finish).collect(),
            Team::Coupled(lanes) => lanes.into_iter().map(PolicyLane::finish).collect(),
        }
    }
}

/// One step of coupled lanes, in the order of caches; those whose rows have ended are passed over.
fn run_step(
    lanes: &mut [PolicyLane],
    blocks: &[StepBlock],
    step: usize,
    mut logs: Option<&mut [Vec<StepRecord>]>,
) -> Result<()> {
    for (cache, (lane, block)) in lanes.iter_mut().zip(blocks).enumerate() {
        if step < block.len() {
            lane.step(block, step, logs.as_deref_mut().map(|logs| &mut logs[cache]))?;
        }
    }
    Ok(())
}
