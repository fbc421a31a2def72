//! A cohort: the sections that are replayed side by side, their rows, and the lanes that see them.

use super::cache_lanes::{CacheLanes, LaneStart};
use super::caches::CachePlan;
use super::context::Context;
use super::feed::Feeds;
use super::lane_meters::Counts;
use super::lane_plan::LanePlan;
use super::lane_site::LaneSite;
use super::observer::{Stage, StepRecord};
use super::outputs::SectionOutputs;
use super::planning::Planned;
use super::row_watch::RowWatch;
use super::section::{Section, SetPlace, sets};
use super::step_batch::StepBatch;
use crate::error::{Error, Result};
use crate::keeping::Scope;
use crate::meter::Tally;
use crate::needs::Needs;
use crate::policy::entry::Setting;
use crate::policy::sight::CacheTensors;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sections on their way through the replay.
pub(super) struct Cohort<'a> {
    context: Context<'a>,
    sections: &'a [Section<'a>],
    watches: Vec<RowWatch<'a>>,
    /// For each section, where outputs are measured.
    outputs: Vec<Option<SectionOutputs>>,
    lanes: Vec<CacheLanes>,
    counts: Counts,
    /// Whether the work on a batch is spread over threads.
    spread: bool,
}

impl<'a> Cohort<'a> {
    /// Makes the lanes of these sections.
    ///
    /// # Errors
    /// When what they have besides rows cannot be read.
    pub(super) fn new(
        context: Context<'a>,
        sections: &'a [Section<'a>],
        planned: &Planned,
        spread: bool,
    ) -> Result<Cohort<'a>> {
        let outputs = outputs(context, sections)?;
        let tensors = cache_tensors(context, sections, &outputs);
        let on_sets = |(lane, plan): (usize, &LanePlan)| {
            let start = |place: SetPlace| -> LaneStart<'_> {
                let set = context.set(plan.keeping.scope, place.index);
                let setting = plan.setting_with(set, context.budgets[lane][place.index]);
                let seen = tensors.get(&(place.section, place.heads.start)).filter(|_| looks_at_tensors(plan));
                let site = LaneSite { tensors: seen, ..site(context, set, place, plan, &setting) };
                let task = (place.index, lane);
                let (departures, cut) = (plan.departures(set).or(planned.get(task)), planned.cut(task));
                LaneStart { place, head: &set.label.head, setting, site, departures, cut }
            };
            let starts: Vec<LaneStart<'_>> = sets(sections, plan.keeping.scope).into_iter().map(start).collect();
            CacheLanes::new(plan, &starts)
        };
        let lanes = context.lanes.iter().enumerate().map(on_sets).collect();
        let watches = watches(context, sections);
        Ok(Cohort { context, sections, watches, outputs, lanes, counts: Counts::default(), spread })
    }

    /// Replays all batches; for each lane, the tally of each of its kept sets here.
    pub(super) fn replay(mut self) -> Result<Vec<Vec<(SetPlace, Tally)>>> {
        let steps = self.context.options.steps.unwrap_or(usize::MAX);
        let wholes: Vec<&CachePlan> = self.sections.iter().map(|section| &*section.whole).collect();
        let mut feeds = Feeds::open(self.context.source, &wholes, steps)?;
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
            self.watches.iter_mut().zip(&mut *batches).try_for_each(|(watch, batch)| watch.find(batch))?;
            let outputs = self.outputs.iter().zip(&mut *batches);
            outputs.for_each(|(outputs, batch)| outputs.iter().for_each(|outputs| outputs.find(batch)));
            Ok::<(), Error>(())
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

    /// Records what every lane does, and shows the records set by set: those of caches, then those of layers.
    fn run_recorded(&mut self, batches: &[StepBatch]) -> Result<()> {
        let counts = &mut self.counts;
        let mut logs: Vec<Vec<Vec<StepRecord>>> = Vec::new();
        for lane in &mut self.lanes {
            let mut of_sets = vec![Vec::new(); lane.sets()];
            lane.run(batches, counts, Some(&mut of_sets))?;
            logs.push(of_sets);
        }
        for scope in [Scope::Head, Scope::Layer] {
            self.show_records(scope, &mut logs)?;
        }
        Ok(())
    }

    /// Shows the records of the kept sets of a scope; lanes of another have none.
    fn show_records(&self, scope: Scope, logs: &mut [Vec<Vec<StepRecord>>]) -> Result<()> {
        let plans = self.context.lanes;
        if plans.iter().all(|plan| plan.keeping.scope != scope) {
            return Ok(());
        }
        for (at, place) in sets(self.sections, scope).into_iter().enumerate() {
            let of_lane = |(plan, logs): (&LanePlan, &mut Vec<Vec<StepRecord>>)| {
                if plan.keeping.scope == scope { std::mem::take(&mut logs[at]) } else { Vec::new() }
            };
            let records: Vec<_> = plans.iter().zip(&mut *logs).map(of_lane).collect();
            self.context.observer.steps(self.context.set(scope, place.index), &records)?;
        }
        Ok(())
    }

    fn finish(self) -> Vec<Vec<(SetPlace, Tally)>> {
        self.watches.into_iter().for_each(RowWatch::finish);
        self.lanes.into_iter().map(CacheLanes::finish).collect()
    }
}

fn site<'a>(
    context: Context<'a>,
    cache: &CachePlan,
    place: SetPlace,
    plan: &LanePlan,
    setting: &Setting,
) -> LaneSite<'a> {
    let judged = context.observer.needs().has(Needs::SCORES);
    LaneSite { judged, ..LaneSite::new(context.source.info(), context.options, (cache, place.heads), plan, setting) }
}

/// What outputs are measured with, where a meter looks at them.
fn outputs(context: Context<'_>, sections: &[Section<'_>]) -> Result<Vec<Option<SectionOutputs>>> {
    let Context { source, options, .. } = context;
    let measured = options.meters.iter().fold(Needs::NOTHING, |needs, plan| needs.and(plan.entry.needs));
    let needs = [measured, of_policies(context)];
    let open = |section: &Section<'_>| SectionOutputs::open(source, &section.whole, needs, options.output_every);
    sections.iter().map(open).collect()
}

/// What policies look at besides rows.
fn of_policies(context: Context<'_>) -> Needs {
    let needs = context.lanes.iter().map(|plan| plan.entry.needs);
    needs.fold(Needs::NOTHING, Needs::and).common(Needs::OF_TRACES)
}

fn looks_at_tensors(plan: &LanePlan) -> bool {
    plan.entry.needs.has_any(Needs::OF_TRACES)
}

/// What policies see of each cache, by section and first head: made once for all lanes.
fn cache_tensors(
    context: Context<'_>,
    sections: &[Section<'_>],
    outputs: &[Option<SectionOutputs>],
) -> BTreeMap<(usize, usize), Arc<CacheTensors>> {
    let needs = of_policies(context);
    if needs == Needs::NOTHING {
        return BTreeMap::new();
    }
    let of_place = |place: SetPlace| {
        let tensors = outputs[place.section].as_ref()?.of_cache(place.heads, needs);
        Some(((place.section, place.heads.start), Arc::new(tensors)))
    };
    sets(sections, Scope::Head).into_iter().filter_map(of_place).collect()
}

fn watches<'a>(context: Context<'a>, sections: &'a [Section<'a>]) -> Vec<RowWatch<'a>> {
    let Context { source, options, .. } = context;
    let watch =
        |section: &'a Section<'a>| RowWatch::new(source, &section.whole, options.heavy_hitters, options.bad_rows);
    sections.iter().map(watch).collect()
}
