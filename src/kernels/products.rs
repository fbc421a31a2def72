//! Scores: the products of a block of queries with the keys that they attend to.
//!
//! A score is one chain of fused multiply-adds over the channels, first to last: `fma(q[c], k[c], sum)` from a
//! sum of 0. Keys stand side by side in the vector, so that the chain is the same whatever the width of a vector,
//! the number of queries taken together, or the instructions at hand. General libraries of linear algebra promise
//! no order, which is why this is written out here. Where a processor has no fused multiply-add, the one of the
//! platform's library takes its place: slow, the same bits.
//!
//! What is fastest is a matter of registers: some queries by some keys, whose sums never leave them.

use super::LANES;
use super::simd::{Simd, SimdKernel, Sixteen, dispatch};
use std::ops::Range;

/// One channel of sixteen keys.
type Channel = Sixteen;

/// Tiles are padded to a multiple of this, the most that a kernel takes side by side.
const TILES_AT_ONCE: usize = 2;

/// Bytes of keys that meet every query of a block before the next keys do: they stay in the nearest cache.
const STRIP: usize = 16 * 1024;

/// The keys of one KV head, laid out for products: in tiles of sixteen keys, channel after channel.
#[derive(Clone, Debug)]
pub struct KeyPanel {
    width: usize,
    keys: usize,
    channels: Vec<Channel>,
}

impl KeyPanel {
    /// Room for so many keys of `width` channels, all of them zero.
    pub fn new(keys: usize, width: usize) -> KeyPanel {
        let tiles = keys.div_ceil(LANES).next_multiple_of(TILES_AT_ONCE);
        KeyPanel { width, keys, channels: vec![[0.0; LANES]; tiles * width] }
    }

    /// Bytes that so many keys take.
    pub fn bytes(keys: usize, width: usize) -> u64 {
        let tiles = keys.div_ceil(LANES).next_multiple_of(TILES_AT_ONCE) as u64;
        tiles * (width * size_of::<Channel>()) as u64
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Number of channels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Puts keys in their places, from the one with index `first` on.
    pub fn set(&mut self, first: usize, keys: &[f32]) {
        assert!(first + keys.len() / self.width <= self.keys, "there is room for {} keys", self.keys);
        for (index, key) in (first..).zip(keys.chunks_exact(self.width)) {
            let tile = index / LANES * self.width;
            for (channel, number) in self.channels[tile..tile + self.width].iter_mut().zip(key) {
                channel[index % LANES] = *number;
            }
        }
    }

    /// The channels of sixteen keys at a time, those behind the last key zero.
    pub fn tiles(&self) -> impl Iterator<Item = &[[f32; LANES]]> {
        self.channels.chunks_exact(self.width)
    }

    /// The channels of one tile.
    #[inline(always)]
    fn tile(&self, tile: usize) -> &[Channel] {
        &self.channels[tile * self.width..(tile + 1) * self.width]
    }
}

/// Where the scores of a query go: those with the consecutive keys from `from` on.
#[derive(Debug)]
pub struct ScoreRow<'a> {
    /// Index of the first key.
    pub from: usize,
    /// One score for each key.
    pub scores: &'a mut [f32],
}

impl ScoreRow<'_> {
    #[inline(always)]
    fn end(&self) -> usize {
        self.from + self.scores.len()
    }

    /// Puts down those of a tile's scores that belong to the row.
    #[inline(always)]
    fn put<S: Simd>(&mut self, simd: S, tile: usize, scores: S::Numbers) {
        let (first, end) = (tile * LANES, self.end());
        if first >= self.from && first + LANES <= end {
            let at = first - self.from;
            simd.store(scores, (&mut self.scores[at..at + LANES]).try_into().expect("sixteen scores"));
            return;
        }
        let mut some = [0.0; LANES];
        simd.store(scores, &mut some);
        for key in first.max(self.from)..(first + LANES).min(end) {
            self.scores[key - self.from] = some[key - first];
        }
    }
}

/// The score of one query with one key: the chain that [`products`] follows.
pub fn product(query: &[f32], key: &[f32]) -> f32 {
    query.iter().zip(key).fold(0.0, |sum: f32, (query, key)| query.mul_add(*key, sum))
}

/// Scores of queries, back to back in `queries`, one for each row; `packed` is room that is used again.
///
/// Rows must lie within the panel's keys.
pub fn products(queries: &[f32], keys: &KeyPanel, rows: &mut [ScoreRow<'_>], packed: &mut Vec<f32>) {
    assert_eq!(queries.len(), rows.len() * keys.width, "one query for each row");
    assert!(rows.iter().all(|row| row.end() <= keys.keys), "rows lie within the {} keys", keys.keys);
    dispatch(Products { queries, keys, rows, packed });
}

pub(super) struct Products<'a, 'b> {
    pub queries: &'a [f32],
    pub keys: &'a KeyPanel,
    pub rows: &'a mut [ScoreRow<'b>],
    pub packed: &'a mut Vec<f32>,
}

impl SimdKernel for Products<'_, '_> {
    type Output = ();

