//! From the header of a safetensors file to the description of a trace. Touches no tensor data.

use super::raw::{RawHeader, RawTensor};
use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::limits::{check_positions, quoted};
use crate::trace::storage::SharedFile;
use crate::trace::{Metadata, ModelFacts, SelfAttention, StreamInfo, StreamLabel, TraceInfo};
use crate::word::Word;
use safetensors::tensor::Dtype;
use std::collections::BTreeMap;

/// The key of the metadata that says where a trace begins, if that is in the middle of its sequence.
pub(super) const FIRST_POSITION: &str = "first_position";
/// Prefix of the tensors that hold attention.
pub(super) const PREFIX: &str = "attention.";

/// A trace file's description, and where each stream's bytes are.
pub(super) struct Header {
    pub info: TraceInfo,
    pub places: Vec<TensorPlace>,
    pub file: SharedFile,
}

/// Where the bytes of a stream are, and how a weight is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorPlace {
    pub dtype: Dtype,
    pub start: u64,
}

/// Describes the native trace behind a file's header.
pub(super) fn describe(raw: RawHeader) -> Result<Header> {
    let RawHeader { name, metadata, tensors, file } = raw;
    let name = name.as_str();
    let self_attention = self_attention(name, &metadata)?;
    let first_position = first_position(name, &metadata, self_attention)?;
    let mut streams = Vec::new();
    for tensor in &tensors {
        if let Some(label) = tensor.name.strip_prefix(PREFIX) {
            streams.push(describe_stream(name, tensor, label, self_attention.row_len(first_position))?);
        }
    }
    streams.sort_by(|(a, _), (b, _)| a.label.cmp(&b.label));
    check_streams(name, &streams)?;
    let rows = streams.iter().map(|(stream, _)| stream.rows).max().unwrap_or(0);
    let positions = positions(name, &metadata, first_position, rows)?;
    check_positions(first_position.index().saturating_add(rows)).map_err(|problem| Error::data(name, problem))?;
    // Where no row says otherwise, nothing begins in the middle of its sequence.
    let first_position = if rows == 0 { self_attention.first_step() } else { first_position };
    let (streams, places) = streams.into_iter().unzip();
    let mut info = TraceInfo {
        name: name.to_owned(),
        format: "safetensors",
        self_attention,
        first_position,
        positions,
        streams,
        metadata: Metadata::new(),
        facts: ModelFacts::default(),
        notes: Vec::new(),
        read_as: Vec::new(),
    };
    info.set_metadata(metadata)?;
    Ok(Header { info, places, file })
}

fn self_attention(name: &str, metadata: &BTreeMap<String, String>) -> Result<SelfAttention> {
    match metadata.get("kvsim").map(String::as_str) {
        Some("1") => {}
        Some(other) => {
            return Err(Error::data(name, format!("format version {}, this version reads \"1\"", quoted(other))));
        }
        None => {
            let problem = "no `kvsim` in the metadata: not a kvsim trace (README.md shows how to write one)";
            return Err(Error::data(name, problem));
        }
    }
    let word = metadata.get("self").ok_or_else(|| {
        Error::data(name, "the metadata must say whether `self` is \"included\" or \"excluded\" in each row")
    })?;
    SelfAttention::from_word(word)
        .ok_or_else(|| Error::data(name, format!("self is {}, must be \"included\" or \"excluded\"", quoted(word))))
}

fn describe_stream(name: &str, tensor: &RawTensor, label: &str, first_len: usize) -> Result<(StreamInfo, TensorPlace)> {
    let place = format!("{name}: tensor {}", quoted(&tensor.name));
    let label =
        StreamLabel::parse(label).ok_or_else(|| Error::data(&place, "expected a name attention.{layer}.{head}"))?;
    let dtype = dtype_name(tensor.dtype)
        .ok_or_else(|| Error::data(&place, format!("dtype {:?}, must be F32, F16 or BF16", tensor.dtype)))?;
    let [len] = tensor.shape[..] else {
        let problem = format!(
            "shape {:?}, must be one-dimensional: rows back to back, no padding (square arrays are read from files \
             without `kvsim` in the metadata)",
            tensor.shape
        );
        return Err(Error::data(&place, problem));
    };
    let rows = rows_of(len, first_len).ok_or_else(|| Error::data(&place, unfilled(len, first_len)))?;
    Ok((StreamInfo { label, rows, dtype }, TensorPlace { dtype: tensor.dtype, start: tensor.start }))
}

