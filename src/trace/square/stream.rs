//! A stream of square arrays: where its rows are stored, in one array or one after the other in several, and
//! which positions they stand for.

use super::array::Array;
use super::frame::{Columns, Frame, Known};
use super::layout::Layout;
use super::read::{RowPlace, StoredRows};
use crate::error::Result;
use crate::position::Position;
use crate::trace::{SelfAttention, StreamLabel};
use std::sync::Arc;

/// Consecutive rows of streams, in one array.
pub(super) struct Part {
    pub array: Array,
    pub layout: Layout,
    /// Rows in the parts before.
    pub first_row: usize,
}

/// A stream of square arrays.
#[derive(Clone)]
pub(super) struct Stream {
    pub label: StreamLabel,
    /// The file, for messages.
    pub file: Arc<str>,
    /// Where the rows are, in order.
    pub parts: Arc<[Part]>,
    /// Which of the layers in the arrays it is.
    pub layer: usize,
    /// Which of the heads in the arrays it is.
    pub head: usize,
    /// The position of row 0, before padding is taken off.
    pub first: usize,
    /// What lies before is padding.
    pub start: usize,
    pub known: Known,
    /// Rows stored, padding counted.
    pub rows: usize,
}

impl Part {
    fn place(&self, stream: &Stream) -> RowPlace {
        let row = (self.layout.width * self.array.cells.size()) as u64;
        RowPlace {
            file: Arc::clone(&stream.file),
            storage: Arc::clone(&self.array.storage),
            cells: self.array.cells,
            start: self.array.start + self.layout.first_row(stream.layer, stream.head) as u64 * row,
            stride: self.layout.rows.stride as u64 * row,
            width: self.layout.width,
        }
    }
}

impl Stream {
    /// The name of how weights are stored: of the widest type, where parts differ.
    pub(super) fn dtype(&self) -> &'static str {
        let widest = self.parts.iter().max_by_key(|part| part.array.cells.size());
        widest.map_or("f32", |part| part.array.cells.name())
    }

    /// The array that holds a row, for messages.
    pub(super) fn place(&self, row: usize) -> String {
        self.part_of(row).array.place(&self.file)
    }

    /// The positions behind the rows and columns of a part.
    pub(super) fn frame(&self, part: &Part) -> Frame {
        let first = self.first + part.first_row;
        Frame { first, columns: self.known.columns(&part.layout, first), start: self.start }
    }

    /// The first row that is not padding.
    pub(super) fn first_sound_row(&self) -> usize {
        self.start.saturating_sub(self.first)
    }

    /// The first row that has a place in the trace.
    pub(super) fn first_row(&self, kind: SelfAttention) -> usize {
        let first = self.first_sound_row();
        let sees_nothing = self.first + first < self.start + kind.first_step().index();
        (first + usize::from(sees_nothing)).min(self.rows)
    }

    /// The step of a row, once padding is taken off.
    pub(super) fn step(&self, row: usize) -> Position {
        Position((self.first + row - self.start) as u32)
    }

    /// Checks that a row is left, and that every row has a column for its own token.
    ///
    /// # Errors
    /// One line that says which positions do not fit.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.first_sound_row() >= self.rows && (self.rows, self.start) != (0, 0) {
            let (start, first, rows) = (self.start, self.first, self.rows);
            let last = (first + rows).saturating_sub(1);
            return Err(format!("--start {start} leaves none of the rows, of positions {first} to {last}"));
        }
        self.parts.iter().try_for_each(|part| self.frame(part).check(&part.layout))
    }

    /// The stream without the rows from position `end` on.
    ///
    /// # Errors
    /// One line where that leaves no row.
    pub(super) fn before(mut self, end: Option<usize>) -> Result<Stream, String> {
        let Some(end) = end else { return Ok(self) };
        self.rows = self.rows.min(end.saturating_sub(self.first));
        match self.first_sound_row() < self.rows {
            true => Ok(self),
            false => {
                Err(format!("--end {end} leaves none of the rows from position {} on", self.first.max(self.start)))
            }
        }
    }

    /// How many columns at the end stand for no position in any row.
    pub(super) fn dead_columns(&self) -> usize {
        let dead = |part: &Part| self.frame(part).dead_columns(&part.layout);
        self.parts.iter().map(dead).max().unwrap_or(0)
    }

    /// Whether columns slide with the row in some part.
    pub(super) fn slides(&self) -> bool {
        self.parts.iter().any(|part| !matches!(self.frame(part).columns, Columns::From(_)))
    }

    /// Opens the rows for reading them one after the other.
    pub(super) fn open(&self) -> StreamRows {
        StreamRows { stream: self.clone(), sparse: false, open: None }
    }

    /// Opens the rows for a few looks.
    pub(super) fn open_sparse(&self) -> StreamRows {
        StreamRows { stream: self.clone(), sparse: true, open: None }
    }

    fn index_of_part(&self, row: usize) -> usize {
        self.parts.partition_point(|part| part.first_row <= row) - 1
    }

    fn part_of(&self, row: usize) -> &Part {
        &self.parts[self.index_of_part(row)]
    }
}

/// The rows of one stream, whose columns ascend; one part is open at a time.
pub(super) struct StreamRows {
    stream: Stream,
    sparse: bool,
    open: Option<(usize, StoredRows)>,
}

impl StreamRows {
    /// A stored row with ascending columns, and what they stand for.
    pub(super) fn row(&mut self, row: usize) -> Result<(&[f32], Frame)> {
        let position = self.stream.first + row;
        let (rows, frame, row) = self.part(row)?;
        let weights = rows.row(row)?;
        frame.ascend(weights, position);
        Ok((weights, frame))
    }

    /// The weight of a row on its own token.
    pub(super) fn own_weight(&mut self, row: usize) -> Result<f32> {
        let position = self.stream.first + row;
        let (rows, frame, row) = self.part(row)?;
        rows.weight(row, frame.own_column(position))
    }

    /// The stored rows that hold a row, what their columns stand for, and which of them it is.
    fn part(&mut self, row: usize) -> Result<(&mut StoredRows, Frame, usize)> {
        let index = self.stream.index_of_part(row);
        let part = &self.stream.parts[index];
        let open = match self.open.take().filter(|(open, _)| *open == index) {
            Some(open) => open,
            None if self.sparse => (index, StoredRows::open_sparse(&part.place(&self.stream))?),
            None => (index, StoredRows::open(&part.place(&self.stream))?),
        };
        let (_, rows) = self.open.insert(open);
        Ok((rows, self.stream.frame(part), row - part.first_row))
    }
}