    /// Of 16 registers of 8 numbers, 6 queries by 16 keys take 12; of 32 registers of 16 numbers, 12 queries by 32 keys
    /// take 24.
    #[inline(always)]
    fn run<S: Simd, const WIDE: bool>(self, simd: S) {
        if WIDE { self.of_groups::<S, 12, 2>(simd) } else { self.of_groups::<S, 6, 1>(simd) }
    }
}

impl Products<'_, '_> {
    #[inline(always)]
    fn of_groups<S: Simd, const Q: usize, const T: usize>(self, simd: S) {
        let Products { queries, keys, rows, packed } = self;
        packed.resize(queries.len(), 0.0);
        for Group { from, len } in Groups::<Q>::of(rows.len()) {
            let group = from * keys.width..(from + len) * keys.width;
            pack(&queries[group.clone()], len, &mut packed[group]);
        }
        let [first, end] = tiles_of::<T>(rows);
        let strip = (STRIP / (keys.width * size_of::<Channel>())).max(1).next_multiple_of(T);
        for start in (first..end).step_by(strip) {
            let tiles = start..(start + strip).min(end);
            for Group { from, len } in Groups::<Q>::of(rows.len()) {
                let group = &packed[from * keys.width..(from + len) * keys.width];
                let rows = &mut rows[from..from + len];
                match len {
                    1 => group_scores::<S, 1, T>(simd, group, keys, rows, tiles.clone()),
                    2 => group_scores::<S, 2, T>(simd, group, keys, rows, tiles.clone()),
                    4 => group_scores::<S, 4, T>(simd, group, keys, rows, tiles.clone()),
                    _ => group_scores::<S, Q, T>(simd, group, keys, rows, tiles.clone()),
                }
            }
        }
    }
}

/// The tiles that some rows attend to, from a multiple of `T` on: the first and the one after the last.
#[inline(always)]
fn tiles_of<const T: usize>(rows: &[ScoreRow<'_>]) -> [usize; 2] {
    let (mut from, mut end) = (usize::MAX, 0);
    for row in rows {
        from = from.min(row.from);
        end = end.max(row.end());
    }
    [from / LANES / T * T, end.div_ceil(LANES)]
}

/// Queries that are taken together.
struct Group {
    from: usize,
    len: usize,
}

/// Shares queries out to groups of `Q`, and what is left to groups of 4, 2 and 1.
struct Groups<const Q: usize> {
    from: usize,
    queries: usize,
}

impl<const Q: usize> Groups<Q> {
    #[inline(always)]
    fn of(queries: usize) -> Groups<Q> {
        Groups { from: 0, queries }
    }
}

impl<const Q: usize> Iterator for Groups<Q> {
    type Item = Group;

    #[inline(always)]
    fn next(&mut self) -> Option<Group> {
        let from = self.from;
        let len = match self.queries - from {
            0 => return None,
            left if left >= Q => Q,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        self.from += len;
        Some(Group { from, len })
    }
}

/// Lays `len` queries out side by side, channel after channel.
#[inline(always)]
fn pack(queries: &[f32], len: usize, packed: &mut [f32]) {
    let width = queries.len() / len;
    for (channel, numbers) in packed.chunks_exact_mut(len).enumerate() {
        for (query, number) in numbers.iter_mut().enumerate() {
            *number = queries[query * width + channel];
        }
    }
}

/// The scores of one group with some tiles.
#[inline(always)]
fn group_scores<S: Simd, const Q: usize, const T: usize>(
    simd: S,
    group: &[f32],
    keys: &KeyPanel,
    rows: &mut [ScoreRow<'_>],
    tiles: Range<usize>,
) {
    let (queries, _) = group.as_chunks::<Q>();
    let [from, end] = tiles_of::<T>(rows);
    for tile in (tiles.start.max(from)..tiles.end.min(end)).step_by(T) {
        let mut panels: [&[Channel]; T] = [&[]; T];
        for (index, panel) in panels.iter_mut().enumerate() {
            *panel = &keys.tile(tile + index)[..queries.len()];
        }
        let sums = block(simd, queries, panels);
        for (row, sums) in rows.iter_mut().zip(&sums) {
            for (index, sums) in sums.iter().enumerate() {
                row.put(simd, tile + index, *sums);
            }
        }
    }
}

/// The products of `Q` queries with the keys of `T` tiles, whose sums stay in registers.
#[inline(always)]
fn block<S: Simd, const Q: usize, const T: usize>(
    simd: S,
    queries: &[[f32; Q]],
    tiles: [&[Channel]; T],
) -> [[S::Numbers; T]; Q] {
    let mut sums = [[simd.splat(0.0); T]; Q];
    for (channel, query) in queries.iter().enumerate() {
        let mut keys = [simd.splat(0.0); T];
        for (keys, tile) in keys.iter_mut().zip(&tiles) {
            *keys = simd.load(&tile[channel]);
        }
        for (sums, number) in sums.iter_mut().zip(query) {
            let number = simd.splat(*number);
            for (sums, keys) in sums.iter_mut().zip(keys) {
                *sums = simd.multiply_add(number, keys, *sums);
            }
        }
    }
    sums
}
