//! Scores: the products of a block of queries with the keys that they attend to.
//!
//! A score is one chain of fused multiply-adds over the channels, first to last: `fma(q[c], k[c], sum)` from a
//! sum of 0. Keys stand side by side in the vector, so that the chain is the same whatever the width of a vector,
//! the number of queries taken together, or the instructions at hand. General libraries of linear algebra promise
//! no order, which is why this is written out here. Where a processor has no fused multiply-add, the one of the
//! platform's library takes its place: slow, the same bits.
//!
//! What is fastest is a matter of registers: some queries by some keys, whose sums never leave them.

use super::{Kernel, LANES, dispatch};

/// One channel of [`LANES`] keys.
type Channel = [f32; LANES];

/// Tiles are padded to a multiple of this, the most that a kernel takes side by side.
const TILES_AT_ONCE: usize = 2;

/// Bytes of keys that meet every query of a block before the next keys do: they stay in the nearest cache.
const STRIP: usize = 16 * 1024;

/// The keys of one KV head, laid out for products: in tiles of [`LANES`] keys, channel after channel.
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
    fn put(&mut self, tile: usize, scores: &Channel) {
        let first = tile * LANES;
        if first >= self.from && first + LANES <= self.end() {
            let at = first - self.from;
            self.scores[at..at + LANES].copy_from_slice(scores);
            return;
        }
        for key in first.max(self.from)..(first + LANES).min(self.end()) {
            self.scores[key - self.from] = scores[key - first];
        }
    }
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

impl Kernel for Products<'_, '_> {
    type Output = ();

    /// 6 queries by 16 keys are 12 sums of 8, of 16 registers.
    #[inline(always)]
    fn run(self) {
        self.of_groups::<6, 1>();
    }

    /// 12 queries by 32 keys are 24 sums of 16, of 32 registers.
    #[inline(always)]
    fn run_wide(self) {
        self.of_groups::<12, 2>();
    }
}

impl Products<'_, '_> {
    #[inline(always)]
    fn of_groups<const Q: usize, const V: usize>(self) {
        let Products { queries, keys, rows, packed } = self;
        packed.resize(queries.len(), 0.0);
        let first = rows.iter().map(|row| row.from).min().unwrap_or(0) / LANES / V * V;
        let end = rows.iter().map(ScoreRow::end).max().unwrap_or(0).div_ceil(LANES);
        let strip = (STRIP / (keys.width * size_of::<Channel>())).max(1).next_multiple_of(V);
        let of_group = |from: usize, len: usize| from * keys.width..(from + len) * keys.width;
        for_groups::<Q>(rows.len(), |from, len| {
            pack(&queries[of_group(from, len)], len, &mut packed[of_group(from, len)]);
        });
        for start in (first..end).step_by(strip) {
            let tiles = start..(start + strip).min(end);
            for_groups::<Q>(rows.len(), |from, len| {
                let group = &packed[of_group(from, len)];
                let rows = &mut rows[from..from + len];
                let tiles = tiles.clone();
                match len {
                    1 => group_scores::<1, V>(group, keys, rows, tiles),
                    2 => group_scores::<2, V>(group, keys, rows, tiles),
                    4 => group_scores::<4, V>(group, keys, rows, tiles),
                    _ => group_scores::<Q, V>(group, keys, rows, tiles),
                }
            });
        }
    }
}

/// Shares queries out to groups of `Q`, and what is left to groups of 4, 2 and 1: where each starts, and its size.
#[inline(always)]
fn for_groups<const Q: usize>(queries: usize, mut group: impl FnMut(usize, usize)) {
    let mut from = 0;
    while from < queries {
        let left = queries - from;
        let len = [Q, 4, 2, 1].into_iter().find(|len| *len <= left).expect("one is left");
        group(from, len);
        from += len;
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
fn group_scores<const Q: usize, const V: usize>(
    group: &[f32],
    keys: &KeyPanel,
    rows: &mut [ScoreRow<'_>],
    tiles: std::ops::Range<usize>,
) {
    let (queries, _) = group.as_chunks::<Q>();
    let from = rows.iter().map(|row| row.from).min().unwrap_or(0) / LANES / V * V;
    let end = rows.iter().map(ScoreRow::end).max().unwrap_or(0).div_ceil(LANES);
    for tile in (tiles.start.max(from)..tiles.end.min(end)).step_by(V) {
        let sums = block::<Q, V>(queries, std::array::from_fn(|index| keys.tile(tile + index)));
        for (row, sums) in rows.iter_mut().zip(&sums) {
            sums.iter().enumerate().for_each(|(index, sums)| row.put(tile + index, sums));
        }
    }
}

/// The products of `Q` queries with the keys of `V` tiles. Written without loops over sums, which compilers turn
/// inside out; so they stay in registers.
#[inline(always)]
fn block<const Q: usize, const V: usize>(queries: &[[f32; Q]], tiles: [&[Channel]; V]) -> [[Channel; V]; Q] {
    let tiles = tiles.map(|tile| &tile[..queries.len()]);
    let mut sums = [[[0.0; LANES]; V]; Q];
    for (channel, query) in queries.iter().enumerate() {
        let keys: [Channel; V] = std::array::from_fn(|index| tiles[index][channel]);
        sums = std::array::from_fn(|q| std::array::from_fn(|v| multiply_add(query[q], &keys[v], &sums[q][v])));
    }
    sums
}

#[inline(always)]
fn multiply_add(number: f32, keys: &Channel, sums: &Channel) -> Channel {
    std::array::from_fn(|lane| number.mul_add(keys[lane], sums[lane]))
}
