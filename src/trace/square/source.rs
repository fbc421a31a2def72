//! A trace of square arrays: its streams, the reader that cuts their rows, and what it has to say after.

use super::frame::Frame;
use super::oddity;
use super::read::{RowPlace, StoredRows};
use super::report::{Noticed, Report};
use super::rule::cut;
use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::storage::Storage;
use crate::trace::{RowBlock, RowReader, SelfAttention, Source, StreamLabel, TraceInfo, hash};
use std::path::Path;

/// A stream of square arrays.
#[derive(Clone)]
pub(super) struct Stream {
    pub label: StreamLabel,
    /// The array it lies in, for messages.
    pub array: String,
    pub place: RowPlace,
    pub frame: Frame,
    /// Rows stored, padding counted.
    pub rows: usize,
}

impl Stream {
    /// Opens the rows for a few looks.
    pub(super) fn open_sparse(&self) -> Result<StoredRows> {
        StoredRows::open_sparse(&self.place)
    }

    /// The column of a row's own token.
    pub(super) fn own_column(&self, row: usize) -> usize {
        let position = self.frame.first + row;
        position - self.frame.column_zero(position)
    }

    /// The first row that has a place in the trace.
    pub(super) fn first_row(&self, kind: SelfAttention) -> usize {
        let first = self.frame.first_row();
        let sees_nothing = self.frame.first + first < self.frame.start + kind.first_step().index();
        (first + usize::from(sees_nothing)).min(self.rows)
    }

    /// The step of a row, once padding is taken off.
    pub(super) fn step(&self, row: usize) -> Position {
        Position((self.frame.first + row - self.frame.start) as u32)
    }
}

/// A trace of square arrays.
pub(super) struct SquareTrace {
    pub info: TraceInfo,
    pub streams: Vec<Stream>,
    pub report: Report,
    /// The file that the arrays are in.
    pub content: Storage,
}

impl Source for SquareTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let description = self.streams[stream].clone();
        let kind = self.info.self_attention;
        Ok(Box::new(SquareReader {
            rows: StoredRows::open(&description.place)?,
            next: description.first_row(kind),
            kind,
            report: self.report.clone(),
            index: stream,
            noticed: Noticed::default(),
            stream: description,
        }))
    }

    fn content_hash(&self) -> Result<String> {
        hash::of_storage(&self.content).map_err(|error| Error::io(Path::new(&self.info.name), error))
    }

    fn place(&self, stream: usize, step: Position) -> String {
        place(&self.streams[stream], step)
    }

    fn warnings(&self) -> Vec<String> {
        oddity::warnings(self)
    }
}

fn place(stream: &Stream, step: Position) -> String {
    let row = step.index() + stream.frame.start - stream.frame.first;
    let label = &stream.label;
    let stored = if row == step.index() { String::new() } else { format!(" (row {row} of the array)") };
    format!("{}: layer {} head {}: row {step}{stored}", stream.array, label.layer, label.head)
}

struct SquareReader {
    stream: Stream,
    rows: StoredRows,
    kind: SelfAttention,
    next: usize,
    index: usize,
    noticed: Noticed,
    report: Report,
}

impl RowReader for SquareReader {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let end = self.stream.rows.min(self.next.saturating_add(rows));
        let read = end - self.next;
        while self.next < end {
            self.read_row(block)?;
            self.next += 1;
        }
        self.report.keep(self.index, &self.noticed);
        Ok(read)
    }
}

impl SquareReader {
    fn read_row(&mut self, block: &mut RowBlock) -> Result<()> {
        let (stream, step) = (&self.stream, self.stream.step(self.next));
        let stored = self.rows.row(self.next)?;
        let cut = cut(stored, stream.frame.first + self.next, &stream.frame, self.kind)
            .map_err(|problem| Error::data(place(stream, step), problem))?;
        self.noticed.look(&cut, step);
        let weights = block.push_rows(step, 1, |_| cut.lead + cut.weights.len());
        let (lead, rest) = weights.split_at_mut(cut.lead);
        lead.fill(0.0);
        rest.copy_from_slice(cut.weights);
        Ok(())
    }
}
