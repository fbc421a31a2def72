//! Traces: recorded attention, streamed row by row. First stage of the path; knows no policies.
//!
//! A [`Source`] describes a trace and opens its streams; a [`RowReader`] hands out the rows of one
//! stream, in step order, into a [`RowBlock`] that is reused. Each file format is one file here and
//! one line in [`formats::FORMATS`].

pub mod axes;
mod content;
mod facts;
pub mod formats;
mod hash;
mod join;
mod joined;
pub mod jsonl;
mod label;
mod limits;
pub mod memory;
mod mixture;
mod npy;
mod npz;
mod opened;
pub mod options;
mod pickle;
mod qkv;
mod refusal;
pub mod rng;
mod row_block;
pub mod safetensors;
pub mod spec;
mod spread;
mod square;
mod storage;
mod stream_input;
pub mod synthetic;
mod watch;
mod zstd;

pub use facts::{Metadata, ModelFacts};
pub use label::{Head, StreamLabel};
pub use limits::MOST_POSITIONS;
pub(crate) use refusal::problem_of;
pub use refusal::refuse_weights;
pub use row_block::{Row, RowBlock};
pub use watch::RowSums;

use crate::error::{Error, Result};
use crate::needs::Needs;
use crate::position::Position;
use crate::tensors::{HeadTensors, LayerTensors};
use crate::word::Word;

/// Whether a row holds the weight that a token paid to itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelfAttention {
    /// Row `t` (t = 1, 2, ...) has `t` weights, over positions `0..t`.
    Excluded,
    /// Row `t` (t = 0, 1, ...) has `t + 1` weights, over positions `0..=t`: what runtimes record.
    Included,
}

impl Word for SelfAttention {
    const WORDS: &'static [(SelfAttention, &'static str, &'static str)] = &[
        (SelfAttention::Excluded, "excluded", "row t (t = 1, 2, ...) has t weights, over the positions before t"),
        (
            SelfAttention::Included,
            "included",
            "row t (t = 0, 1, ...) has t + 1 weights, the last on t itself: what runtimes record",
        ),
    ];
}

impl SelfAttention {
    /// The first step that has a row.
    pub fn first_step(self) -> Position {
        match self {
            SelfAttention::Excluded => Position(1),
            SelfAttention::Included => Position(0),
        }
    }

    /// Number of weights in the row of `step`.
    #[inline]
    pub fn row_len(self, step: Position) -> usize {
        match self {
            SelfAttention::Excluded => step.index(),
            SelfAttention::Included => step.index() + 1,
        }
    }

    /// Number of rows of a stream over `positions` positions.
    pub fn rows_of(self, positions: usize) -> usize {
        positions.saturating_sub(self.first_step().index())
    }

    /// Number of positions behind `rows` rows.
    pub fn positions_of(self, rows: usize) -> usize {
        if rows == 0 { 0 } else { rows + self.first_step().index() }
    }
}

/// What is known of a trace before its rows are read.
#[derive(Clone, Debug)]
pub struct TraceInfo {
    /// How reports call it: the path as given, or the name of a built-in trace.
    pub name: String,
    /// Name of the file format.
    pub format: &'static str,
    /// Whether rows hold the token itself.
    pub self_attention: SelfAttention,
    /// The step of every stream's first row: [`SelfAttention::first_step`], or later where the trace begins in
    /// the middle of its sequence. Positions before it are in the cache without a row of their own.
    pub first_position: Position,
    /// Number of positions of the sequence, those before the first row included.
    pub positions: usize,
    /// The streams, by layer, then head.
    pub streams: Vec<StreamInfo>,
    /// What the file says of its origin, as text.
    pub metadata: Metadata,
    /// What that says of the model.
    pub facts: ModelFacts,
    /// What a user should know of how the file was understood, one line each, without its name.
    pub notes: Vec<String>,
    /// Flags that say aloud how the file was understood where it left that open, such as `--self excluded`.
    pub read_as: Vec<String>,
}

impl TraceInfo {
    /// Number of rows of all streams.
    pub fn rows(&self) -> u64 {
        self.streams.iter().map(|stream| stream.rows as u64).sum()
    }

    /// Whether rows are not read but made, from queries and keys.
    pub fn rows_are_rebuilt(&self) -> bool {
        qkv::FORMATS.contains(&self.format)
    }

    /// Number of weights of all rows.
    pub fn weights(&self) -> u64 {
        self.streams.iter().map(|stream| self.weights_of(stream.rows)).sum()
    }

    /// Number of weights of the first `rows` rows of a stream.
    pub fn weights_of(&self, rows: usize) -> u64 {
        let (rows, first) = (rows as u64, self.self_attention.row_len(self.first_position) as u64);
        rows * first + rows * rows.saturating_sub(1) / 2
    }

