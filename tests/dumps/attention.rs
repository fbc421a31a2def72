//! Attention with known weights, and how to compare what was read with it.

use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::options::ReadOptions;
use kvsim::trace::{RowBlock, RowSums, SelfAttention, Source, formats};
use std::path::Path;

/// Rows of a triangle: row `t` has `t + 1` weights that are multiples of 1/256 and sum to one, so that every
/// number type stores them exactly.
pub fn triangle(seed: u32, positions: usize) -> Vec<Vec<f32>> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let mut below = |count: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % count
    };
    let mut row = |len: usize| {
        let mut row = vec![0.0; len];
        // The token itself always holds something: an empty diagonal means something else.
        row[len - 1] = 8.0 / 256.0;
        (0..248).for_each(|_| row[below(len)] += 1.0 / 256.0);
        row
    };
    (1..=positions).map(&mut row).collect()
}

/// The rows as lines of `width` cells, zero after their token.
pub fn padded(rows: &[Vec<f32>], width: usize) -> Vec<Vec<f32>> {
    rows.iter().map(|row| (0..width).map(|column| row.get(column).copied().unwrap_or(0.0)).collect()).collect()
}

/// The cells of a square, row by row.
pub fn square(seed: u32, positions: usize) -> Vec<f32> {
    padded(&triangle(seed, positions), positions).concat()
}

/// The same rows in memory.
pub fn some(rows: &[Vec<f32>]) -> Rows {
    rows.iter().cloned().map(Some).collect()
}

/// A trace in memory, self included, with these streams.
pub fn included(streams: &[(u32, u32, Vec<Vec<f32>>)]) -> MemoryTrace {
    let empty = MemoryTrace::new("expected", SelfAttention::Included);
    streams.iter().fold(empty, |trace, (layer, head, rows)| {
        trace.with_stream(*layer, &head.to_string(), some(rows)).expect("sound")
    })
}

/// Opens a file as it is.
pub fn open(path: &Path) -> Box<dyn Source> {
    open_with(path, &ReadOptions::default())
}

/// Opens a file with options.
pub fn open_with(path: &Path, options: &ReadOptions) -> Box<dyn Source> {
    formats::open(path.as_os_str(), options).unwrap_or_else(|error| panic!("{error}"))
}

/// What opening a file, or reading all of it, says went wrong.
pub fn failure(path: &Path, options: &ReadOptions) -> String {
    let read = |source: Box<dyn Source>| read_all(&*source);
    let failed = formats::open(path.as_os_str(), options).and_then(read);
    failed.expect_err("refused").to_string()
}

/// Every stream's steps and rows; the size of the blocks changes from call to call.
pub type Read = Vec<Vec<(u32, Vec<f32>)>>;

/// Reads every stream to its end.
pub fn read_all(source: &dyn Source) -> kvsim::error::Result<Read> {
    (0..source.info().streams.len()).map(|stream| read_stream(source, stream)).collect()
}

fn read_stream(source: &dyn Source, stream: usize) -> kvsim::error::Result<Vec<(u32, Vec<f32>)>> {
    let (mut rows, mut block, mut size) = (Vec::new(), RowBlock::default(), 1);
    let (mut reader, mut sums) = (source.open(stream)?, RowSums::of(source, stream));
    while reader.read(&mut block, size)? > 0 {
        block.rows().filter(|row| !row.weights.is_empty()).for_each(|row| sums.add(row.step, row.sum()));
        rows.extend(block.rows().map(|row| (row.step.0, row.weights.to_vec())));
        block.clear();
        size = size % 5 + 2;
    }
    source.keep_sums(stream, &sums);
    Ok(rows)
}

/// Asserts that two traces hold the same attention.
pub fn assert_same(found: &dyn Source, expected: &dyn Source) {
    let (info, other) = (found.info(), expected.info());
    assert_eq!(info.self_attention, other.self_attention);
    assert_eq!(info.first_position, other.first_position);
    assert_eq!(info.positions, other.positions);
    let streams = |source: &dyn Source| -> Vec<(String, usize)> {
        source.info().streams.iter().map(|stream| (stream.label.to_string(), stream.rows)).collect()
    };
    assert_eq!(streams(found), streams(expected));
    assert_eq!(read_all(found).expect("readable"), read_all(expected).expect("readable"));
}
