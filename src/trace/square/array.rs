//! An array as a container describes it: name, shape, cells, and where its bytes are.

use super::cells::Cells;
use crate::trace::limits::quoted;
use crate::trace::storage::Storage;
use std::sync::Arc;

/// A stored array. Its bytes are all there: the container has checked [`Array::bytes`] against the file.
#[derive(Clone)]
pub(in crate::trace) struct Array {
    /// The tensor's or member's name; empty in a file of one nameless array.
    pub name: String,
    pub shape: Vec<usize>,
    pub cells: Cells,
    /// Whether the first index runs fastest.
    pub fortran: bool,
    pub storage: Arc<Storage>,
    /// Where the array starts in its storage.
    pub start: u64,
}

impl Array {
    /// Bytes of the whole array; `None` where the shape claims more than there can be.
    pub(in crate::trace) fn bytes(shape: &[usize], cells: Cells) -> Option<u64> {
        // A zero does not excuse a shape whose other sizes are absurd.
        let cells_but_empty =
            shape.iter().try_fold(cells.size(), |product, size| product.checked_mul((*size).max(1)))?;
        i64::try_from(cells_but_empty).ok()?;
        Some(shape.iter().product::<usize>() as u64 * cells.size() as u64)
    }

    /// Where the array is, for messages.
    pub(super) fn place(&self, file: &str) -> String {
        if self.name.is_empty() { file.to_owned() } else { format!("{file}: array {}", quoted(&self.name)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::square::CellType;

    #[test]
    fn shapes_that_overflow_are_told_from_large_ones() {
        let bytes = |shape: &[usize]| Array::bytes(shape, Cells::little_endian(CellType::F64));
        assert_eq!(bytes(&[9, 512, 512]), Some(9 * 512 * 512 * 8));
        assert_eq!(bytes(&[]), Some(8));
        assert_eq!(bytes(&[7, 0]), Some(0));
        assert_eq!(bytes(&[usize::MAX, 2]), None);
        assert_eq!(bytes(&[usize::MAX, 0, usize::MAX]), None);
        assert_eq!(bytes(&[1 << 60, 1]), None);
    }
}
