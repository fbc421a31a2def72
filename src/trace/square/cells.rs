//! How a single weight is stored, and how stored bytes become f32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// The number type of a stored weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::trace) enum CellType {
    F16,
    F32,
    F64,
    Bf16,
}

/// Number type and byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::trace) struct Cells {
    pub cell: CellType,
    pub big_endian: bool,
}

/// Narrow weights are widened this many at a time.
const GROUP: usize = 256;

impl Cells {
    /// Cells in the byte order of safetensors.
    pub(in crate::trace) fn little_endian(cell: CellType) -> Cells {
        Cells { cell, big_endian: false }
    }

    /// Bytes of a cell.
    pub(in crate::trace) fn size(self) -> usize {
        match self.cell {
            CellType::F16 | CellType::Bf16 => 2,
            CellType::F32 => 4,
            CellType::F64 => 8,
        }
    }

    /// The name of the number type.
    pub(super) fn name(self) -> &'static str {
        match self.cell {
            CellType::F16 => "f16",
            CellType::F32 => "f32",
            CellType::F64 => "f64",
            CellType::Bf16 => "bf16",
        }
    }

    /// Widens (or, from f64, rounds to nearest) the cells in `bytes`, which are left in another order.
    pub(super) fn widen(self, bytes: &mut [u8], weights: &mut [f32]) {
        if self.big_endian {
            bytes.chunks_exact_mut(self.size()).for_each(<[u8]>::reverse);
        }
        match self.cell {
            CellType::F32 => each(bytes, weights, f32::from_le_bytes),
            CellType::F64 => each(bytes, weights, |cell| f64::from_le_bytes(cell) as f32),
            CellType::F16 => widen_groups(bytes, weights, f16::from_le_bytes),
            CellType::Bf16 => widen_groups(bytes, weights, bf16::from_le_bytes),
        }
    }
}

fn each<const N: usize, T>(bytes: &[u8], values: &mut [T], read: impl Fn([u8; N]) -> T) {
    for (value, cell) in values.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *value = read(*cell);
    }
}

/// Slices of narrow floats are widened by the machine's own instructions, single ones are not.
fn widen_groups<T: Copy + Default>(bytes: &[u8], weights: &mut [f32], read: impl Fn([u8; 2]) -> T)
where
    [T]: HalfFloatSliceExt,
{
    let mut narrow = [T::default(); GROUP];
    for (bytes, weights) in bytes.chunks(2 * GROUP).zip(weights.chunks_mut(GROUP)) {
        each(bytes, &mut narrow, &read);
        narrow[..weights.len()].convert_to_f32_slice(weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened(cell: CellType, big_endian: bool, cells: &[&[u8]]) -> Vec<f32> {
        let mut weights = vec![f32::NAN; cells.len()];
        Cells { cell, big_endian }.widen(&mut cells.concat(), &mut weights);
        weights
    }

    fn assert_read<const N: usize>(cell: CellType, stored: impl Fn(f32) -> [u8; N]) {
        let values = [0.0_f32, 1.0, 0.5, 0.099_609_375];
        for big_endian in [false, true] {
            let mut cells = values.map(&stored);
            if big_endian {
                cells.iter_mut().for_each(|cell| cell.reverse());
            }
            assert_eq!(widened(cell, big_endian, &cells.each_ref().map(|cell| &cell[..])), values, "{cell:?}");
        }
    }

    #[test]
    fn every_number_type_is_read_in_either_byte_order() {
        assert_read(CellType::F16, |value| f16::from_f32(value).to_le_bytes());
        assert_read(CellType::Bf16, |value| bf16::from_f32(value).to_le_bytes());
        assert_read(CellType::F32, f32::to_le_bytes);
        assert_read(CellType::F64, |value| f64::from(value).to_le_bytes());
    }

    #[test]
    fn doubles_are_rounded_to_the_nearest_single() {
        assert_eq!(widened(CellType::F64, false, &[&0.1_f64.to_le_bytes()]), [0.1_f32]);
    }

    #[test]
    fn more_cells_than_a_group_are_widened() {
        let bytes: Vec<u8> = (0..1000_u16).flat_map(|bits| f16::from_bits(bits).to_le_bytes()).collect();
        let mut weights = vec![0.0; 1000];
        Cells::little_endian(CellType::F16).widen(&mut bytes.clone(), &mut weights);
        assert!(weights.iter().zip(0..).all(|(weight, bits)| *weight == f16::from_bits(bits).to_f32()));
    }
}
