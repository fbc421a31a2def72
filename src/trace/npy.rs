//! `.npy`: one array, as `numpy.save` writes it. Reads the header; the array is never read here.

pub(super) mod header;
mod literal;

use super::Source;
use super::options::ReadOptions;
use super::square::{Array, Cells, Dump, open as open_square};
use super::storage::{SharedFile, Storage};
use crate::error::{Error, Result};
use header::Header;
use std::cmp::Ordering;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Opens an npy file.
///
/// # Errors
/// When it is not a sound array of floats, or not attention.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    open_square(dump(path)?, options)
}

/// The array of an npy file.
///
/// # Errors
/// When it is not a sound array of floats.
pub(super) fn dump(path: &Path) -> Result<Dump> {
    let file = path.display().to_string();
    let array = describe(path).map_err(|error| match error {
        Problem::Io(error) => error,
        Problem::Data(problem) => Error::data(&file, problem),
    })?;
    let content = vec![Storage::clone(&array.storage)];
    Ok(Dump { file, format: "npy", content, arrays: vec![array], ..Dump::default() })
}

/// What can go wrong before the place is named.
enum Problem {
    Io(Error),
    Data(String),
}

impl From<String> for Problem {
    fn from(problem: String) -> Problem {
        Problem::Data(problem)
    }
}

fn describe(path: &Path) -> Result<Array, Problem> {
    let file = SharedFile::open(path).map_err(Problem::Io)?;
    let len = file.len().map_err(|error| Problem::Io(Error::io(path, error)))?;
    let header = header::read(&mut BufReader::new(file.reader(0)))?;
    let cells = header.cells(&path.display().to_string(), None)?;
    check_len(&header, cells, len)?;
    Ok(array(&header, String::new(), cells, &Arc::new(Storage::File(file)), header.len))
}

/// The array behind a header, whose bytes start at `start`.
pub(super) fn array(header: &Header, name: String, cells: Cells, storage: &Arc<Storage>, start: u64) -> Array {
    Array { name, shape: header.shape.clone(), cells, fortran: header.fortran, storage: Arc::clone(storage), start }
}

/// Checks that of `len` bytes the header and the array make up all; returns the array's.
///
/// # Errors
/// One line that says how many are there and how many are needed.
pub(super) fn check_len(header: &Header, cells: Cells, len: u64) -> Result<u64, String> {
    let needed = Array::bytes(&header.shape, cells)
        .ok_or_else(|| format!("shape {:?} is more than any file can hold", header.shape))?;
    let found = len.saturating_sub(header.len);
    match found.cmp(&needed) {
        Ordering::Equal => Ok(needed),
        Ordering::Less => Err(format!("truncated: the array needs {needed} bytes, {found} are there")),
        Ordering::Greater => {
            Err(format!("{} bytes follow the array: save several arrays with numpy.savez", found - needed))
        }
    }
}