    /// Number of positions that rows reach: fewer than [`TraceInfo::positions`] where a file declares more than
    /// it holds.
    pub fn reached(&self) -> usize {
        let longest = self.streams.iter().map(|stream| stream.rows).max().unwrap_or(0);
        self.positions.min(self.first_position.index() + longest)
    }

    /// Puts metadata in place of what was there, and reads the facts in it.
    ///
    /// # Errors
    /// When a fact of the model means nothing, or contradicts another.
    pub fn set_metadata(&mut self, metadata: Metadata) -> Result<()> {
        self.facts = ModelFacts::parse(&metadata).map_err(|problem| Error::data(&self.name, problem))?;
        self.metadata = metadata;
        Ok(())
    }
}

/// What is known of a stream before its rows are read.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// Layer and head.
    pub label: StreamLabel,
    /// Number of rows.
    pub rows: usize,
    /// How weights are stored, as the format calls it.
    pub dtype: &'static str,
}

/// By how much rounding to a stored type alone may move the sum of a row away from one; `dtype` as in
/// [`StreamInfo::dtype`].
pub fn sum_tolerance(dtype: &str) -> f64 {
    if dtype == "bf16" { 5e-3 } else { 1e-3 }
}

/// A trace whose streams can be opened side by side.
pub trait Source: Send + Sync {
    /// The description of the trace.
    fn info(&self) -> &TraceInfo;

    /// Opens the stream with this index in [`TraceInfo::streams`], at its first row.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>>;

    /// What its steps hold: every trace has rows, some have more.
    fn offers(&self) -> Needs {
        Needs::WHOLE_ROWS
    }

    /// What a stream's query head has besides rows; `None` where the trace holds none of it. Gradients are read
    /// where `needs` has them.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what it must not.
    fn head_tensors(&self, stream: usize, needs: Needs) -> Result<Option<HeadTensors>> {
        let _ = (stream, needs);
        Ok(None)
    }

    /// What stands behind the heads of a layer; `None` where the trace does not hold it.
    ///
    /// # Errors
    /// As [`Source::head_tensors`].
    fn layer_tensors(&self, layer: u32) -> Result<Option<LayerTensors>> {
        let _ = layer;
        Ok(None)
    }

    /// A short text that tells the content of this trace from that of others, whichever of its streams are
    /// read: 16 hexadecimal digits, the same on every machine and with any number of threads.
    ///
    /// Of a file it is a hash of its bytes and of the flags that say how they are to be read, so that the same
    /// attention in two files of different formats differs; of any other source, of the rows of all streams.
    ///
    /// # Errors
    /// When the trace cannot be read.
    fn content_hash(&self) -> Result<String> {
        hash::of_rows(self)
    }

    /// Keeps what the rows of a stream sum to, as they were read from its first row on, for
    /// [`Source::warnings`] and [`Source::remarks`].
    fn keep_sums(&self, stream: usize, sums: &RowSums) {
        let _ = (stream, sums);
    }

    /// What is wrong with the rows read so far, one line each, without the file's name; complete once every
    /// stream has been read to its end and [`Source::keep_sums`] was told, and the same however often and in
    /// whatever order that was done.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What was noticed about the rows read so far and is no cause for concern, one line each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is said of the trace beyond its metadata and figures of its rows; looks at everything in the file that
    /// rows do not show.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what it must not.
    fn about(&self) -> Result<About> {
        Ok(About::default())
    }

    /// Some rows of a stream, spread over it, where making all of them takes long; `None` where reading them all is
    /// the way to know them.
    ///
    /// # Errors
    /// As [`Source::open`].
    fn sample(&self, stream: usize) -> Result<Option<Box<dyn RowReader>>> {
        let _ = stream;
        Ok(None)
    }

    /// Where a row stands, for messages: file, and line or stream and row.
    fn place(&self, stream: usize, step: Position) -> String {
        let info = self.info();
        let label = &info.streams[stream].label;
        format!("{}: layer {} head {}: row {step}", info.name, label.layer, label.head)
    }
}

/// What a source says of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// One line each.
    pub lines: Vec<String>,
    /// What is doubtful, one line each.
    pub warnings: Vec<String>,
}

/// The rows of one stream, in step order.
pub trait RowReader: Send {
    /// Appends the next rows to `block`, `rows` of them or as many as are left, and returns how
    /// many. 0 means the end. Weights are stored as read: validity is checked by the replay.
    ///
    /// # Errors
    /// When the file cannot be read or ends early.
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize>;
}
