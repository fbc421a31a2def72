//! A cohort: the caches that are replayed side by side, their rows, and the lanes that see them.
//!
//! Most cohorts are a single cache. Caches stand together where a coupled lane serves them: those
//! of one head, in the order of layers.

use super::cache_lanes::{CacheLanes, LaneStart};
use super::caches::CachePlan;
use super::context::{Context, Outcome};
use super::feed::Feeds;
use super::lane_meters::Counts;
use super::lane_plan::LanePlan;
use super::lane_site::LaneSite;
use super::observer::Stage;
use super::planning::Planned;
use super::row_watch::RowWatch;
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::needs::Needs;
use crate::policy::entry::Setting;
use rayon::prelude::*;

/// Indices of the caches of each cohort.
pub(super) fn cohorts_of(caches: &[CachePlan], lanes: &[LanePlan]) -> Vec<Vec<usize>> {
    let mut cohorts: Vec<Vec<usize>> = Vec::new();
    let coupled = lanes.iter().any(|lane| lane.entry.is_coupled());
    for (index, cache) in caches.iter().enumerate() {
        let same_head = |cohort: &&mut Vec<usize>| caches[cohort[0]].label.head == cache.label.head;
        let cohort = if coupled { cohorts.iter_mut().find(same_head) } else { None };
        match cohort {
            Some(cohort) => cohort.push(index),
            None => cohorts.push(vec![index]),
        }
    }
    cohorts.iter_mut().for_each(|cohort| cohort.sort_by_key(|index| caches[*index].label.layer));
    cohorts
}

/// Caches on their way through the replay.
pub(super) struct Cohort<'a> {
    context: Context<'a>,
    caches: Vec<&'a CachePlan>,
    watches: Vec<RowWatch<'a>>,
    lanes: Vec<CacheLanes>,
    counts: Counts,
    /// Whether the work on a batch is spread over threads.
    spread: bool,
}

impl<'a> Cohort<'a> {
    /// Makes the lanes of the caches with these indices.
    pub(super) fn new(
        context: Context<'a>,
        caches: &'a [CachePlan],
        indices: &[usize],
        planned: &Planned,
        spread: bool,
    ) -> Result<Cohort<'a>> {
        let on_caches = |(lane, plan): (usize, &LanePlan)| {
            let start = |cache: &usize| -> Result<LaneStart<'_>> {
                let setting = plan.setting_with(&caches[*cache], context.budgets[lane][*cache]);
                let site = site(context, &caches[*cache], plan, &setting);
                Ok(LaneStart {
                    setting,
                    site,
                    departures: plan.departures(&caches[*cache]).or(planned.get((*cache, lane))),
                })
            };
            let starts = indices.iter().map(start).collect::<Result<Vec<_>>>()?;
            Ok(CacheLanes::new(plan, &starts))
        };
        let lanes = context.lanes.iter().enumerate().map(on_caches).collect::<Result<Vec<CacheLanes>>>()?;
        let caches: Vec<&CachePlan> = indices.iter().map(|index| &caches[*index]).collect();
        let watches = watches(context, &caches);
        Ok(Cohort { context, caches, watches, lanes, counts: Counts::default(), spread })
    }

    /// Replays all batches; one outcome for each cache.
    pub(super) fn replay(mut self) -> Result<Vec<Outcome>> {
        let steps = self.context.options.steps.unwrap_or(usize::MAX);
        let mut feeds = Feeds::open(self.context.source, &self.caches, steps)?;
        let (mut batches, mut ahead) = (feeds.batches(), feeds.batches());
        let context = self.context;
        let mut fill = |batches: &mut [StepBatch]| context.time(Stage::Read, || feeds.fill(batches));
        let mut left = fill(&mut batches)?;
        while left > 0 {
            left = if self.spread {
                let (read, worked) = rayon::join(|| fill(&mut ahead), || self.work(&mut batches));
                worked.and(read)?
            } else {
                self.work(&mut batches)?;
                fill(&mut ahead)?
            };
            std::mem::swap(&mut batches, &mut ahead);
        }
        Ok(self.finish())
    }

    fn work(&mut self, batches: &mut [StepBatch]) -> Result<()> {
        let context = self.context;
        context.time(Stage::Select, || {
            self.watches.iter_mut().zip(&mut *batches).try_for_each(|(watch, batch)| watch.find(batch))
        })?;
        let batches = &*batches;
        context.time(Stage::Lanes, || self.run_lanes(batches))?;
        let (rows, weights) = batches.iter().map(StepBatch::size).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        context.observer.rows(rows as u64, weights as u64);
        Ok(())
    }

    fn run_lanes(&mut self, batches: &[StepBatch]) -> Result<()> {
        if self.context.observer.needs().has(Needs::STEP_RECORDS) {
            self.run_recorded(batches)?;
        } else if self.spread && self.lanes.len() > 1 {
            let results: Vec<Result<()>> = self
                .lanes
                .par_iter_mut()
                .map_init(Counts::default, |counts, lane| lane.run(batches, counts, None))
                .collect();
            results.into_iter().collect::<Result<()>>()?;
        } else {
            self.lanes.iter_mut().try_for_each(|lane| lane.run(batches, &mut self.counts, None))?;
        }
        Ok(())
    }

    /// Records what every lane does, and shows the records cache by cache.
    fn run_recorded(&mut self, batches: &[StepBatch]) -> Result<()> {
        let mut logs = vec![vec![Vec::new(); self.caches.len()]; self.lanes.len()];
        let counts = &mut self.counts;
        self.lanes.iter_mut().zip(&mut logs).try_for_each(|(lane, logs)| lane.run(batches, counts, Some(logs)))?;
        for (index, cache) in self.caches.iter().enumerate() {
            let records: Vec<_> = logs.iter_mut().map(|logs| std::mem::take(&mut logs[index])).collect();
            self.context.observer.steps(cache, &records)?;
        }
        Ok(())
    }

    fn finish(self) -> Vec<Outcome> {
        self.watches.into_iter().for_each(RowWatch::finish);
        let mut tallies = vec![Vec::new(); self.caches.len()];
        for lane in self.lanes {
            lane.finish().into_iter().zip(&mut tallies).for_each(|(tally, tallies)| tallies.push(tally));
        }
        let caches = self.caches.into_iter().cloned();
        caches.zip(tallies).map(|(cache, tallies)| Outcome { cache, tallies }).collect()
    }
}

fn site<'a>(context: Context<'a>, cache: &CachePlan, plan: &LanePlan, setting: &Setting) -> LaneSite<'a> {
    let judged = context.observer.needs().has(Needs::SCORES);
    LaneSite { judged, ..LaneSite::new(context.source.info(), context.options, cache, plan, setting) }
}

fn watches<'a>(context: Context<'a>, caches: &[&'a CachePlan]) -> Vec<RowWatch<'a>> {
    let Context { source, options, .. } = context;
    let watch = |cache: &&'a CachePlan| RowWatch::new(source, cache, options.heavy_hitters, options.bad_rows);
    caches.iter().map(watch).collect()
}
