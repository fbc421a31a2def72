//! One lane of the plan on every kept set that is replayed side by side.

use super::bound_lane::BoundLane;
use super::coupled_handle::handles;
use super::kept_outputs::Changes;
use super::lane::Lane;
use super::lane_meters::Counts;
use super::lane_plan::LanePlan;
use super::lane_site::LaneSite;
use super::layer_outputs::LayerLane;
use super::observer::StepRecord;
use super::policy_lane::PolicyLane;
use super::prompt_cuts::{Cut, CutOnce};
use super::schedule::Schedule;
use super::section::SetPlace;
use super::selector_lane::SelectorLane;
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::meter::Tally;
use crate::needs::Needs;
use crate::policy::coupled::CoupledSetting;
use crate::policy::entry::{Make, Setting};
use crate::policy::future::{Departing, Departures};
use crate::trace::Head;
use std::collections::BTreeMap;

/// One lane for each kept set.
pub(super) struct CacheLanes {
    places: Vec<SetPlace>,
    lanes: Lanes,
    /// Where figures are made of whole layers.
    layers: LayerLane,
}

enum Lanes {
    /// Each set on its own: batches are replayed set by set.
    Apart(Vec<Lane>),
    /// One policy serves the sets of a head in all layers: batches are replayed step by step, each set in turn.
    Coupled(Vec<PolicyLane>),
}

/// What is needed to make a lane on a kept set.
pub(super) struct LaneStart<'a> {
    pub place: SetPlace,
    /// The head whose sets a coupled policy serves together.
    pub head: &'a Head,
    /// The lane's setting there, with the budget in force.
    pub setting: Setting,
    pub site: LaneSite<'a>,
    /// Where the plan knows the future, or replays decisions: when each position goes.
    pub departures: Option<&'a Departures>,
    /// Where the plan cuts at the prompt's end: what stays, if not everything.
    pub cut: Option<&'a Cut>,
}

impl CacheLanes {
    pub(super) fn new(plan: &LanePlan, starts: &[LaneStart<'_>]) -> CacheLanes {
        let apart = |LaneStart { setting, site, departures, cut, .. }: &LaneStart<'_>| match plan.entry.make {
            Make::Policy(make) => Lane::Policy(PolicyLane::new(site, make(setting))),
            Make::PromptEnd(_) => {
                // What it keeps is its budget here: as the cut says, or everything.
                let schedule = Schedule { budget: cut.map(|cut| cut.kept), ..site.schedule };
                let mut counted = site.counted;
                counted.budget = counted.budget.map(|budget| cut.map_or(budget, |cut| cut.kept));
                let site = LaneSite { schedule, counted, needs: Needs::NOTHING, ..*site };
                Lane::Policy(PolicyLane::new(&site, Box::new(CutOnce::new(*cut))))
            }
            Make::Bound(make) => Lane::Bound(BoundLane::new(site, make(setting))),
            Make::Selector(make) => Lane::Selector(SelectorLane::new(site, make(setting, site.heads.len()))),
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
            let lanes = Lanes::Apart(starts.iter().map(apart).collect());
            let places: Vec<SetPlace> = starts.iter().map(|start| start.place).collect();
            return CacheLanes { layers: LayerLane::new(&places), places, lanes };
        };
        let mut heads: BTreeMap<&Head, Vec<&LaneStart<'_>>> = BTreeMap::new();
        starts.iter().for_each(|start| heads.entry(start.head).or_default().push(start));
        let mut lanes: Vec<(SetPlace, PolicyLane)> = Vec::new();
        for starts in heads.into_values() {
            let policy = make(&CoupledSetting { caches: starts.iter().map(|start| start.setting.clone()).collect() });
            let lane = |(policy, start): (_, &&LaneStart<'_>)| (start.place, PolicyLane::new(&start.site, policy));
            lanes.extend(handles(policy, starts.len()).zip(&starts).map(lane));
        }
        lanes.sort_by_key(|(place, _)| starts.iter().position(|start| start.place == *place));
        let (places, lanes): (Vec<SetPlace>, _) = lanes.into_iter().unzip();
        CacheLanes { layers: LayerLane::new(&places), places, lanes: Lanes::Coupled(lanes) }
    }

    /// Number of kept sets.
    pub(super) fn sets(&self) -> usize {
        self.places.len()
    }

    /// Replays a batch of every section; where logs are given, one for each kept set, each step is
    /// recorded.
    pub(super) fn run(
        &mut self,
        batches: &[StepBatch],
        counts: &mut Counts,
        mut logs: Option<&mut [Vec<StepRecord>]>,
    ) -> Result<()> {
        match &mut self.lanes {
            Lanes::Apart(lanes) => {
                for (set, (lane, place)) in lanes.iter_mut().zip(&self.places).enumerate() {
                    lane.run(&batches[place.section], counts, logs.as_deref_mut().map(|logs| &mut logs[set]))?;
                }
            }
            Lanes::Coupled(lanes) => {
                let batches: Vec<&StepBatch> = self.places.iter().map(|place| &batches[place.section]).collect();
                lanes.iter_mut().zip(&batches).for_each(|(lane, batch)| lane.start_batch(batch));
                let steps = batches.iter().map(|batch| batch.len()).max().unwrap_or(0);
                for step in 0..steps {
                    run_step(lanes, &batches, step, logs.as_deref_mut())?;
                }
                lanes.iter_mut().zip(batches).try_for_each(|(lane, batch)| lane.end_batch(batch))?;
            }
        }
        self.measure_layers(batches);
        Ok(())
    }

    /// Adds up what the sets of each layer changed together.
    fn measure_layers(&mut self, batches: &[StepBatch]) {
        if batches.iter().all(|batch| batch.layer.is_none()) {
            return;
        }
        let changes: Option<Vec<&Changes>> = match &self.lanes {
            Lanes::Apart(lanes) => lanes.iter().map(Lane::changes).collect(),
            Lanes::Coupled(lanes) => lanes.iter().map(PolicyLane::changes).collect(),
        };
        changes.into_iter().for_each(|changes| self.layers.measure(batches, &self.places, &changes));
    }

    /// The tally of each kept set.
    pub(super) fn finish(self) -> Vec<(SetPlace, Tally)> {
        let mut tallies: Vec<Tally> = match self.lanes {
            Lanes::Apart(lanes) => lanes.into_iter().map(Lane::finish).collect(),
            Lanes::Coupled(lanes) => lanes.into_iter().map(PolicyLane::finish).collect(),
        };
        self.layers.finish(&self.places, &mut tallies);
        self.places.into_iter().zip(tallies).collect()
    }
}

/// One step of coupled lanes, in the order of sets; those whose rows have ended are passed over.
fn run_step(
    lanes: &mut [PolicyLane],
    batches: &[&StepBatch],
    step: usize,
    mut logs: Option<&mut [Vec<StepRecord>]>,
) -> Result<()> {
    for (set, (lane, batch)) in lanes.iter_mut().zip(batches).enumerate() {
        if step < batch.len() {
            lane.step(batch, step, logs.as_deref_mut().map(|logs| &mut logs[set]))?;
        }
    }
    Ok(())
}
