//! A reused buffer of consecutive rows of one stream: the unit that travels from trace to replay.

use crate::kernels;
use crate::position::Position;

/// Consecutive rows of one stream. Clearing it keeps its memory.
#[derive(Debug, Default)]
pub struct RowBlock {
    /// Never shrinks: what lies past `used` is left over from earlier blocks and saves clearing.
    weights: Vec<f32>,
    used: usize,
    rows: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    step: Position,
    start: usize,
    len: usize,
}

/// One row: the attention that the token at `step` paid to the positions before it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Position of the token that attends.
    pub step: Position,
    /// One weight per position, from 0; empty where there is no information about this step.
    pub weights: &'a [f32],
}

impl Row<'_> {
    /// The sum of the weights, in an order that depends on the row alone.
    pub fn sum(&self) -> f64 {
        kernels::sum(self.weights)
    }

    /// Index of the first weight that cannot be attention: negative, or no finite number.
    pub fn first_unsound(&self) -> Option<usize> {
        self.weights.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite()))
    }
}

impl RowBlock {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.used = 0;
        self.rows.clear();
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of weights of all rows.
    pub fn weights(&self) -> usize {
        self.used
    }

    /// The row with this index in the block.
    #[inline]
    pub fn row(&self, index: usize) -> Row<'_> {
        let span = self.rows[index];
        Row { step: span.step, weights: &self.weights[span.start..span.start + span.len] }
    }

    /// Makes a row a step without information.
    pub fn make_null(&mut self, index: usize) {
        self.rows[index].len = 0;
    }

    /// All rows in step order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).map(|index| self.row(index))
    }

    /// Appends one row.
    pub fn push(&mut self, step: Position, weights: &[f32]) {
        self.push_rows(step, 1, |_| weights.len()).copy_from_slice(weights);
    }

    /// Appends `rows` rows from `first` on, of `len(step)` weights each, and returns their weights
    /// back to back, to be filled by the caller: they hold leftovers.
    pub fn push_rows(&mut self, first: Position, rows: usize, len: impl Fn(Position) -> usize) -> &mut [f32] {
        let start = self.used;
        for step in (first.0..).take(rows).map(Position) {
            self.rows.push(Span { step, start: self.used, len: len(step) });
            self.used += len(step);
        }
        if self.weights.len() < self.used {
            self.weights.resize(self.used, 0.0);
        }
        &mut self.weights[start..self.used]
    }

    /// The weights of the row with this index, to be put right in place.
    pub fn weights_mut(&mut self, index: usize) -> &mut [f32] {
        let span = self.rows[index];
        &mut self.weights[span.start..span.start + span.len]
    }
}
