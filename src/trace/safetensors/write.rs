//! Writes a trace as a native file, a block of rows at a time.

use super::header::{FIRST_POSITION, PREFIX};
use crate::error::{Error, Result};
use crate::trace::{RowBlock, Source, StreamInfo, TraceInfo, qkv, refuse_weights};
use half::{bf16, f16};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;

/// How weights are stored in a native file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum StoredType {
    /// Four bytes a weight: exact.
    F32,
    /// Two bytes, rounded to nearest: 11 bits of precision.
    F16,
    /// Two bytes, rounded to nearest: 8 bits of precision, the range of f32.
    Bf16,
}

impl StoredType {
    fn bytes(self) -> usize {
        if self == StoredType::F32 { 4 } else { 2 }
    }

    fn name(self) -> &'static str {
        match self {
            StoredType::F32 => "F32",
            StoredType::F16 => "F16",
            StoredType::Bf16 => "BF16",
        }
    }

    fn append(self, weights: &[f32], bytes: &mut Vec<u8>) {
        match self {
            StoredType::F32 => bytes.extend(weights.iter().flat_map(|weight| weight.to_le_bytes())),
            StoredType::F16 => bytes.extend(weights.iter().flat_map(|weight| f16::from_f32(*weight).to_le_bytes())),
            StoredType::Bf16 => bytes.extend(weights.iter().flat_map(|weight| bf16::from_f32(*weight).to_le_bytes())),
        }
    }
}

/// Rows read at a time.
const ROWS: usize = 64;

/// Writes every stream of `source` to `out`; `progress` is told of rows as they are written.
///
/// # Errors
/// When the source cannot be read, holds a step without information (packed rows have no place for
/// one) or a weight that is none, or `out` refuses.
pub fn write(
    source: &dyn Source,
    stored: StoredType,
    out: &mut dyn Write,
    progress: &dyn Fn(u64),
) -> Result<(), WriteError> {
    out.write_all(&header(source.info(), stored))?;
    let (mut block, mut bytes) = (RowBlock::default(), Vec::new());
    for stream in 0..source.info().streams.len() {
        let mut reader = source.open(stream)?;
        while reader.read(&mut block, ROWS)? > 0 {
            bytes.clear();
            for row in block.rows() {
                if row.weights.is_empty() {
                    let problem = "a step without attention cannot be stored in packed rows";
                    return Err(Error::data(source.place(stream, row.step), problem).into());
                }
                refuse_weights(source, stream, row)?;
                stored.append(row.weights, &mut bytes);
            }
            out.write_all(&bytes)?;
            progress(block.len() as u64);
            block.clear();
        }
    }
    Ok(())
}

/// What can go wrong while writing: the source, or the place written to.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The source could not be read.
    #[error(transparent)]
    Source(#[from] Error),
    /// The output refused.
    #[error(transparent)]
    Output(#[from] std::io::Error),
}

/// Bytes of the weights that [`write`] writes.
pub fn written_bytes(info: &TraceInfo, stored: StoredType) -> u64 {
    let weights: u64 = info.streams.iter().map(|stream| weights_of(info, stream) as u64).sum();
    weights * stored.bytes() as u64
}

/// Number of weights of a stream: its rows are each one longer than the one before.
fn weights_of(info: &TraceInfo, stream: &StreamInfo) -> usize {
    let first_len = info.self_attention.row_len(info.first_position);
    stream.rows * first_len + stream.rows * stream.rows.saturating_sub(1) / 2
}

/// The header, padded with spaces so that tensor data starts at a multiple of eight bytes.
fn header(info: &TraceInfo, stored: StoredType) -> Vec<u8> {
    let mut tensors = Map::new();
    tensors.insert("__metadata__".to_owned(), json!(metadata(info)));
    let mut start = 0;
    for stream in &info.streams {
        let len = weights_of(info, stream);
        let end = start + len * stored.bytes();
        let entry = json!({ "dtype": stored.name(), "shape": [len], "data_offsets": [start, end] });
        tensors.insert(format!("{PREFIX}{}", stream.label), entry);
        start = end;
    }
    let mut text = Value::Object(tensors).to_string();
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes
}

fn metadata(info: &TraceInfo) -> BTreeMap<String, String> {
    let mut metadata = info.metadata.clone();
    metadata.retain(|key, _| !qkv::is_of_products(key));
    metadata.insert("kvsim".to_owned(), "1".to_owned());
    metadata.insert("self".to_owned(), info.self_attention.word().to_owned());
    // What is said of positions without a row has no place in a file: its rows say how long it is.
    let rows = info.streams.iter().map(|stream| stream.rows).max().unwrap_or(0);
    metadata.insert("seq_len".to_owned(), info.positions.min(info.first_position.index() + rows).to_string());
    metadata.remove(FIRST_POSITION);
    if info.first_position > info.self_attention.first_step() {
        metadata.insert(FIRST_POSITION.to_owned(), info.first_position.to_string());
    }
    metadata
}
