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
use rayon::prelude::*;
use safetensors::tensor::Dtype;
use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

struct SafetensorsTrace {
    header: Header,
    /// The hash of each stream that has been read to its end: what a replay has read is not read again.
    hashes: Arc<[OnceLock<u64>]>,
}

impl SafetensorsTrace {
    fn new(header: Header) -> SafetensorsTrace {
        let hashes = header.info.streams.iter().map(|_| OnceLock::new()).collect();
        SafetensorsTrace { header, hashes }
    }

    /// The hash of a stream's bytes, which are read where no reader has come to their end.
    fn stream_hash(&self, stream: usize) -> std::io::Result<u64> {
        if let Some(hash) = self.hashes[stream].get() {
            return Ok(*hash);
        }
        let (info, TensorPlace { dtype, start }) = (&self.header.info, self.header.places[stream]);
        let (rows, first) = (info.streams[stream].rows as u64, info.self_attention.row_len(info.first_position) as u64);
        let weights = rows * first + rows * rows.saturating_sub(1) / 2;
        hash::of_range(&self.header.file, start, weights * if dtype == Dtype::F32 { 4 } else { 2 })
    }

    /// The hash of all that stands before the streams, and of each stream.
    fn hashes(&self) -> std::io::Result<Vec<u64>> {
        let header = self.header.places.iter().map(|place| place.start).min().unwrap_or(0);
        let header = hash::of_range(&self.header.file, 0, header)?;
        let streams = (0..self.hashes.len()).into_par_iter().map(|stream| self.stream_hash(stream));
        let streams = streams.collect::<std::io::Result<Vec<u64>>>()?;
        Ok([vec![header], streams].concat())
    }
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
    Ok(Contents::Native(Box::new(SafetensorsTrace::new(header))))
}

impl Source for SafetensorsTrace {
    fn info(&self) -> &TraceInfo {
        &self.header.info
    }

    fn content_hash(&self) -> Result<String> {
        if self.hashes.is_empty() {
            let bytes = Storage::File(self.header.file.clone());
            return hash::of_storage(&bytes).map_err(|error| Error::io(Path::new(&self.info().name), error));
        }
        let hashes = self.hashes().map_err(|error| Error::io(Path::new(&self.info().name), error))?;
        Ok(hash::combined(&hashes))
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
            hash: hash::StreamHash::default(),
            hashes: Arc::clone(&self.hashes),
            stream,
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
    /// The hash of the bytes read so far.
    hash: hash::StreamHash,
    hashes: Arc<[OnceLock<u64>]>,
    stream: usize,
}

impl RowReader for TriangleReader {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let rows = rows.min(self.left);
        let kind = self.kind;
        let weights = block.push_rows(self.next, rows, |step| kind.row_len(step));
        self.read_weights(weights).map_err(|error| Error::io(&self.path, error))?;
        self.next.0 += rows as u32;
        self.left -= rows;
        if self.left == 0 {
            self.hashes[self.stream].get_or_init(|| self.hash.finish());
        }
        Ok(rows)
    }
}

impl TriangleReader {
    fn read_weights(&mut self, weights: &mut [f32]) -> std::io::Result<()> {
        if self.dtype == Dtype::F32 {
            let bytes = bytemuck::cast_slice_mut(weights);
            self.file.read_exact(bytes)?;
            self.hash.write(bytes);
            weights.iter_mut().for_each(|weight| *weight = f32::from_bits(u32::from_le(weight.to_bits())));
            return Ok(());
        }
        if self.narrow.len() < weights.len() {
            self.narrow.resize(weights.len(), 0);
        }
        let narrow = &mut self.narrow[..weights.len()];
        let bytes = bytemuck::cast_slice_mut(narrow);
        self.file.read_exact(bytes)?;
        self.hash.write(bytes);
        narrow.iter_mut().for_each(|bits| *bits = u16::from_le(*bits));
        match self.dtype {
            Dtype::F16 => kernels::widen_f16(narrow, weights),
            _ => kernels::widen_bf16(narrow, weights),
        }
        Ok(())
    }
}