fn dtype_name(dtype: Dtype) -> Option<&'static str> {
    match dtype {
        Dtype::F32 => Some("f32"),
        Dtype::F16 => Some("f16"),
        Dtype::BF16 => Some("bf16"),
        _ => None,
    }
}

/// The number of rows of `first`, `first + 1`, ... weights that make up `len` weights exactly.
fn rows_of(len: usize, first: usize) -> Option<usize> {
    // Rows of 1, 2, ..., first - 1 weights put before them make it a triangle.
    let before = (first as u128).saturating_sub(1);
    let triangle = len as u128 + before * (before + 1) / 2;
    let rows = ((8 * triangle + 1).isqrt() - 1) / 2;
    (rows * (rows + 1) / 2 == triangle).then_some((rows - before) as usize)
}

fn unfilled(len: usize, first: usize) -> String {
    let (second, third) = (first + 1, first + 2);
    match first {
        1 => format!("{len} weights is not a triangle number: rows of 1, 2, 3, ... do not fill it"),
        _ => format!("{len} weights: rows of {first}, {second}, {third}, ... do not fill it"),
    }
}

fn check_streams(name: &str, streams: &[(StreamInfo, TensorPlace)]) -> Result<()> {
    if streams.is_empty() {
        return Err(Error::data(name, "holds no tensor named attention.{layer}.{head}"));
    }
    match streams.windows(2).find(|pair| pair[0].0.label == pair[1].0.label) {
        None => Ok(()),
        Some(pair) => Err(Error::data(name, format!("stream {} is there twice", pair[0].0.label))),
    }
}

/// Traces that begin in the middle of a sequence say where.
fn first_position(name: &str, metadata: &BTreeMap<String, String>, kind: SelfAttention) -> Result<Position> {
    let Some(text) = metadata.get(FIRST_POSITION) else { return Ok(kind.first_step()) };
    match text.parse() {
        Ok(first) => {
            check_positions(first).map_err(|problem| Error::data(name, format!("{FIRST_POSITION}: {problem}")))?;
            Ok(Position(first as u32).max(kind.first_step()))
        }
        Err(_) => {
            let problem = format!("{FIRST_POSITION} is {}, must be the position of the first row", quoted(text));
            Err(Error::data(name, problem))
        }
    }
}

fn positions(name: &str, metadata: &BTreeMap<String, String>, first: Position, rows: usize) -> Result<usize> {
    let found = if rows == 0 { 0 } else { first.index() + rows };
    match metadata.get("seq_len").map(|text| (text, text.parse::<usize>().ok())) {
        None => Ok(found),
        Some((_, Some(said))) if said.saturating_sub(first.index()) == rows => Ok(said),
        Some((text, _)) => {
            let problem = format!("seq_len is {}, the tensors hold {rows} rows ({found} positions)", quoted(text));
            Err(Error::data(name, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangle_numbers_are_told_from_others() {
        assert_eq!(rows_of(0, 1), Some(0));
        assert_eq!(rows_of(1, 1), Some(1));
        assert_eq!(rows_of(2, 1), None);
        assert_eq!(rows_of(2_098_176, 1), Some(2048));
        assert_eq!(rows_of(2_098_177, 1), None);
        assert_eq!(rows_of(usize::MAX, 1), None);
    }

    #[test]
    fn rows_may_begin_in_the_middle_of_the_sequence() {
        assert_eq!(rows_of(5 + 6 + 7, 5), Some(3));
        assert_eq!(rows_of(0, 5), Some(0));
        assert_eq!(rows_of(4, 5), None);
        assert_eq!(rows_of(usize::MAX, u32::MAX as usize), None);
    }
}
