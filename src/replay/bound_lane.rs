//! A lane of a bound: no kept set, only what could have been retained of each row.

use super::lane_meters::{Counts, LaneMeters};
use super::lane_site::LaneSite;
use super::schedule::Schedule;
use super::section::HeadRange;
use super::step_batch::StepBatch;
use crate::meter::{LaneEnd, RowCounts, StepCounts, Tally};
use crate::needs::Needs;
use crate::policy::{Bound, BoundRow};
use crate::position::Position;
use crate::trace::SelfAttention;

pub(super) struct BoundLane {
    bound: Box<dyn Bound>,
    heads: HeadRange,
    self_attention: SelfAttention,
    /// Positions of a row that have not left the layer's window.
    alive: usize,
    schedule: Schedule,
    first: Position,
    meters: LaneMeters,
}

impl BoundLane {
    pub(super) fn new(site: &LaneSite<'_>, bound: Box<dyn Bound>) -> BoundLane {
        let LaneSite { heads, self_attention, schedule, first, .. } = *site;
        let window = site.window.unwrap_or(usize::MAX);
        let alive = if self_attention == SelfAttention::Included { window } else { window.saturating_sub(1) };
        let meters = LaneMeters::new(site.meters, Needs::NOTHING, site.counted);
        BoundLane { bound, heads, self_attention, alive, schedule, first, meters }
    }

    pub(super) fn run(&mut self, batch: &StepBatch, counts: &mut Counts) {
        self.meters.swap(counts);
        for step in 0..batch.len() {
            let position = batch.position(step);
            let in_prompt = self.schedule.is_in_prompt(position);
            let measured = batch.is_known(step, self.heads) && !in_prompt;
            if measured {
                (0..self.heads.len()).for_each(|head| self.measure(batch, step, head));
            }
            self.meters.add_step(StepCounts::new(in_prompt, measured, None));
        }
        self.meters.flush();
        self.meters.swap(counts);
    }

    fn measure(&mut self, batch: &StepBatch, step: usize, head: usize) {
        let (row, position) = (batch.row(step, self.heads.start + head), batch.position(step));
        let held = self.held_at(position);
        let retained = self.bound.retained(BoundRow::new(row.weights, held));
        // A policy with this budget has evicted before every row with more to hold than it may.
        let after_eviction = row.weights.len().min(self.alive) > held;
        let counts = RowCounts::new(position, head, retained, row.facts.total, after_eviction, None);
        self.meters.add_row(counts, &[], None, row.weights, None);
    }

    /// Positions that a policy with the same budget is measured on, at most: whatever came before the
    /// first row is there when it comes.
    fn held_at(&self, step: Position) -> usize {
        if step == self.first { usize::MAX } else { self.schedule.most_measured(step, self.self_attention) }
    }

    pub(super) fn finish(self) -> Tally {
        self.meters.finish(&LaneEnd::new(None))
    }
}
