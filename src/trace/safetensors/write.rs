//! Writes a trace as a native file, a block of rows at a time.

use super::header::{FIRST_POSITION, PREFIX};
use crate::error::{Error, Result};
use crate::trace::{Row, RowBlock, RowSums, Source, TraceInfo, qkv, refuse_weights};
use crate::word::Word;
use half::{bf16, f16};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;

/// How weights are stored in a native file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredType {
    /// Four bytes a weight: exact.
    F32,
    /// Two bytes, rounded to nearest: 11 bits of precision.
    F16,
    /// Two bytes, rounded to nearest: 8 bits of precision, the range of f32.
    Bf16,
}

impl Word for StoredType {
    const WORDS: &'static [(StoredType, &'static str, &'static str)] = &[
        (StoredType::F32, "f32", "four bytes a weight: exact"),
        (StoredType::F16, "f16", "two bytes, rounded to nearest: 11 bits of precision"),
        (StoredType::Bf16, "bf16", "two bytes, rounded to nearest: 8 bits of precision, the range of f32"),
    ];
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

    /// The least weight that would be rounded to infinity.
    fn overflow(self) -> f32 {
        match self {
            StoredType::F32 => f32::INFINITY,
            StoredType::F16 => 65520.0,
            StoredType::Bf16 => f32::from_bits(0x7f7f_8000),
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

/// Writes every stream of `source` to `out`; `progress` is told of weights as they are written.
///
/// # Errors
/// When the source cannot be read, holds a step without information (packed rows have no place for
/// one) or a weight that is none or too large for the stored type, or `out` refuses.
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
        let mut sums = RowSums::of(source, stream);
        while reader.read(&mut block, ROWS)? > 0 {
            bytes.clear();
            for row in block.rows() {
                if row.weights.is_empty() {
                    let problem = "a step without attention cannot be stored in packed rows";
                    return Err(Error::data(source.place(stream, row.step), problem).into());
                }
                refuse_weights(source, stream, row)?;
                refuse_overflow(source, stream, row, stored)?;
                sums.add(row.step, row.sum());
                stored.append(row.weights, &mut bytes);
            }
            out.write_all(&bytes)?;
            progress(block.weights() as u64);
            block.clear();
        }
        source.keep_sums(stream, &sums);
    }
    Ok(())
}

/// Refuses a row with a weight that the stored type cannot hold.
fn refuse_overflow(source: &dyn Source, stream: usize, row: Row<'_>, stored: StoredType) -> Result<()> {
    match row.weights.iter().position(|weight| *weight >= stored.overflow()) {
        None => Ok(()),
        Some(column) => {
            let (weight, name) = (row.weights[column], stored.name());
            let place = format!("{} column {column}", source.place(stream, row.step));
            Err(Error::data(place, format!("weight {weight} is more than {name} can hold: write it with --dtype f32")))
        }
    }
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
    info.weights() * stored.bytes() as u64
}

/// The header, padded with spaces so that tensor data starts at a multiple of eight bytes.
fn header(info: &TraceInfo, stored: StoredType) -> Vec<u8> {
    let mut tensors = Map::new();
    tensors.insert("__metadata__".to_owned(), json!(metadata(info)));
    let mut start = 0;
    for stream in &info.streams {
        let len = info.weights_of(stream.rows) as usize;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_overflows_at_the_least_number_that_it_rounds_to_infinity() {
        for (stored, wide) in [
            (StoredType::F16, (|weight| f16::from_f32(weight).to_f32()) as fn(f32) -> f32),
            (StoredType::Bf16, |weight| bf16::from_f32(weight).to_f32()),
        ] {
            assert!(wide(stored.overflow()).is_infinite());
            assert!(wide(stored.overflow().next_down()).is_finite());
        }
    }
}
