//! Asks, ahead of the replay, the policies that cut at the prompt's end what each cache keeps.
//!
//! Of the trace they are shown the last rows of the prompt and nothing later.

use super::caches::CachePlan;
use super::context::Context;
use super::lane_plan::LanePlan;
use super::options::Options;
use super::parallel::in_parallel;
use super::planning::for_each_step;
use super::step_batch::StepBatch;
use super::view::View;
use crate::error::Result;
use crate::policy::entry::Make;
use crate::policy::prompt_end::{Look, PromptRows, PromptSetting};
use crate::policy::{Overflow, Policy};
use crate::position::{Position, Slot};

/// What a cache keeps of its prompt.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Positions that go, ascending.
    gone: Vec<Position>,
    /// Number of positions that stay.
    pub kept: usize,
}

/// The cuts of a lane, one for each of its kept sets; `None` where it keeps everything.
pub(super) fn cuts(context: Context<'_>, lane: &LanePlan, budgets: &[usize]) -> Result<Vec<Option<Cut>>> {
    let sets = lane.sets_on(context.sets.caches);
    let Make::PromptEnd(make) = lane.entry.make else { return Ok(vec![None; sets.len()]) };
    let layers = sets.iter().map(|cache| cache.label.layer).collect();
    let policy = make(&PromptSetting { budgets: budgets.to_vec(), layers, values: lane.values.clone() });
    let looks = in_parallel(&sets, |cache| Ok(policy.look(&last_rows(context, cache, lane, policy.rows())?)))?;
    let kept = policy.keep(&looks);
    Ok(kept.into_iter().zip(&looks).map(|(kept, look)| kept.map(|kept| Cut::of(&kept, look))).collect())
}

/// The last rows of a lane's prompt on a cache, those that hold attention.
fn last_rows(context: Context<'_>, cache: &CachePlan, lane: &LanePlan, wanted: usize) -> Result<PromptRows> {
    let Context { source, options, .. } = context;
    let (prompt, before) = (lane.keeping.prompt.len, source.info().first_position.index());
    let first = cache.window.map_or(0, |window| (prompt + 1).saturating_sub(window));
    let columns: Vec<Position> = (first..prompt).map(|position| Position(position as u32)).collect();
    let mut rows = PromptRows::new(first, columns.len(), cache.streams.len());
    let mut view = View::new(lane.entry.needs, options.view, lane.keeping.combine);
    let steps = options.steps.unwrap_or(usize::MAX).min(prompt.saturating_sub(before));
    for_each_step(source, cache, &Options { steps: Some(steps), ..options.clone() }, |batch, step| {
        let is_late = batch.position(step).index() + wanted >= prompt;
        if is_late && batch.is_known(step, batch.all()) {
            see(&mut view, batch, step, &columns, &mut rows);
        }
    })?;
    Ok(rows)
}

fn see(view: &mut View, batch: &StepBatch, step: usize, columns: &[Position], rows: &mut PromptRows) {
    let length = batch.row(step, 0).weights.len();
    let there = &columns[..columns.partition_point(|column| column.index() < length)];
    view.start(there.len());
    for head in 0..batch.heads() {
        view.take(batch.row(step, head), there, true);
        view.add_head(batch.heads());
    }
    if let Some(shown) = view.shown(batch.heads()) {
        rows.add(shown.weights, shown.heads);
    }
}

impl Cut {
    fn of(kept: &[usize], look: &Look) -> Cut {
        let mut gone: Vec<Position> = Vec::new();
        let mut kept_in_order = kept.iter().peekable();
        for column in 0..look.columns {
            if kept_in_order.next_if_eq(&&column).is_none() {
                gone.push(Position((look.first + column) as u32));
            }
        }
        Cut { gone, kept: kept.len() }
    }
}

/// Replays a cut; it needs no state.
pub(super) struct CutOnce {
    gone: Vec<Position>,
}

impl CutOnce {
    /// The policy of a cut; of none, it is never asked.
    pub(super) fn new(cut: Option<&Cut>) -> CutOnce {
        CutOnce { gone: cut.map(|cut| cut.gone.clone()).unwrap_or_default() }
    }
}

impl Policy for CutOnce {
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let gone = |(_, position): &(usize, &Position)| self.gone.binary_search(position).is_ok();
        victims.extend(overflow.kept.iter().enumerate().filter(gone).map(|(slot, _)| Slot(slot)));
    }
}
