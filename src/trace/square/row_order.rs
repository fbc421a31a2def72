//! Rewrites arrays in which the first index runs fastest (Fortran order): a row's weights are spread
//! over the whole file there, so it cannot be streamed as it stands.
//!
//! Seen as a matrix with a line for each column of attention, the array is transposed: its rows
//! become contiguous, in the order of their indices, the first still fastest.

use super::array::Array;
use crate::error::{Error, Result};
use crate::trace::storage::{Bytes, Storage, copy_failed, new_copy};
use std::io::{BufWriter, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes transposed at a time.
const BLOCK: usize = 1 << 26;

/// Makes the rows of an array contiguous, and says in `notes` what it took.
///
/// # Errors
/// When the array cannot be read, or the temporary file not written.
pub(super) fn make_rows_contiguous(
    array: &mut Array,
    file: &str,
    max_memory: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let Some(matrix) = Matrix::of(array).filter(|_| array.fortran) else { return Ok(()) };
    let whole = matrix.line_bytes() * matrix.lines as u64;
    let hold = max_memory.is_some_and(|most| whole <= most);
    let storage = if hold { matrix.to_memory(array, file)? } else { matrix.to_copy(array, file)? };
    let place = if hold { "in memory" } else { "to a temporary file" };
    let name = if array.name.is_empty() { "the array".to_owned() } else { format!("array {:?}", array.name) };
    notes.push(format!("{name} is in Fortran order: rewritten row by row {place} ({whole} bytes)"));
    (array.storage, array.start) = (Arc::new(storage), 0);
    Ok(())
}

/// The array as it is stored: a line for each column of attention, a cell in it for each row.
struct Matrix {
    /// Columns of attention.
    lines: usize,
    /// Rows of attention.
    rows: usize,
    cell: usize,
}

impl Matrix {
    /// `None` where there is nothing to transpose.
    fn of(array: &Array) -> Option<Matrix> {
        let (lines, leading) = array.shape.split_last()?;
        let matrix = Matrix { lines: *lines, rows: leading.iter().product(), cell: array.cells.size() };
        (matrix.lines > 0 && matrix.rows > 0).then_some(matrix)
    }

    fn line_bytes(&self) -> u64 {
        (self.rows * self.cell) as u64
    }

    /// Rows of attention in a block.
    fn block_rows(&self) -> usize {
        (BLOCK / (self.lines * self.cell)).clamp(1, self.rows)
    }

    fn to_memory(&self, array: &Array, file: &str) -> Result<Storage> {
        let mut whole = Vec::with_capacity(self.rows * self.lines * self.cell);
        self.transpose(array, file, self.block_rows(), |block| {
            whole.extend_from_slice(block);
            Ok(())
        })?;
        Ok(Storage::Memory(whole.into()))
    }

    fn to_copy(&self, array: &Array, file: &str) -> Result<Storage> {
        let copy = new_copy()?;
        let failed = |error: std::io::Error| Error::io(Path::new(file), copy_failed(&error));
        let mut out = BufWriter::new(&copy);
        self.transpose(array, file, self.block_rows(), |block| out.write_all(block).map_err(failed))?;
        out.flush().map_err(failed)?;
        drop(out);
        Ok(Storage::File(copy.into()))
    }

    /// Hands on the rows of attention, at most `most` at a time.
    fn transpose(
        &self,
        array: &Array,
        file: &str,
        most: usize,
        mut hand_on: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = array.storage.open();
        let (mut cells, mut block) = (Vec::new(), Vec::new());
        for first in (0..self.rows).step_by(most) {
            let rows = most.min(self.rows - first);
            block.resize(rows * self.lines * self.cell, 0);
            cells.resize(rows * self.cell, 0);
            for line in 0..self.lines {
                let at = array.start + line as u64 * self.line_bytes() + (first * self.cell) as u64;
                read_at(&mut *bytes, at, &mut cells).map_err(|error| Error::io(Path::new(file), error))?;
                self.scatter(&cells, line, &mut block);
            }
            hand_on(&block)?;
        }
        Ok(())
    }

    /// Puts the cells of one line where they belong in each row.
    fn scatter(&self, cells: &[u8], line: usize, block: &mut [u8]) {
        let rows = block.chunks_exact_mut(self.lines * self.cell);
        for (row, cell) in rows.zip(cells.chunks_exact(self.cell)) {
            row[line * self.cell..][..self.cell].copy_from_slice(cell);
        }
    }
}

fn read_at(bytes: &mut dyn Bytes, at: u64, buffer: &mut [u8]) -> std::io::Result<()> {
    bytes.seek(SeekFrom::Start(at))?;
    bytes.read_exact(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::square::{CellType, Cells};
    use std::io::Read;

    /// A matrix of 5 lines of 3 rows, cell `line * 10 + row`, in two bytes.
    fn stored() -> Array {
        let cells = (0..5_u16).flat_map(|line| (0..3).map(move |row| line * 10 + row));
        let bytes: Vec<u8> = [7, 7].into_iter().chain(cells.flat_map(u16::to_le_bytes)).collect();
        Array {
            name: String::new(),
            shape: vec![3, 5],
            cells: Cells::little_endian(CellType::F16),
            fortran: true,
            storage: Arc::new(Storage::Memory(bytes.into())),
            start: 2,
        }
    }

    fn expected() -> Vec<u8> {
        (0..3_u16).flat_map(|row| (0..5).flat_map(move |line| (line * 10 + row).to_le_bytes())).collect()
    }

    fn contents(array: &Array) -> Vec<u8> {
        let mut bytes = Vec::new();
        array.storage.open().read_to_end(&mut bytes).expect("read");
        bytes
    }

    #[test]
    fn rows_become_contiguous_in_memory_or_in_a_file() {
        for (max_memory, place) in [(None, "temporary file"), (Some(29), "temporary file"), (Some(30), "in memory")] {
            let (mut array, mut notes) = (stored(), Vec::new());
            make_rows_contiguous(&mut array, "x", max_memory, &mut notes).expect("rewritten");
            assert_eq!(contents(&array), expected());
            assert_eq!(array.start, 0);
            assert!(notes[0].contains(place), "{notes:?}");
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_same_rows() {
        let array = stored();
        let matrix = Matrix::of(&array).expect("not empty");
        for most in 1..=4 {
            let mut found = Vec::new();
            let collect = |block: &[u8]| {
                found.extend_from_slice(block);
                Ok(())
            };
            matrix.transpose(&array, "x", most, collect).expect("read");
            assert_eq!(found, expected());
        }
    }

    #[test]
    fn what_is_in_row_order_already_is_left_alone() {
        let (mut array, mut notes) = (Array { fortran: false, ..stored() }, Vec::new());
        make_rows_contiguous(&mut array, "x", None, &mut notes).expect("left alone");
        assert_eq!(array.start, 2);
        assert!(notes.is_empty());
    }
}
