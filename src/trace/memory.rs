//! A trace held in memory: for callers of the library and for tests.

use super::{
    Head, Metadata, ModelFacts, RowBlock, RowReader, SelfAttention, Source, StreamInfo, StreamLabel, TraceInfo,
};
use crate::error::{Error, Result};
use crate::position::Position;
use std::sync::Arc;

/// Rows of one stream; `None` is a step without information.
pub type Rows = Vec<Option<Vec<f32>>>;

/// A trace held in memory.
pub struct MemoryTrace {
    info: TraceInfo,
    streams: Vec<Arc<Rows>>,
}

impl MemoryTrace {
    /// An empty trace; add streams with [`MemoryTrace::with_stream`].
    pub fn new(name: &str, self_attention: SelfAttention) -> MemoryTrace {
        let info = TraceInfo {
            name: name.to_owned(),
            format: "memory",
            self_attention,
            first_position: self_attention.first_step(),
            positions: 0,
            streams: Vec::new(),
            metadata: Metadata::new(),
            facts: ModelFacts::default(),
            notes: Vec::new(),
            read_as: Vec::new(),
        };
        MemoryTrace { info, streams: Vec::new() }
    }

    /// Lets the rows of the streams that are added from here on begin later than with the first step.
    pub fn with_first_position(mut self, step: Position) -> MemoryTrace {
        self.info.first_position = step.max(self.info.self_attention.first_step());
        self
    }

    /// Adds a stream: row `i` belongs to step `i` (self included) or `i + 1` (self excluded), or to the `i`th
    /// step from [`MemoryTrace::with_first_position`] on, and has one weight per position that it sees.
    ///
    /// # Errors
    /// When a row has another length, the head has no name, or the layer and head are there already.
    pub fn with_stream(mut self, layer: u32, head: &str, rows: Rows) -> Result<MemoryTrace> {
        if head.is_empty() {
            return Err(Error::data(&self.info.name, format!("a head of layer {layer} has no name")));
        }
        let label = StreamLabel { layer, head: Head::parse(head) };
        self.check_rows(&label, &rows)?;
        let Err(at) = self.info.streams.binary_search_by(|stream| stream.label.cmp(&label)) else {
            return Err(Error::data(&self.info.name, format!("stream {label} is there twice")));
        };
        if !rows.is_empty() {
            self.info.positions = self.info.positions.max(self.info.first_position.index() + rows.len());
        }
        self.info.streams.insert(at, StreamInfo { label, rows: rows.len(), dtype: "f32" });
        self.streams.insert(at, Arc::new(rows));
        Ok(self)
    }

    /// Adds a line of metadata.
    ///
    /// # Panics
    /// When it is a fact of the model and means nothing, or contradicts what is there.
    pub fn with_metadata(mut self, key: &str, value: &str) -> MemoryTrace {
        let mut metadata = std::mem::take(&mut self.info.metadata);
        metadata.insert(key.to_owned(), value.to_owned());
        self.info.set_metadata(metadata).expect("the caller says what facts mean");
        self
    }

    fn check_rows(&self, label: &StreamLabel, rows: &Rows) -> Result<()> {
        let kind = self.info.self_attention;
        for (step, row) in (self.info.first_position.0..).map(Position).zip(rows) {
            let (needed, found) = (kind.row_len(step), row.as_ref().map(Vec::len));
            if found.is_some_and(|found| found != needed) {
                let place = format!("{}: stream {label}: row {step}", self.info.name);
                return Err(Error::data(place, format!("row has {} weights, needs {needed}", found.unwrap_or(0))));
            }
        }
        Ok(())
    }
}

impl Source for MemoryTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let first = self.info.first_position;
        Ok(Box::new(MemoryReader { rows: Arc::clone(&self.streams[stream]), first, next: 0 }))
    }
}

struct MemoryReader {
    rows: Arc<Rows>,
    first: Position,
    next: usize,
}

impl RowReader for MemoryReader {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let end = self.rows.len().min(self.next.saturating_add(rows));
        for index in self.next..end {
            let step = Position(self.first.0 + index as u32);
            block.push(step, self.rows[index].as_deref().unwrap_or(&[]));
        }
        let read = end - self.next;
        self.next = end;
        Ok(read)
    }
}
