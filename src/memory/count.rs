//! The bytes of a cache: of a position, of a sequence, of a batch, under a budget, in few bits.

use super::{LayerCache, ModelCaches, Rows};

/// How numbers are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Storage {
    /// Bits of a number.
    pub bits: u32,
    /// Numbers that share a scale and a zero of 16 bits each; `None` where nothing is shared, as with
    /// plain floats.
    pub group: Option<u64>,
}

/// Bytes of the scale and the zero of a group.
const GROUP_BYTES: u64 = 4;

impl Storage {
    /// Plain numbers of so many bits.
    pub fn plain(bits: u32) -> Storage {
        Storage { bits, group: None }
    }

    /// Bytes of one row: whole bytes, and the scales and zeros of its groups.
    pub fn row_bytes(self, width: u64) -> u64 {
        let numbers = (width * u64::from(self.bits)).div_ceil(8);
        numbers + self.group.map_or(0, |group| width.div_ceil(group) * GROUP_BYTES)
    }

    fn rows_bytes(self, rows: Rows) -> u64 {
        rows.count * self.row_bytes(rows.width)
    }
}

impl LayerCache {
    /// Bytes of one position.
    pub fn position_bytes(&self, storage: Storage) -> u64 {
        self.rows.iter().map(|rows| storage.rows_bytes(*rows)).sum()
    }

    /// Positions held of a sequence, at most `budget` of them.
    pub fn positions(&self, length: u64, budget: Option<u64>) -> u64 {
        length.min(self.window.unwrap_or(u64::MAX)).min(budget.unwrap_or(u64::MAX))
    }
}

impl ModelCaches {
    fn own(&self) -> impl Iterator<Item = &LayerCache> {
        self.layers.iter().flatten()
    }

    /// Bytes of one position in all layers.
    pub fn position_bytes(&self, storage: Storage) -> u128 {
        self.own().map(|layer| u128::from(layer.position_bytes(storage))).sum()
    }

    /// Bytes of one sequence, where each cache holds at most `budget` positions.
    pub fn sequence_bytes(&self, length: u64, budget: Option<u64>, storage: Storage) -> u128 {
        let bytes = |layer: &LayerCache| {
            u128::from(layer.positions(length, budget)) * u128::from(layer.position_bytes(storage))
        };
        self.own().map(bytes).sum()
    }
}

/// The sequences of `sequence` bytes that fit beside the weights.
pub fn batch(memory: u128, weights: u128, sequence: u128) -> u128 {
    memory.saturating_sub(weights).checked_div(sequence).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u128 = 1 << 30;

    fn opt_175b() -> ModelCaches {
        ModelCaches { layers: vec![Some(LayerCache::of_heads(96, 128)); 96], ..ModelCaches::default() }
    }

    #[test]
    fn a_position_of_smollm2_takes_768_bytes_a_layer() {
        assert_eq!(LayerCache::of_heads(3, 64).position_bytes(Storage::plain(16)), 768);
    }

    #[test]
    fn opt_175b_takes_1152_gib_and_bloom_980() {
        let bytes = opt_175b().sequence_bytes(2048, None, Storage::plain(16));
        assert_eq!(bytes, 9 * GIB);
        assert_eq!(bytes * 128, 1_236_950_581_248);
        assert_eq!(bytes * 128, 1152 * GIB);
        let bloom = ModelCaches { layers: vec![Some(LayerCache::of_heads(112, 128)); 70], ..ModelCaches::default() };
        assert_eq!(bloom.sequence_bytes(2048, None, Storage::plain(16)) * 128, 980 * GIB);
    }

    #[test]
    fn units_decide_the_batch() {
        let sequence = opt_175b().sequence_bytes(2048, None, Storage::plain(16));
        assert_eq!(batch(8 * 80 * GIB, 325 * GIB, sequence), 35);
        assert_eq!(batch(640_000_000_000, 325_000_000_000, sequence), 32);
        assert_eq!(batch(8 * 80 * GIB, 175_000_000_000 * 2, sequence), 34);
        assert_eq!(batch(GIB, 2 * GIB, sequence), 0);
        assert_eq!(batch(GIB, 0, 0), 0, "a model without caches has no answer");
    }

    #[test]
    fn a_fifth_of_the_positions_in_four_bits_is_20_times_less_and_17_8_with_scales() {
        let model = opt_175b();
        let whole = model.sequence_bytes(2000, None, Storage::plain(16)) as f64;
        let kept = |storage| model.sequence_bytes(2000, Some(400), storage) as f64;
        assert_eq!(whole / kept(Storage::plain(4)), 20.0);
        let grouped = whole / kept(Storage { bits: 4, group: Some(64) });
        assert_eq!(format!("{grouped:.1}"), "17.8");
    }

    #[test]
    fn rows_in_few_bits_take_what_a_group_of_32_takes() {
        let row = |bits| Storage { bits, group: Some(32) }.row_bytes(64);
        assert_eq!([row(8), row(4), row(2)].map(|row| 2 * row), [144, 80, 48]);
        assert_eq!(2 * Storage::plain(16).row_bytes(64), 256);
    }

    #[test]
    fn a_window_holds_no_more_than_itself() {
        let windowed = LayerCache { window: Some(512), ..LayerCache::of_heads(1, 64) };
        assert_eq!(windowed.positions(4096, None), 512);
        assert_eq!(windowed.positions(4096, Some(1024)), 512);
        assert_eq!(windowed.positions(4096, Some(64)), 64);
        assert_eq!(windowed.positions(100, None), 100);
    }
}
