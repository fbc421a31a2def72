//! Streams the rows of a safetensors trace: reads consecutive rows at once and widens them.

use super::header::{Header, TensorPlace, describe};
use super::raw::read_header;
use super::square;
use crate::error::{Error, Result};
use crate::kernels;
use crate::position::Position;
use crate::trace::options::{ReadOption, ReadOptions};
use crate::trace::square::{Dump, open as open_square};
use crate::trace::storage::{FileReader, SharedFile, Storage, new_copy};
use crate::trace::{RowBlock, RowReader, SelfAttention, Source, TraceInfo, hash, qkv};
use safetensors::tensor::Dtype;
use std::io::Read;
use std::path::{Path, PathBuf};

struct SafetensorsTrace {
    header: Header,
}

/// What a safetensors file holds.
pub(in crate::trace) enum Contents {
    /// A native trace.
    Native(Box<dyn Source>),
    /// Square arrays.
    Arrays(Dump),
}

/// Opens a native trace, or square arrays; of a native trace only the header is read.
///
/// # Errors
/// When the file is not a sound safetensors file, or neither a kvsim trace nor attention in square arrays.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    open_stored(path.display().to_string(), SharedFile::open(path)?, options)
}

/// Opens a trace whose bytes come from what can be read once only, such as a pipe; they go through a temporary file.
///
/// # Errors
/// As for a file, and when the temporary file cannot be written.
pub(in crate::trace) fn open_stream(
    name: &str,
    bytes: &mut dyn Read,
    options: &ReadOptions,
) -> Result<Box<dyn Source>> {
    let mut copy = new_copy()?;
    std::io::copy(bytes, &mut copy).map_err(|error| Error::io(Path::new(name), error))?;
    open_stored(name.to_owned(), copy.into(), options)
}

fn open_stored(name: String, file: SharedFile, options: &ReadOptions) -> Result<Box<dyn Source>> {
    match contents(name, file, options)? {
        Contents::Native(source) => Ok(source),
        Contents::Arrays(dump) => open_square(dump, options),
    }
}

/// What a file holds.
///
/// # Errors
/// As for [`open`].
pub(in crate::trace) fn contents(name: String, file: SharedFile, options: &ReadOptions) -> Result<Contents> {
    let header = read_header(name, file)?;
    if qkv::is_qkv(&header) {
        return qkv::open(header, options).map(Contents::Native);
    }
    if square::is_square(&header) {
        return square::dump(header).map(Contents::Arrays);
    }
    let header = describe(header)?;
    options.allow_only(ReadOption::COMMON, "a native trace")?;
    Ok(Contents::Native(Box::new(SafetensorsTrace { header })))
}

impl Source for SafetensorsTrace {
    fn info(&self) -> &TraceInfo {
        &self.header.info
    }

    fn content_hash(&self) -> Result<String> {
        let bytes = Storage::File(self.header.file.clone());
        hash::of_storage(&bytes).map_err(|error| Error::io(Path::new(&self.info().name), error))
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let TensorPlace { dtype, start } = self.header.places[stream];
        let info = self.info();
        Ok(Box::new(TriangleReader {
            file: self.header.file.reader(start),
            path: PathBuf::from(&info.name),
            dtype,
            kind: info.self_attention,
            next: info.first_position,
            left: info.streams[stream].rows,
            narrow: Vec::new(),
        }))
    }
}

struct TriangleReader {
    file: FileReader,
    path: PathBuf,
    dtype: Dtype,
    kind: SelfAttention,
    next: Position,
    left: usize,
    /// Two-byte weights as read, before they are widened.
    narrow: Vec<u16>,
}

impl RowReader for TriangleReader {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let rows = rows.min(self.left);
        let kind = self.kind;
        let weights = block.push_rows(self.next, rows, |step| kind.row_len(step));
        self.read_weights(weights).map_err(|error| Error::io(&self.path, error))?;
        self.next.0 += rows as u32;
        self.left -= rows;
        Ok(rows)
    }
}

impl TriangleReader {
    fn read_weights(&mut self, weights: &mut [f32]) -> std::io::Result<()> {
        if self.dtype == Dtype::F32 {
            self.file.read_exact(bytemuck::cast_slice_mut(weights))?;
            weights.iter_mut().for_each(|weight| *weight = f32::from_bits(u32::from_le(weight.to_bits())));
            return Ok(());
        }
        if self.narrow.len() < weights.len() {
            self.narrow.resize(weights.len(), 0);
        }
        let narrow = &mut self.narrow[..weights.len()];
        self.file.read_exact(bytemuck::cast_slice_mut(narrow))?;
        narrow.iter_mut().for_each(|bits| *bits = u16::from_le(*bits));
        match self.dtype {
            Dtype::F16 => kernels::widen_f16(narrow, weights),
            _ => kernels::widen_bf16(narrow, weights),
        }
        Ok(())
    }
}
