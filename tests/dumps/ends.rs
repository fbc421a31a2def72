//! Padding at the end: left out where it is named, told of where it shows.

use crate::attention::{assert_same, failure, included, open, open_with, read_all, square, triangle};
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::RowBlock;
use kvsim::trace::options::ReadOptions;
use std::path::PathBuf;

fn ending_at(end: usize) -> ReadOptions {
    ReadOptions { end: Some(end), ..Default::default() }
}

/// A square of ten tokens and three of padding, which attend to real tokens and get no weight.
fn padded_square() -> Vec<f32> {
    let rows = triangle(7, 10);
    let padding = (0..3).map(|row| rows[9 - row].clone());
    let line = |row: Vec<f32>| (0..13).map(move |column| row.get(column).copied().unwrap_or(0.0)).collect::<Vec<_>>();
    rows.iter().cloned().chain(padding).flat_map(line).collect()
}

fn padded(folder: &Folder) -> PathBuf {
    folder.write("a.npy", &npy("<f4", &[13, 13], &padded_square()))
}

#[test]
fn what_lies_from_the_end_on_does_not_exist() {
    let folder = Folder::new();
    let source = open_with(&padded(&folder), &ending_at(10));
    assert_same(&*source, &included(&[(0, 0, triangle(7, 10))]));
    assert!(source.warnings().is_empty());
    assert!(!source.info().notes.iter().any(|note| note.contains("padding")), "{:?}", source.info().notes);
}

#[test]
fn padding_that_shows_itself_is_told_of_with_the_remedy() {
    let folder = Folder::new();
    let note = "the columns of the last 3 tokens are zero even in their own rows: if these are padding, --end 10 leaves \
                them out";
    assert!(open(&padded(&folder)).info().notes.contains(&note.to_owned()));
    let started = ReadOptions { start: Some(4), ..Default::default() };
    assert!(open_with(&padded(&folder), &started).info().notes.contains(&note.to_owned()), "counted like --start");
    let sound = folder.write("b.npy", &npy("<f4", &[13, 13], &square(7, 13)));
    assert!(open(&sound).info().notes.is_empty());
}

#[test]
fn padding_of_one_head_alone_is_none() {
    let folder = Folder::new();
    let heads = [padded_square(), square(3, 13)].concat();
    assert!(open(&folder.write("a.npy", &npy("<f4", &[2, 13, 13], &heads))).info().notes.is_empty());
    let both = [padded_square(), padded_square()].concat();
    let notes = open(&folder.write("b.npy", &npy("<f4", &[2, 13, 13], &both))).info().notes.clone();
    assert!(notes.iter().any(|note| note.contains("the last 3 tokens")), "{notes:?}");
}

#[test]
fn start_and_end_are_counted_alike() {
    let folder = Folder::new();
    let options = ReadOptions { start: Some(4), ..ending_at(10) };
    let source = open_with(&padded(&folder), &options);
    assert_eq!((source.info().positions, source.info().streams[0].rows), (6, 6));
    let whole = triangle(7, 10);
    let rows: Vec<Vec<f32>> = read_all(&*source).expect("readable").remove(0).into_iter().map(|(_, row)| row).collect();
    let expected: Vec<Vec<f32>> = (4..10).map(|row| whole[row][4..].to_vec()).collect();
    assert_eq!(rows, expected);
}

#[test]
fn an_end_that_leaves_nothing_is_refused() {
    let folder = Folder::new();
    for options in [ending_at(0), ReadOptions { start: Some(5), ..ending_at(5) }] {
        let problem = failure(&padded(&folder), &options);
        assert!(problem.contains("leaves none of the rows"), "{problem}");
    }
    let behind = open_with(&padded(&folder), &ending_at(99));
    assert_eq!(behind.info().positions, 13, "an end past the last row takes nothing away");
}

#[test]
fn rows_of_any_format_may_end_early() {
    let folder = Folder::new();
    let lines: String = (0..4)
        .map(|step| format!("{{\"step\":{step},\"attn\":{:?}}}\n", vec![1.0 / (step + 1) as f32; step + 1]))
        .collect();
    let packed = [&[1.0][..], &[0.5; 2], &[0.25; 3], &[0.25; 4]].concat();
    let metadata = [("kvsim", "1"), ("self", "included")];
    let native = safetensors(&metadata, &[("attention.0.0", "F32", &[10], &packed)]);
    for path in [folder.write("a.jsonl", lines.as_bytes()), folder.write("a.safetensors", &native)] {
        let source = open_with(&path, &ending_at(3));
        assert_eq!((source.info().positions, source.info().streams[0].rows, source.info().rows()), (3, 3, 3));
        for size in [1, 2, 100] {
            let (mut block, mut reader) = (RowBlock::default(), source.open(0).expect("opened"));
            while reader.read(&mut block, size).expect("readable") > 0 {}
            assert_eq!(block.len(), 3, "{size} at a time");
        }
        assert!(failure(&path, &ending_at(0)).contains("--end 0 leaves none of the rows"));
    }
}

#[test]
fn layers_of_different_lengths_are_read_as_they_are() {
    let folder = Folder::new();
    let members = [("0.npy", npy("<f4", &[3, 3], &square(1, 3))), ("1.npy", npy("<f4", &[4, 4], &square(1, 4)))];
    let source = open(&folder.write("a.npz", &npz(&members, false)));
    let rows: Vec<usize> = source.info().streams.iter().map(|stream| stream.rows).collect();
    assert_eq!((source.info().positions, rows), (4, vec![3, 4]));
}
