//! The run: source to rows to lanes to tallies, over all caches and on all cores.
//!
//! A batch of rows is read once and feeds every lane; the next batch is read meanwhile. A trace of
//! many cohorts of caches is spread over threads cohort by cohort, one of few lane by lane. Results
//! never depend on how the work was spread.

use super::caches::CachePlan;
use super::cohort::{Cohort, cohorts_of};
use super::context::{Context, Outcome};
use super::lane_plan::LanePlan;
use super::observer::Observer;
use super::options::Options;
use super::parallel::in_parallel;
use super::planning::{check_memory, plan_ahead};
use crate::error::{Error, Result};
use crate::needs::Needs;
use crate::threads::on_threads;
use crate::trace::Source;

/// Replays the caches of a trace through the lanes.
///
/// # Errors
/// When a lane is impossible, the trace does not hold what a lane or a meter needs, cannot be read or is
/// no attention, or a policy breaks its contract.
pub fn replay(
    source: &dyn Source,
    caches: &[CachePlan],
    lanes: &[LanePlan],
    options: &Options,
    observer: &dyn Observer,
) -> Result<Vec<Outcome>> {
    let budgets = check(source, caches, lanes, options)?;
    let context = Context { source, lanes, budgets: &budgets, options, observer };
    on_threads(options.threads, || replay_all(context, caches))?
}

/// The budget of each lane (outer) on each cache, where all is possible.
fn check(source: &dyn Source, caches: &[CachePlan], lanes: &[LanePlan], options: &Options) -> Result<Vec<Vec<usize>>> {
    let check_lane = |lane: &LanePlan| -> Result<Vec<usize>, String> {
        check_offered(source, lane.entry.needs)?;
        let budgets = lane.budgets_on(caches, &options.budgets)?;
        let budgets: Vec<usize> = budgets.into_iter().map(|cache| cache.budget).collect();
        check_memory(source, caches, lane, &budgets, options)?;
        Ok(budgets)
    };
    for meter in &options.meters {
        let checked = check_offered(source, meter.entry.needs);
        checked.map_err(|problem| Error::usage(format!("meter {}: {problem}", meter.entry.name)))?;
    }
    let refused = |lane: &LanePlan, problem: String| Error::usage(format!("policy {}: {problem}", lane.entry.name));
    lanes.iter().map(|lane| check_lane(lane).map_err(|problem| refused(lane, problem))).collect()
}

/// Refuses what the trace cannot give, by name.
fn check_offered(source: &dyn Source, needs: Needs) -> Result<(), String> {
    match needs.missing_in(source.offers()) {
        None => Ok(()),
        Some(missing) => Err(format!("it needs {missing}, which {} does not hold", source.info().name)),
    }
}

fn replay_all(context: Context<'_>, caches: &[CachePlan]) -> Result<Vec<Outcome>> {
    let planned = plan_ahead(context, caches)?;
    let cohorts = cohorts_of(caches, context.lanes);
    let recorded = context.observer.needs().has(Needs::STEP_RECORDS);
    let many = cohorts.len() >= 2 * rayon::current_num_threads() && !recorded;
    let one = |cohort: &Vec<usize>| Cohort::new(context, caches, cohort, &planned, !many)?.replay();
    let outcomes: Vec<Vec<Outcome>> =
        if many { in_parallel(&cohorts, one)? } else { cohorts.iter().map(one).collect::<Result<_>>()? };
    let mut placed: Vec<(usize, Outcome)> = cohorts.into_iter().flatten().zip(outcomes.into_iter().flatten()).collect();
    placed.sort_by_key(|(index, _)| *index);
    Ok(placed.into_iter().map(|(_, outcome)| outcome).collect())
}
