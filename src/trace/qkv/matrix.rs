//! The numbers of a tensor: rows of equal width, read one after the other, refused where they are not finite.

use crate::error::{Error, Result};
use crate::kernels;
use crate::trace::storage::{FileReader, SharedFile};
use safetensors::tensor::Dtype;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Numbers read at a time.
const AT_ONCE: usize = 64 * 1024;

/// A matrix in a file.
#[derive(Clone)]
pub(super) struct Matrix {
    /// File, tensor, and the head where a tensor holds several.
    pub place: String,
    pub path: Arc<Path>,
    pub file: SharedFile,
    pub dtype: Dtype,
    /// Where it starts in the file.
    pub start: u64,
    pub rows: usize,
    pub width: usize,
    /// What a row and a column are called in messages.
    pub axes: [&'static str; 2],
}

/// How a stored type is called; `None` for types that are not read.
pub(super) fn dtype_name(dtype: Dtype) -> Option<&'static str> {
    match dtype {
        Dtype::F32 => Some("f32"),
        Dtype::F16 => Some("f16"),
        Dtype::BF16 => Some("bf16"),
        _ => None,
    }
}

/// Bytes of a number of a type that is read.
pub(super) fn bytes_of(dtype: Dtype) -> u64 {
    if dtype == Dtype::F32 { 4 } else { 2 }
}

impl Matrix {
    /// How its numbers are stored.
    pub fn dtype_name(&self) -> &'static str {
        dtype_name(self.dtype).expect("a matrix of another type is never made")
    }

    /// A reader at the first row.
    pub fn reader(&self) -> MatrixReader {
        MatrixReader { file: self.file.reader(self.start), matrix: self.clone(), next: 0, narrow: Vec::new() }
    }

    /// All numbers, row after row; for small ones.
    pub fn read_all(&self) -> Result<Vec<f32>> {
        let mut numbers = vec![0.0; self.rows * self.width];
        self.reader().read(&mut numbers).map(|()| numbers)
    }

    /// Shows some rows after the other: the index of the first, and their numbers.
    pub fn for_each_rows(&self, mut see: impl FnMut(usize, &[f32])) -> Result<()> {
        let rows_at_once = (AT_ONCE / self.width).max(1);
        let mut reader = self.reader();
        let mut numbers = vec![0.0; rows_at_once.min(self.rows) * self.width];
        for first in (0..self.rows).step_by(rows_at_once) {
            let rows = rows_at_once.min(self.rows - first);
            let numbers = &mut numbers[..rows * self.width];
            reader.read(numbers)?;
            see(first, numbers);
        }
        Ok(())
    }
}

/// Reads the rows of a matrix in order.
pub(super) struct MatrixReader {
    matrix: Matrix,
    file: FileReader,
    /// The next row.
    next: usize,
    /// Two-byte numbers as read, before they are widened.
    narrow: Vec<u16>,
}

impl MatrixReader {
    /// Passes over rows up to this one.
    pub fn skip_to(&mut self, row: usize) {
        let offset = (row * self.matrix.width) as u64 * bytes_of(self.matrix.dtype);
        self.file = self.matrix.file.reader(self.matrix.start + offset);
        self.next = row;
    }

    /// Fills `numbers` with the next rows.
    ///
    /// # Errors
    /// When the file cannot be read, or a number is not finite.
    pub fn read(&mut self, numbers: &mut [f32]) -> Result<()> {
        self.read_numbers(numbers).map_err(|error| Error::io(&self.matrix.path, error))?;
        if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
            return Err(self.refuse(at, numbers[at]));
        }
        self.next += numbers.len() / self.matrix.width;
        Ok(())
    }

    fn read_numbers(&mut self, numbers: &mut [f32]) -> std::io::Result<()> {
        if self.matrix.dtype == Dtype::F32 {
            self.file.read_exact(bytemuck::cast_slice_mut(numbers))?;
            numbers.iter_mut().for_each(|number| *number = f32::from_bits(u32::from_le(number.to_bits())));
            return Ok(());
        }
        self.narrow.resize(numbers.len(), 0);
        self.file.read_exact(bytemuck::cast_slice_mut(&mut self.narrow))?;
        self.narrow.iter_mut().for_each(|bits| *bits = u16::from_le(*bits));
        match self.matrix.dtype {
            Dtype::F16 => kernels::widen_f16(&self.narrow, numbers),
            _ => kernels::widen_bf16(&self.narrow, numbers),
        }
        Ok(())
    }

    fn refuse(&self, at: usize, number: f32) -> Error {
        let Matrix { place, width, axes: [row, column], .. } = &self.matrix;
        let (at_row, at_column) = (self.next + at / width, at % width);
        let problem = format!(
            "{number} is not a finite number: it overflowed where it was recorded or stored (bf16 and f32 reach further \
             than f16)"
        );
        Error::data(format!("{place}: {row} {at_row}, {column} {at_column}"), problem)
    }
}
