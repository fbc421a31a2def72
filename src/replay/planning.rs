//! Plans ahead of the replay what the bounds that know the future evict, and when.

use super::caches::CachePlan;
use super::context::Context;
use super::feed::Feeds;
use super::lane_plan::LanePlan;
use super::options::Options;
use super::parallel::in_parallel;
use super::prompt_cuts::{Cut, cuts};
use super::row_watch::RowWatch;
use super::scale::Scale;
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::keeping::PromptMode;
use crate::kernels::sum;
use crate::policy::entry::Make;
use crate::policy::future::{Departures, Evictions, Future};
use crate::policy::future_greedy::FutureGreedy;
use crate::position::Position;
use crate::trace::Source;
use std::borrow::Cow;
use std::cell::Cell;

/// A plan to be made: the kept set, among those of the lane's scope, and the lane it is for.
type Task = (usize, usize);

/// The plans of a run, one for each lane that knows the future or cuts at the prompt's end, and kept set.
pub(super) struct Planned {
    /// By lane, then kept set.
    of: Vec<Vec<Option<Departures>>>,
    /// The same of lanes that cut at the prompt's end.
    cuts: Vec<Vec<Option<Cut>>>,
}

impl Planned {
    /// The plan for a lane on a kept set; `None` where the lane does not know the future.
    pub(super) fn get(&self, (set, lane): Task) -> Option<&Departures> {
        self.of[lane].get(set)?.as_ref()
    }

    /// What a lane that cuts at the prompt's end keeps on a kept set; `None` where that is everything.
    pub(super) fn cut(&self, (set, lane): Task) -> Option<&Cut> {
        self.cuts[lane].get(set)?.as_ref()
    }

    fn set(&mut self, (set, lane): Task, departures: Departures) {
        self.of[lane][set] = Some(departures);
    }
}

/// Positions of a cache that are replayed.
fn positions(source: &dyn Source, cache: &CachePlan, options: &Options) -> usize {
    let info = source.info();
    let rows = cache.streams.iter().map(|stream| info.streams[*stream].rows).max().unwrap_or(0);
    info.first_position.index() + rows.min(options.steps.unwrap_or(usize::MAX))
}

/// Bytes that planning a lane on a cache with this budget needs beyond the replay; 0 for what does not know
/// the future.
pub fn planning_bytes(
    source: &dyn Source,
    cache: &CachePlan,
    lane: &LanePlan,
    budget: usize,
    options: &Options,
) -> u64 {
    let Make::Future { bytes, .. } = lane.entry.make else { return 0 };
    let positions = positions(source, cache, options);
    // A prompt that is cut once needs no search.
    let search = if is_once(lane) { FutureGreedy::bytes(positions) } else { bytes(positions, budget) };
    search.saturating_add((size_of::<u128>() * positions) as u64)
}

/// Evictions that are planned ahead for a lane on a cache with this budget, by which
/// [`Observer::planned`](super::Observer::planned) tells how far planning is; 0 for what does not know the
/// future.
pub fn evictions_planned(
    source: &dyn Source,
    cache: &CachePlan,
    lane: &LanePlan,
    budget: usize,
    options: &Options,
) -> u64 {
    let Make::Future { .. } = lane.entry.make else { return 0 };
    let positions = positions(source, cache, options);
    let admitted = if is_once(lane) { positions.min(lane.keeping.prompt.len) } else { positions };
    admitted.saturating_sub(budget) as u64
}

fn is_once(lane: &LanePlan) -> bool {
    lane.keeping.prompt.mode == PromptMode::Once
}

/// Makes the plans of all lanes that know the future, as many at a time as the memory allows.
pub(super) fn plan_ahead(context: Context<'_>) -> Result<Planned> {
    let Context { source, lanes, sets, budgets, options, .. } = context;
    let caches = sets.caches;
    let sets: Vec<Cow<'_, [CachePlan]>> = lanes.iter().map(|lane| knowing_sets(lane, caches)).collect();
    let tasks = tasks(&sets);
    let bytes =
        |(set, lane): &Task| planning_bytes(source, &sets[*lane][*set], &lanes[*lane], budgets[*lane][*set], options);
    let most = tasks.iter().map(bytes).max();
    let at_once = (options.max_memory / most.unwrap_or(0).max(1)).clamp(1, tasks.len().max(1) as u64) as usize;
    let cuts = lanes.iter().zip(budgets).map(|(lane, budgets)| cuts(context, lane, budgets)).collect::<Result<_>>()?;
    let mut planned = Planned { of: sets.iter().map(|sets| vec![None; sets.len()]).collect(), cuts };
    for some in tasks.chunks(at_once) {
        let plan = |(set, lane): &Task| plan(context, &sets[*lane][*set], &lanes[*lane], budgets[*lane][*set]);
        let plans = in_parallel(some, plan)?;
        some.iter().zip(plans).for_each(|(task, departures)| planned.set(*task, departures));
    }
    Ok(planned)
}

