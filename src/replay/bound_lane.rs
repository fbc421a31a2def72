//! A lane of a bound: no kept set, only what could have been retained of each row.

use super::lane_meters::{Counts, LaneMeters};
use super::lane_site::LaneSite;
use super::schedule::Schedule;
use super::step_batch::StepBatch;
use crate::meter::{LaneEnd, RowCounts, StepCounts, Tally};
use crate::policy::{Bound, BoundRow};
use crate::position::Position;
use crate::trace::SelfAttention;

pub(super) struct BoundLane {
    bound: Box<dyn Bound>,
    /// Positions that a policy with the same budget is measured on, at most.
    held: usize,
    /// Positions of a row that have not left the layer's window.
    alive: usize,
    schedule: Schedule,
    first: Position,
    meters: LaneMeters,
}

impl BoundLane {
    pub(super) fn new(site: &LaneSite<'_>, bound: Box<dyn Bound>) -> BoundLane {
        let LaneSite { schedule, first, .. } = *site;
        let (budget, window) = (schedule.budget.unwrap_or(usize::MAX), site.window.unwrap_or(usize::MAX));
        let (held, alive) = match site.self_attention {
            SelfAttention::Excluded => (budget, window.saturating_sub(1)),
            SelfAttention::Included => (budget.saturating_add(1), window),
        };
        let meters = LaneMeters::new(site.meters, false, schedule.budget);
        BoundLane { bound, held, alive, schedule, first, meters }
    }

    pub(super) fn run(&mut self, batch: &StepBatch, counts: &mut Counts) {
        self.meters.swap(counts);
        for step in 0..batch.len() {
            let position = batch.position(step);
            let in_prompt = self.schedule.is_in_prompt(position);
            let measured = batch.is_known(step) && !in_prompt;
            if measured {
                (0..batch.heads()).for_each(|head| self.measure(batch, step, head));
            }
            self.meters.add_step(StepCounts::new(in_prompt, measured, None));
        }
        self.meters.flush();
        self.meters.swap(counts);
    }

    fn measure(&mut self, batch: &StepBatch, step: usize, head: usize) {
        let (row, position) = (batch.row(step, head), batch.position(step));
        let held = self.held_at(position);
        let retained = self.bound.retained(BoundRow::new(row.weights, held));
        // A policy with this budget has evicted before every row with more to hold than it may.
        let after_eviction = row.weights.len().min(self.alive) > held;
        let counts = RowCounts::new(position, head, retained, row.facts.total, after_eviction, None);
        self.meters.add_row(counts, &[], None, row.weights);
    }

    /// Positions that a policy with the same budget is measured on, at most: whatever came before the
    /// first row is there when it comes.
    fn held_at(&self, step: Position) -> usize {
        if step == self.first { usize::MAX } else { self.held }
    }

    pub(super) fn finish(self) -> Tally {
        self.meters.finish(&LaneEnd::new(None))
    }
}
