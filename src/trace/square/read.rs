//! Reads stored rows, one at a time, wherever and however they are stored. Knows no positions.

use super::cells::Cells;
use crate::error::{Error, Result};
use crate::trace::storage::{Bytes, Storage};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Where the rows of a stream are stored.
#[derive(Clone)]
pub(super) struct RowPlace {
    /// The file, for messages.
    pub file: Arc<str>,
    pub storage: Arc<Storage>,
    pub cells: Cells,
    /// The byte at which row 0 starts.
    pub start: u64,
    /// Bytes from one row to the next.
    pub stride: u64,
    /// Weights in a row.
    pub width: usize,
}

/// Bytes read ahead where rows follow each other.
const AHEAD: usize = 1 << 17;

/// The rows of one stream.
pub(super) struct StoredRows {
    place: RowPlace,
    bytes: BufReader<Box<dyn Bytes>>,
    /// The byte that is read next.
    at: u64,
    raw: Vec<u8>,
    weights: Vec<f32>,
}

impl StoredRows {
    /// Opens the rows for reading them one after the other.
    pub(super) fn open(place: &RowPlace) -> Result<StoredRows> {
        // Where rows of other heads lie in between, reading ahead would read those.
        let follow = place.stride == (place.width * place.cells.size()) as u64;
        StoredRows::with_buffer(place, if follow { AHEAD } else { 0 })
    }

    /// Opens the rows for reading a few weights here and there.
    pub(super) fn open_sparse(place: &RowPlace) -> Result<StoredRows> {
        StoredRows::with_buffer(place, 0)
    }

    fn with_buffer(place: &RowPlace, buffer: usize) -> Result<StoredRows> {
        let bytes = BufReader::with_capacity(buffer, place.storage.open());
        Ok(StoredRows { place: place.clone(), bytes, at: 0, raw: Vec::new(), weights: Vec::new() })
    }

    /// The weights of a row, which the caller may change.
    pub(super) fn row(&mut self, row: usize) -> Result<&mut [f32]> {
        self.read(self.place.start + row as u64 * self.place.stride, self.place.width)?;
        Ok(&mut self.weights)
    }

    /// A single weight.
    pub(super) fn weight(&mut self, row: usize, column: usize) -> Result<f32> {
        let start = self.place.start + row as u64 * self.place.stride;
        self.read(start + (column * self.place.cells.size()) as u64, 1)?;
        Ok(self.weights[0])
    }

    fn read(&mut self, start: u64, count: usize) -> Result<()> {
        self.raw.resize(count * self.place.cells.size(), 0);
        self.weights.resize(count, 0.0);
        self.read_raw(start).map_err(|error| self.failure(error))?;
        self.place.cells.widen(&mut self.raw, &mut self.weights);
        Ok(())
    }

    fn read_raw(&mut self, start: u64) -> std::io::Result<()> {
        // A seek empties the buffer even where it goes nowhere.
        if start != self.at {
            self.bytes.seek(SeekFrom::Start(start))?;
        }
        self.bytes.read_exact(&mut self.raw)?;
        self.at = start + self.raw.len() as u64;
        Ok(())
    }

    fn failure(&self, error: std::io::Error) -> Error {
        Error::io(Path::new(&*self.place.file), error)
    }
}
