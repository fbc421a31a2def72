//! The rows of one query head, rebuilt as they are asked for.

use super::matrix::{Matrix, MatrixReader};
use crate::error::{Error, Result};
use crate::kernels::{KeyPanel, Logits, ScoreRow, products, softmax};
use crate::position::Position;
use crate::tensors::finished;
use crate::trace::{RowBlock, RowReader};
use std::sync::Arc;

/// Rows made together: each key is fetched once for all of them.
const AT_ONCE: usize = 24;

/// Rebuilds rows, in step order.
pub(super) struct RebuiltRows {
    queries: MatrixReader,
    width: usize,
    keys: Arc<KeyPanel>,
    logits: Logits,
    window: Option<usize>,
    /// Keys of the group of positions that is not finished, in full, where others are held in few bits.
    unfinished: Option<Arc<KeyPanel>>,
    /// File, layer and head.
    place: String,
    next: usize,
    left: usize,
    /// Rows made before they were asked for, and how many of them have been handed out: long rows come a few at a
    /// time.
    ahead: RowBlock,
    handed_out: usize,
    query: Vec<f32>,
    packed: Vec<f32>,
}

impl RebuiltRows {
    /// At the first row.
    pub fn new(
        queries: &Matrix,
        keys: Arc<KeyPanel>,
        logits: Logits,
        window: Option<usize>,
        place: String,
    ) -> RebuiltRows {
        RebuiltRows {
            queries: queries.reader(),
            width: queries.width,
            keys,
            logits,
            window,
            unfinished: None,
            place,
            next: 0,
            left: queries.rows,
            ahead: RowBlock::default(),
            handed_out: 0,
            query: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// The same where the newest group of positions is read from other keys.
    pub fn with_unfinished(self, keys: Arc<KeyPanel>) -> RebuiltRows {
        RebuiltRows { unfinished: Some(keys), ..self }
    }

    /// Rows that have not been made.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Passes over rows up to this one, which is not behind.
    pub fn skip_to(&mut self, row: Position) {
        self.queries.skip_to(row.index());
        self.left -= row.index() - self.next;
        self.next = row.index();
    }

    /// Appends the next `rows` rows to a block.
    pub fn rebuild(&mut self, block: &mut RowBlock, rows: usize) -> Result<()> {
        let first = self.next;
        self.query.resize(rows * self.width, 0.0);
        self.queries.read(&mut self.query)?;
        let mut weights = block.push_rows(Position(first as u32), rows, |step| step.index() + 1);
        let mut attended = Vec::with_capacity(rows);
        for t in first..first + rows {
            let (row, rest) = weights.split_at_mut(t + 1);
            let from = self.window.map_or(0, |window| (t + 1).saturating_sub(window));
            let (outside, scores) = row.split_at_mut(from);
            outside.fill(0.0);
            attended.push(ScoreRow { from, scores });
            weights = rest;
        }
        products(&self.query, &self.keys, &mut attended, &mut self.packed);
        if let Some(keys) = &self.unfinished {
            let newest = (first..).zip(&mut attended).map(|(t, row)| of_unfinished(t, row));
            products(&self.query, keys, &mut newest.collect::<Vec<_>>(), &mut self.packed);
        }
        for (t, row) in (first..).zip(&mut attended) {
            if softmax(row.scores, self.logits).is_none() {
                return Err(refuse(&self.place, t, row));
            }
        }
        self.next += rows;
        self.left -= rows;
        Ok(())
    }

    /// Hands out rows that were made ahead, which are made first where there are none.
    fn hand_out(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let mut ahead = std::mem::take(&mut self.ahead);
        if self.handed_out == ahead.len() {
            ahead.clear();
            self.handed_out = 0;
            self.rebuild(&mut ahead, AT_ONCE.min(self.left))?;
        }
        let rows = rows.min(ahead.len() - self.handed_out);
        for index in self.handed_out..self.handed_out + rows {
            let row = ahead.row(index);
            block.push(row.step, row.weights);
        }
        self.handed_out += rows;
        self.ahead = ahead;
        Ok(rows)
    }
}

/// The scores of a row with the positions of the group that is not finished.
fn of_unfinished<'a>(t: usize, row: &'a mut ScoreRow<'_>) -> ScoreRow<'a> {
    let from = finished(t).max(row.from).min(row.from + row.scores.len());
    ScoreRow { from, scores: &mut row.scores[from - row.from..] }
}

fn refuse(place: &str, t: usize, row: &ScoreRow<'_>) -> Error {
    let key = row
        .scores
        .iter()
        .position(|score| !score.is_finite())
        .map_or(String::new(), |at| format!(" and key {}", row.from + at));
    let problem =
        format!("the product of query {t}{key} is more than f32 holds: this is no attention that a model computed");
    Error::data(format!("{place}: row {t}"), problem)
}

impl RowReader for RebuiltRows {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let mut read = 0;
        while read < rows {
            let waiting = self.ahead.len() - self.handed_out;
            let more = rows - read;
            read += match (waiting, self.left) {
                (0, 0) => break,
                (0, left) if more >= AT_ONCE => {
                    let some = AT_ONCE.min(left);
                    self.rebuild(block, some)?;
                    some
                }
                _ => self.hand_out(block, more)?,
            };
        }
        Ok(read)
    }
}
