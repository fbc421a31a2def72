//! What the query heads of a lane hand on with what is kept, and by how much that differs.

use super::outputs::{WholeOutput, divide};
use crate::kernels::{Logits, product, softmax, weighted_values};
use crate::meter::OutputRow;
use crate::position::Position;

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

impl KeptOutputs {
    /// Keeps the changes of the batches to come.
    pub(super) fn keep_changes(&mut self) {
        self.changes = Some(Changes::default());
    }

    /// Begins a batch of steps of so many heads, whose values have `width` channels.
    pub(super) fn start(&mut self, steps: usize, heads: usize, width: usize) {
        if let Some(changes) = &mut self.changes {
            (changes.heads, changes.width) = (heads, width);
            changes.start(steps);
        }
    }

    /// The changes of the batch.
    pub(super) fn changes(&self) -> Option<&Changes> {
        self.changes.as_ref()
    }

    /// Measures what is handed on of a row of which these positions are kept; `at` is the step and the head in the
    /// batch.
    pub(super) fn measure<'a>(
        &'a mut self,
        whole: WholeOutput<'a>,
        step: Position,
        kept: &[Position],
        weights: &[f32],
        at: (usize, usize),
    ) -> OutputRow<'a> {
        let values = &whole.head.values;
        self.kept.resize(whole.output.len(), 0.0);
        let weighed = weighted_values(weights, |slot| kept[slot].index(), values.rows.numbers(), &mut self.kept);
        if weighed < LEAST_KEPT {
            self.measure_anew(whole, step, kept);
        } else {
            divide(&mut self.kept, weighed + whole.sink);
        }
        if let Some(changes) = &mut self.changes {
            changes.put(at.0, at.1, self.kept.iter().zip(whole.output).map(|(kept, whole)| kept - whole));
        }
        let lengths = weights.iter().zip(kept).map(|(weight, at)| f64::from(*weight) * values.lengths[at.index()]);
        OutputRow {
            layer: whole.head.layer,
            whole: whole.output,
            kept: &self.kept,
            value_mass: whole.value_mass,
            kept_value_mass: lengths.sum(),
            gradients: whole.head.gradients.as_deref(),
        }
    }

    /// A softmax over what is kept alone, from its own largest logit.
    fn measure_anew(&mut self, WholeOutput { head, .. }: WholeOutput<'_>, step: Position, kept: &[Position]) {
        let first = head.first_attended(step);
        let query = head.queries.row(step.index());
        self.attended.clear();
        self.attended.extend(kept.iter().filter(|position| position.index() >= first));
        self.anew.clear();
        self.anew.extend(self.attended.iter().map(|position| product(query, head.keys.row(position.index()))));
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
