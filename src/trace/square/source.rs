//! A trace of square arrays: its streams, the reader that cuts their rows, and what it has to say after.

use super::oddity;
use super::report::{Noticed, Report};
use super::rule::cut;
use super::stream::{Stream, StreamRows};
use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::storage::Storage;
use crate::trace::{RowBlock, RowReader, SelfAttention, Source, TraceInfo, hash};
use std::path::Path;

/// A trace of square arrays.
pub(super) struct SquareTrace {
    pub info: TraceInfo,
    pub streams: Vec<Stream>,
    pub report: Report,
    /// The files that the arrays are in.
    pub content: Vec<Storage>,
}

impl Source for SquareTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let description = self.streams[stream].clone();
        let kind = self.info.self_attention;
        Ok(Box::new(SquareReader {
            rows: description.open(),
            next: description.first_row(kind),
            kind,
            report: self.report.clone(),
            index: stream,
            noticed: Noticed::default(),
            stream: description,
        }))
    }

    fn content_hash(&self) -> Result<String> {
        hash::of_files(&self.content).map_err(|error| Error::io(Path::new(&self.info.name), error))
    }

    fn place(&self, stream: usize, step: Position) -> String {
        place(&self.streams[stream], step)
    }

    fn warnings(&self) -> Vec<String> {
        oddity::warnings(self)
    }
}

fn place(stream: &Stream, step: Position) -> String {
    let row = step.index() + stream.start - stream.first;
    let label = &stream.label;
    let stored = if row == step.index() { String::new() } else { format!(" (row {row} of the array)") };
    format!("{}: layer {} head {}: row {step}{stored}", stream.place(row), label.layer, label.head)
}

struct SquareReader {
    stream: Stream,
    rows: StreamRows,
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
        let (stored, frame) = self.rows.row(self.next)?;
        let cut = cut(stored, stream.first + self.next, &frame, self.kind)
            .map_err(|problem| Error::data(place(stream, step), problem))?;
        self.noticed.look(&cut, step);
        let weights = block.push_rows(step, 1, |_| cut.lead + cut.weights.len());
        let (lead, rest) = weights.split_at_mut(cut.lead);
        lead.fill(0.0);
        rest.copy_from_slice(cut.weights);
        Ok(())
    }
}
