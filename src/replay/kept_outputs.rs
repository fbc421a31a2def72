//! What the query heads of a lane hand on with what is kept, and by how much that differs.

use super::lane_meters::LaneMeters;
use super::outputs::{WholeOutput, divide};
use super::section::HeadRange;
use super::step_batch::StepBatch;
use crate::kernels::{Logits, product, softmax, weighted_values};
use crate::meter::OutputRow;
use crate::position::Position;
use crate::tensors::HeadTensors;

/// Below this sum of kept weights some of them may have lost digits: they are made anew, from their own largest logit.
const LEAST_KEPT: f64 = 1.0 / (1_u128 << 80) as f64;

/// The output of the row measured last, and for figures of layers the changes of a batch.
#[derive(Default)]
pub(super) struct KeptOutputs {
    kept: Vec<f64>,
    /// Where changes are kept: `kept - whole` for each step and head of the batch.
    changes: Option<Changes>,
    /// Logits of kept positions, where weights have to be made anew.
    anew: Vec<f32>,
    attended: Vec<Position>,
}

/// By how much the outputs of a lane's heads differ, step by step.
#[derive(Default)]
pub(super) struct Changes {
    heads: usize,
    width: usize,
    numbers: Vec<f32>,
    /// Which steps were measured.
    pub measured: Vec<bool>,
}

impl Changes {
    /// Room for a batch of steps.
    fn start(&mut self, steps: usize) {
        self.measured.clear();
        self.measured.resize(steps, false);
        self.numbers.clear();
        self.numbers.resize(steps * self.heads * self.width, 0.0);
    }

    /// The changes of all heads in a step, side by side.
    pub(super) fn of_step(&self, step: usize) -> &[f32] {
        let len = self.heads * self.width;
        &self.numbers[step * len..(step + 1) * len]
    }

    fn put(&mut self, step: usize, head: usize, change: impl Iterator<Item = f64>) {
        let start = (step * self.heads + head) * self.width;
        self.measured[step] = true;
        let place = &mut self.numbers[start..start + self.width];
        place.iter_mut().zip(change).for_each(|(place, change)| *place = change as f32);
    }
}

/// The weights of kept positions, and what they weigh.
#[derive(Clone, Copy)]
pub(super) struct HeldWeights<'a> {
    pub head: &'a HeadTensors,
    pub weights: &'a [f32],
    /// Weight of the learned sink.
    pub sink: f64,
}

impl KeptOutputs {
    /// Where a meter looks at outputs; with the changes of batches where one looks at layers.
    pub(super) fn wanted_by(meters: &LaneMeters) -> Option<Box<KeptOutputs>> {
        let [of_heads, of_layers] = meters.look_at_outputs();
        let changes = of_layers.then(Changes::default);
        of_heads.then(|| Box::new(KeptOutputs { changes, ..KeptOutputs::default() }))
    }

    /// Begins a batch of the steps of these heads.
    pub(super) fn start_batch(&mut self, batch: &StepBatch, heads: HeadRange) {
        if let Some((changes, width)) = self.changes.as_mut().zip(batch.value_width(heads)) {
            (changes.heads, changes.width) = (heads.len(), width);
            changes.start(batch.len());
        }
    }

    /// The changes of the batch.
    pub(super) fn changes(&self) -> Option<&Changes> {
        self.changes.as_ref()
    }

    /// Measures what is handed on of a row of which these positions are kept: `weights` of them in the exact row, and
    /// where they are held in few bits, the weights and the head that they make; `at` is the step and the head in the
    /// batch.
    pub(super) fn measure<'a>(
        &'a mut self,
        whole: WholeOutput<'a>,
        step: Position,
        kept: &[Position],
        weights: &[f32],
        held: Option<HeldWeights<'_>>,
        at: (usize, usize),
    ) -> OutputRow<'a> {
        let exact = HeldWeights { head: whole.head, weights, sink: whole.sink };
        let used = held.unwrap_or(exact);
        let values = &used.head.values;
        self.kept.resize(whole.output.len(), 0.0);
        let weighed = weighted_values(used.weights, |slot| kept[slot].index(), values.rows.numbers(), &mut self.kept);
        if weighed < LEAST_KEPT {
            self.measure_anew(used.head, step, kept);
        } else {
            divide(&mut self.kept, weighed + used.sink);
        }
        if let Some(changes) = &mut self.changes {
            changes.put(at.0, at.1, self.kept.iter().zip(whole.output).map(|(kept, whole)| kept - whole));
        }
        let values = &whole.head.values;
        let lengths = weights.iter().zip(kept).map(|(weight, at)| f64::from(*weight) * values.lengths[at.index()]);
        OutputRow {
            layer: whole.head.layer,
            whole: whole.output,
            kept: &self.kept,
            value_mass: whole.value_mass,
            kept_value_mass: lengths.sum(),
            in_few_bits: held.is_some(),
            gradients: whole.head.gradients.as_deref(),
        }
    }

    /// A softmax over what is kept alone, from its own largest logit.
    fn measure_anew(&mut self, head: &HeadTensors, step: Position, kept: &[Position]) {
        let first = head.first_attended(step);
        let query = head.queries.row(step.index());
        self.attended.clear();
        self.attended.extend(kept.iter().filter(|position| position.index() >= first));
        self.anew.clear();
        self.anew.extend(self.attended.iter().map(|position| product(query, head.key(*position, step))));
        // Scores of a whole row were finite, so that these are: where none is kept, nothing is handed on.
        let found = if self.anew.is_empty() { None } else { softmax(&mut self.anew, head.logits) };
        if found.is_none() {
            return self.kept.fill(0.0);
        }
        let attended = &self.attended;
        let numbers = head.values.rows.numbers();
        let weighed = weighted_values(&self.anew, |slot| attended[slot].index(), numbers, &mut self.kept);
        let Logits { sink, .. } = head.logits;
        // With a learned sink the weights and the sink's sum to one.
        divide(&mut self.kept, if sink.is_some() { 1.0 } else { weighed });
    }
}
