//! From the header of a safetensors file to the description of a trace. Touches no tensor data.

use crate::error::{Error, Result};
use crate::trace::{Head, SelfAttention, StreamInfo, StreamLabel, TraceInfo};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Prefix of the tensors that hold attention.
pub(super) const PREFIX: &str = "attention.";
/// The format itself allows no longer header.
const MAX_HEADER: u64 = 100_000_000;

/// A trace file's description, and where each stream's bytes are.
pub(super) struct Header {
    pub info: TraceInfo,
    pub places: Vec<TensorPlace>,
}

/// Where the bytes of a stream are, and how a weight is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorPlace {
    pub dtype: Dtype,
    pub start: u64,
}

/// Reads and checks the header of the trace at `path`.
pub(super) fn read_header(path: &Path) -> Result<Header> {
    let name = path.display().to_string();
    let mut file = File::open(path).map_err(|error| Error::io(path, error))?;
    let file_len = file.metadata().map_err(|error| Error::io(path, error))?.len();
    let bytes = read_header_bytes(&mut file, file_len, path)?;
    let metadata: Metadata = serde_json::from_slice(&bytes)
        .map_err(|error| Error::data(&name, format!("not a sound safetensors header: {error}")))?;
    let data_start = 8 + bytes.len() as u64;
    check_length(&name, file_len, data_start + metadata.data_len() as u64)?;
    describe(&name, &metadata, data_start)
}

fn read_header_bytes(file: &mut File, file_len: u64, path: &Path) -> Result<Vec<u8>> {
    let mut prefix = [0; 8];
    let name = || path.display().to_string();
    if file_len < 8 {
        return Err(Error::data(name(), format!("{file_len} bytes is too short for a safetensors file")));
    }
    file.read_exact(&mut prefix).map_err(|error| Error::io(path, error))?;
    let len = u64::from_le_bytes(prefix);
    if len > MAX_HEADER || len > file_len - 8 {
        let problem = format!("the header claims {len} bytes, the file has {file_len}: truncated, or not safetensors");
        return Err(Error::data(name(), problem));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact(&mut bytes).map_err(|error| Error::io(path, error))?;
    Ok(bytes)
}

fn check_length(name: &str, found: u64, needed: u64) -> Result<()> {
    if found == needed {
        return Ok(());
    }
    let what = if found < needed { "truncated" } else { "too long" };
    Err(Error::data(name, format!("{what}: {found} bytes, the header describes {needed}")))
}

fn describe(name: &str, header: &Metadata, data_start: u64) -> Result<Header> {
    let metadata: BTreeMap<String, String> = header.metadata().clone().unwrap_or_default().into_iter().collect();
    let self_attention = self_attention(name, &metadata)?;
    let mut streams = Vec::new();
    for (tensor, info) in header.tensors() {
        if let Some(label) = tensor.strip_prefix(PREFIX) {
            streams.push(describe_stream(name, &tensor, label, info, self_attention, data_start)?);
        }
    }
    streams.sort_by(|(a, _), (b, _)| a.label.cmp(&b.label));
    check_streams(name, &streams)?;
    let rows = streams.iter().map(|(stream, _)| stream.rows).max().unwrap_or(0);
    let positions = positions(name, &metadata, self_attention, rows)?;
    let (streams, places) = streams.into_iter().unzip();
    let info = TraceInfo { name: name.to_owned(), format: "safetensors", self_attention, positions, streams, metadata };
    Ok(Header { info, places })
}

fn self_attention(name: &str, metadata: &BTreeMap<String, String>) -> Result<SelfAttention> {
    match metadata.get("kvsim").map(String::as_str) {
        Some("1") => {}
        Some(other) => return Err(Error::data(name, format!("format version {other:?}, this version reads \"1\""))),
        None => {
            let problem = "no `kvsim` in the metadata: not a kvsim trace (README.md shows how to write one)";
            return Err(Error::data(name, problem));
        }
    }
    let word = metadata.get("self").ok_or_else(|| {
        Error::data(name, "the metadata must say whether `self` is \"included\" or \"excluded\" in each row")
    })?;
    SelfAttention::from_word(word)
        .ok_or_else(|| Error::data(name, format!("self is {word:?}, must be \"included\" or \"excluded\"")))
}

fn describe_stream(
    name: &str,
    tensor: &str,
    label: &str,
    info: &TensorInfo,
    self_attention: SelfAttention,
    data_start: u64,
) -> Result<(StreamInfo, TensorPlace)> {
    let place = format!("{name}: tensor {tensor:?}");
    let label = parse_label(label).ok_or_else(|| Error::data(&place, "expected a name attention.{layer}.{head}"))?;
    let dtype = dtype_name(info.dtype)
        .ok_or_else(|| Error::data(&place, format!("dtype {:?}, must be F32, F16 or BF16", info.dtype)))?;
    let [len] = info.shape[..] else {
        let problem = format!("shape {:?}, must be one-dimensional: rows back to back, no padding", info.shape);
        return Err(Error::data(&place, problem));
    };
    let rows = triangle_rows(len).ok_or_else(|| {
        Error::data(&place, format!("{len} weights is no triangle number: rows of 1, 2, 3, ... do not fill it"))
    })?;
    debug_assert!(self_attention.positions_of(rows) >= rows);
    let start = data_start + info.data_offsets.0 as u64;
    Ok((StreamInfo { label, rows, dtype }, TensorPlace { dtype: info.dtype, start }))
}

fn parse_label(text: &str) -> Option<StreamLabel> {
    let (layer, head) = text.split_once('.')?;
    let layer = layer.parse().ok()?;
    (!head.is_empty()).then(|| StreamLabel { layer, head: Head::parse(head) })
}

fn dtype_name(dtype: Dtype) -> Option<&'static str> {
    match dtype {
        Dtype::F32 => Some("f32"),
        Dtype::F16 => Some("f16"),
        Dtype::BF16 => Some("bf16"),
        _ => None,
    }
}

