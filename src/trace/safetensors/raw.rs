//! The header of any safetensors file: names, shapes and places of tensors. Touches no tensor data, and does
//! not know what tensors mean.

use super::entries::Entries;
use super::lists;
use crate::error::{Error, Result};
use crate::trace::limits::{MOST_DIMENSIONS, cut, quoted};
use crate::trace::storage::SharedFile;
use safetensors::tensor::{Dtype, Metadata};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// The format itself allows no longer header.
const MAX_HEADER: u64 = 100_000_000;

/// What a file holds, checked against its length.
pub(in crate::trace) struct RawHeader {
    /// The file's name, for messages.
    pub name: String,
    pub metadata: BTreeMap<String, String>,
    /// By name.
    pub tensors: Vec<RawTensor>,
    /// The file itself.
    pub file: SharedFile,
}

/// A tensor of the file.
pub(in crate::trace) struct RawTensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Where it starts in the file.
    pub start: u64,
}

/// Reads and checks the header of a file.
pub(in crate::trace) fn read_header(name: String, file: SharedFile) -> Result<RawHeader> {
    let file_len = file.len().map_err(|error| Error::io(Path::new(&name), error))?;
    let bytes = read_header_bytes(&mut file.reader(0), file_len, &name)?;
    let dimensions = lists::longest(&bytes);
    if dimensions > MOST_DIMENSIONS {
        let problem = format!("a shape of {dimensions} dimensions: no array has more than {MOST_DIMENSIONS}");
        return Err(Error::data(&name, problem));
    }
    let unsound = |error: String| Error::data(&name, format!("not a sound safetensors header: {}", cut(&error)));
    let entries = Entries::read(&bytes).map_err(|error| unsound(error.to_string()))?;
    let data_start = 8 + bytes.len() as u64;
    // A header of a million tensors is large: what is made of it takes its place.
    drop(bytes);
    if let Some(twice) = entries.twice() {
        let problem = format!("two tensors are named {}: give each a name of its own", quoted(twice));
        return Err(Error::data(&name, problem));
    }
    let metadata = entries.checked().map_err(unsound)?;
    check_length(&name, file_len, data_start + metadata.data_len() as u64)?;
    Ok(raw_header(name, metadata, data_start, file))
}

fn read_header_bytes(file: &mut impl Read, file_len: u64, name: &str) -> Result<Vec<u8>> {
    let mut prefix = [0; 8];
    if file_len < 8 {
        return Err(Error::data(name, format!("{file_len} bytes is too short for a safetensors file")));
    }
    let failed = |error| Error::io(Path::new(name), error);
    file.read_exact(&mut prefix).map_err(failed)?;
    let len = u64::from_le_bytes(prefix);
    if len > file_len - 8 {
        let problem = format!("the header claims {len} bytes, the file has {file_len}: truncated, or not safetensors");
        return Err(Error::data(name, problem));
    }
    if len > MAX_HEADER {
        let problem = format!(
            "the header has {len} bytes, more than the {MAX_HEADER} that the format allows: write fewer tensors, such \
             as one array for each layer"
        );
        return Err(Error::data(name, problem));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn check_length(name: &str, found: u64, needed: u64) -> Result<()> {
    if found == needed {
        return Ok(());
    }
    let what = if found < needed { "truncated" } else { "too long" };
    Err(Error::data(name, format!("{what}: {found} bytes, the header describes {needed}")))
}

fn raw_header(name: String, header: Metadata, data_start: u64, file: SharedFile) -> RawHeader {
    let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
    let tensor = |name: String| {
        let info = header.info(&name)?;
        let start = data_start + info.data_offsets.0 as u64;
        Some(RawTensor { dtype: info.dtype, shape: info.shape.clone(), start, name })
    };
    let mut tensors: Vec<RawTensor> = header.offset_keys().into_iter().filter_map(tensor).collect();
    tensors.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    RawHeader { name, metadata, tensors, file }
}
