//! Where the bytes of a trace are: its file, a temporary copy, or memory. Opens them side by side.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Bytes that can be opened any number of times.
pub(super) enum Storage {
    /// The user's file.
    File(PathBuf),
    /// A copy that goes away with the trace.
    Copy(NamedTempFile),
    /// A copy in memory.
    Memory(SharedBytes),
}

/// Bytes in memory that several readers share.
#[derive(Clone)]
pub(super) struct SharedBytes(Arc<Vec<u8>>);

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes(Arc::new(bytes))
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes that can be read from any place.
pub(super) trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

impl Storage {
    /// Opens the bytes at their start.
    pub(super) fn open(&self) -> Result<Box<dyn Bytes>> {
        Ok(match self {
            Storage::File(path) => Box::new(open_file(path)?),
            Storage::Copy(copy) => Box::new(copy.reopen().map_err(|error| Error::io(copy.path(), error))?),
            Storage::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
        })
    }
}

/// Opens a file of the user's.
pub(super) fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::io(path, error))
}

/// An empty copy, in the folder for temporary files.
pub(super) fn new_copy() -> Result<NamedTempFile> {
    NamedTempFile::new().map_err(|error| Error::io(&std::env::temp_dir(), error))
}
