//! A lane of a bound: no kept set, only what could have been retained of each row.

use super::kept_outputs::{Changes, KeptOutputs};
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
    /// Where the bound chooses positions and a meter looks at outputs.
    outputs: Option<Box<KeptOutputs>>,
    /// The positions of the row measured last, and their weights.
    chosen: (Vec<Position>, Vec<f32>),
}

impl BoundLane {
    pub(super) fn new(site: &LaneSite<'_>, bound: Box<dyn Bound>) -> BoundLane {
        let LaneSite { heads, self_attention, schedule, first, .. } = *site;
        let window = site.window.unwrap_or(usize::MAX);
        let alive = if self_attention == SelfAttention::Included { window } else { window.saturating_sub(1) };
        let has = if bound.chooses() { Needs::KEPT_WEIGHTS } else { Needs::NOTHING };
        let meters = LaneMeters::new(site.meters, has, site.counted);
        let (outputs, chosen) = (KeptOutputs::wanted_by(&meters), Default::default());
        BoundLane { bound, heads, self_attention, alive, schedule, first, meters, outputs, chosen }
    }

    pub(super) fn run(&mut self, batch: &StepBatch, counts: &mut Counts) {
        self.meters.swap(counts);
        if let Some(outputs) = &mut self.outputs {
            outputs.start_batch(batch, self.heads);
        }
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
        let bound_row = BoundRow::new(row.weights, held);
        let retained = self.bound.retained(bound_row);
        // A policy with this budget has evicted before every row with more to hold than it may.
        let after_eviction = row.weights.len().min(self.alive) > held;
        let counts = RowCounts::new(position, head, retained, row.facts.total, after_eviction, None);
        if !self.meters.look_at_weights() {
            return self.meters.add_row(counts, &[], None, row.weights, None);
        }
        let (positions, weights) = &mut self.chosen;
        positions.clear();
        weights.clear();
        self.bound.choose(bound_row, positions, weights);
        let output = self.outputs.as_mut().zip(batch.output(step, self.heads.start + head));
        let output =
            output.map(|(outputs, whole)| outputs.measure(whole, position, positions, weights, None, (step, head)));
        self.meters.add_row(counts, positions, Some(weights), row.weights, output);
    }

    /// By how much the outputs of a batch were off, where figures of layers are made of that.
    pub(super) fn changes(&self) -> Option<&Changes> {
        self.outputs.as_ref().and_then(|outputs| outputs.changes())
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