/// The number of rows of 1, 2, 3, ... weights that make up `len` weights exactly.
fn triangle_rows(len: usize) -> Option<usize> {
    let rows = ((8 * len as u128 + 1).isqrt() - 1) / 2;
    (rows * (rows + 1) / 2 == len as u128).then_some(rows as usize)
}

fn check_streams(name: &str, streams: &[(StreamInfo, TensorPlace)]) -> Result<()> {
    let Some((first, _)) = streams.first() else {
        return Err(Error::data(name, "holds no tensor named attention.{layer}.{head}"));
    };
    for pair in streams.windows(2) {
        if pair[0].0.label == pair[1].0.label {
            return Err(Error::data(name, format!("stream {} is there twice", pair[0].0.label)));
        }
    }
    match streams.iter().find(|(stream, _)| stream.rows != first.rows) {
        None => Ok(()),
        Some((other, _)) => {
            let problem = format!(
                "streams {} and {} have {} and {} rows: all streams of a trace are equally long",
                first.label, other.label, first.rows, other.rows
            );
            Err(Error::data(name, problem))
        }
    }
}

fn positions(name: &str, metadata: &BTreeMap<String, String>, kind: SelfAttention, rows: usize) -> Result<usize> {
    let found = kind.positions_of(rows);
    match metadata.get("seq_len").map(|text| (text, text.parse::<usize>().ok())) {
        None => Ok(found),
        Some((_, Some(said))) if kind.rows_of(said) == rows => Ok(said),
        Some((text, _)) => {
            let problem = format!("seq_len is {text:?}, the tensors hold {rows} rows ({found} positions)");
            Err(Error::data(name, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangle_numbers_are_told_from_others() {
        assert_eq!(triangle_rows(0), Some(0));
        assert_eq!(triangle_rows(1), Some(1));
        assert_eq!(triangle_rows(2), None);
        assert_eq!(triangle_rows(2_098_176), Some(2048));
        assert_eq!(triangle_rows(2_098_177), None);
        assert_eq!(triangle_rows(usize::MAX), None);
    }
}
