//! The run: source to rows to lanes to tallies, over all caches and on all cores.
//!
//! A batch of rows is read once and feeds every lane; the next batch is read meanwhile. A trace of
//! many cohorts of caches is spread over threads cohort by cohort, one of few lane by lane. Results
//! never depend on how the work was spread.

use super::caches::{CachePlan, sets_of};
use super::cohort::Cohort;
use super::context::{Context, Outcome, Sets};
use super::lane_plan::LanePlan;
use super::observer::Observer;
use super::options::Options;
use super::parallel::in_parallel;
use super::planning::{check_memory, plan_ahead};
use super::section::{Section, SetPlace, cohorts_of};
use crate::error::{Error, Result};
use crate::keeping::{PromptMode, Scope};
use crate::meter::{MeterPlan, Tally};
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
    let options = &Options { meters: offered(source, &options.meters), ..options.clone() };
    let budgets = check(source, caches, lanes, options)?;
    let sets = Sets { caches, layers: sets_of(caches, Scope::Layer) };
    let context = Context { source, lanes, sets: &sets, budgets: &budgets, options, observer };
    on_threads(options.threads, || replay_all(context))?
}

/// The meters that run on this trace: those that it has what they need for, and those that were asked for by name.
fn offered(source: &dyn Source, meters: &[MeterPlan]) -> Vec<MeterPlan> {
    let runs = |plan: &&MeterPlan| !plan.where_offered || plan.entry.needs.missing_in(source.offers()).is_none();
    meters.iter().filter(runs).cloned().collect()
}

/// The budget of each lane (outer) on each of its kept sets, where all is possible.
fn check(source: &dyn Source, caches: &[CachePlan], lanes: &[LanePlan], options: &Options) -> Result<Vec<Vec<usize>>> {
    let check_lane = |lane: &LanePlan| -> Result<Vec<usize>, String> {
        check_offered(source, lane.entry.needs)?;
        check_prompt(source, lane)?;
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

/// Refuses to cut a prompt once where the row to cut it after is not there.
fn check_prompt(source: &dyn Source, LanePlan { keeping, .. }: &LanePlan) -> Result<(), String> {
    let (first, len) = (source.info().first_position.index(), keeping.prompt.len);
    if keeping.prompt.mode != PromptMode::Once || len > first {
        return Ok(());
    }
    Err(format!("the rows begin at position {first}: there is none of the prompt of {len} that it could be cut by"))
}

/// Refuses what the trace cannot give, by name.
fn check_offered(source: &dyn Source, needs: Needs) -> Result<(), String> {
    match needs.missing_in(source.offers()) {
        None => Ok(()),
        Some(missing) => Err(format!("it needs {missing}, which {} does not hold", source.info().name)),
    }
}

fn replay_all(context: Context<'_>) -> Result<Vec<Outcome>> {
    let planned = plan_ahead(context)?;
    let cohorts = cohorts_of(context.sets.caches, context.lanes, &context.options.meters);
    let recorded = context.observer.needs().has(Needs::STEP_RECORDS);
    let many = cohorts.len() >= 2 * rayon::current_num_threads() && !recorded;
    let one = |sections: &Vec<Section<'_>>| Cohort::new(context, sections, &planned, !many)?.replay();
    let tallies: Vec<Vec<Vec<(SetPlace, Tally)>>> =
        if many { in_parallel(&cohorts, one)? } else { cohorts.iter().map(one).collect::<Result<_>>()? };
    Ok(outcomes(context, tallies))
}

/// The tallies of all cohorts, lanes and kept sets, set by set: those of caches, then those of layers.
fn outcomes(context: Context<'_>, cohorts: Vec<Vec<Vec<(SetPlace, Tally)>>>) -> Vec<Outcome> {
    let start = |sets: &[CachePlan]| -> Vec<Outcome> {
        let none = vec![Tally::default(); context.lanes.len()];
        sets.iter().map(|cache| Outcome { cache: cache.clone(), tallies: none.clone() }).collect()
    };
    let (mut of_caches, mut of_layers) = (start(context.sets.caches), start(&context.sets.layers));
    for (lane, tallies) in cohorts.into_iter().flat_map(|lanes| lanes.into_iter().enumerate()) {
        let outcomes = match context.lanes[lane].keeping.scope {
            Scope::Head => &mut of_caches,
            Scope::Layer => &mut of_layers,
        };
        tallies.into_iter().for_each(|(place, tally)| outcomes[place.index].tallies[lane] = tally);
    }
    if context.lanes.iter().any(|lane| lane.keeping.scope == Scope::Layer) {
        of_caches.extend(of_layers);
    }
    of_caches
}