/// The kept sets of a lane that knows the future; none of any other.
fn knowing_sets<'a>(lane: &LanePlan, caches: &'a [CachePlan]) -> Cow<'a, [CachePlan]> {
    if matches!(lane.entry.make, Make::Future { .. }) { lane.sets_on(caches) } else { Cow::Borrowed(&[]) }
}

/// The kept sets of every lane, those of one cache side by side.
fn tasks(sets: &[Cow<'_, [CachePlan]>]) -> Vec<Task> {
    let most = sets.iter().map(|sets| sets.len()).max().unwrap_or(0);
    let of_set = |set: usize| (0..sets.len()).filter(move |lane| set < sets[*lane].len()).map(move |lane| (set, lane));
    (0..most).flat_map(of_set).collect()
}

/// Refuses plans that need more memory than the run may take.
pub(super) fn check_memory(
    source: &dyn Source,
    caches: &[CachePlan],
    lane: &LanePlan,
    budgets: &[usize],
    options: &Options,
) -> Result<(), String> {
    let bytes = |(cache, budget): (&CachePlan, &usize)| planning_bytes(source, cache, lane, *budget, options);
    let most = lane.sets_on(caches).iter().zip(budgets).map(bytes).max().unwrap_or(0);
    if most <= options.max_memory {
        return Ok(());
    }
    let [needed, allowed] = [most.div_ceil(1 << 20), options.max_memory >> 20];
    let positions = source.info().positions;
    Err(format!(
        "planning {positions} positions needs {needed} MiB of memory, the limit is {allowed} MiB: \
         raise it with --max-memory, or take the heuristic future-greedy"
    ))
}

fn plan(context: Context<'_>, cache: &CachePlan, lane: &LanePlan, budget: usize) -> Result<Departures> {
    let Context { source, options, observer, .. } = context;
    let Make::Future { plan, .. } = lane.entry.make else { return Ok(Departures::default()) };
    let (mut future, mut scale) = (Future::default(), Scale::default());
    for_each_step(source, cache, options, |batch, step| {
        let position = batch.position(step);
        let from = first_in_window(cache, position);
        for row in rows(batch, step) {
            future.foresee(row, from);
            scale.add(position, sum(row));
        }
    })?;
    let place = |step| source.place(cache.streams[0], step);
    scale.check(lane.entry.name, place, &format!("{}: {}", source.info().name, cache.label))?;
    // A prompt that is cut down at once is cut after its last row.
    let prompt = lane.keeping.prompt;
    let cut = Position(prompt.end().0.saturating_sub(1));
    let mut planner = plan(Evictions { budget, from: cut, once: is_once(lane) });
    for_each_step(source, cache, options, |batch, step| {
        let position = batch.position(step);
        rows(batch, step).for_each(|row| future.pass(row, first_in_window(cache, position)));
        future.stand_after(position);
        planner.after(&future);
    })?;
    let told = Cell::new(0);
    let tell = |evictions: u64| {
        told.set(told.get() + evictions);
        observer.planned(evictions);
    };
    let departures = planner.departures(&tell);
    tell(evictions_planned(source, cache, lane, budget, options).saturating_sub(told.get()));
    Ok(departures)
}

/// The first position that the row of a step attends to in its layer: what is before it has left the
/// cache by itself, whatever was planned.
fn first_in_window(cache: &CachePlan, step: Position) -> Position {
    let first = cache.window.map_or(0, |window| (step.index() + 1).saturating_sub(window));
    Position(first as u32)
}

/// The rows of a step that will be measured: none where there is no information.
fn rows(batch: &StepBatch, step: usize) -> impl Iterator<Item = &[f32]> {
    let heads = if batch.is_known(step, batch.all()) { batch.heads() } else { 0 };
    (0..heads).map(move |head| batch.row(step, head).weights)
}

pub(super) fn for_each_step(
    source: &dyn Source,
    cache: &CachePlan,
    options: &Options,
    mut step: impl FnMut(&StepBatch, usize),
) -> Result<()> {
    let mut feeds = Feeds::open(source, &[cache], options.steps.unwrap_or(usize::MAX), &[])?;
    let mut watch = RowWatch::new(source, cache, options.heavy_hitters, options.bad_rows);
    let mut batches = feeds.batches();
    while feeds.fill(&mut batches)? > 0 {
        for batch in &mut batches {
            watch.find(batch)?;
            (0..batch.len()).for_each(|index| step(batch, index));
        }
    }
    Ok(())
}
