//! Axes and columns said aloud: which index is a layer, a batch or a step, and rings of columns.

use crate::attention::{assert_same, failure, included, open, open_with, padded, some, square, triangle};
use crate::files::{Folder, npy, npy_fortran, npz};
use kvsim::position::Position;
use kvsim::trace::SelfAttention;
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::options::{ColumnOrder, ReadOptions};

const T: usize = 6;

fn axes(text: &str) -> ReadOptions {
    ReadOptions { axes: Some(text.parse().expect("axes")), ..Default::default() }
}

fn squares(seeds: std::ops::Range<u32>) -> Vec<f32> {
    seeds.flat_map(|seed| square(seed, T)).collect()
}

#[test]
fn four_axes_are_read_as_layers_with_a_note_or_as_a_batch_on_request() {
    let folder = Folder::new();
    for bytes in [npy("<f4", &[2, 3, T, T], &squares(0..6)), npy_fortran("<f4", &[2, 3, T, T], &squares(0..6))] {
        let path = folder.write("a.npy", &bytes);
        let source = open(&path);
        assert_eq!(source.info().streams.len(), 6);
        let note = source.info().notes.last().expect("a note");
        assert!(note.contains("is read as [layer, head, query, key]") && note.contains("--axes batch=0"), "{note}");
        assert_eq!(source.info().read_as, ["--axes layer,head,query,key"]);
        let second = open_with(&path, &axes("batch=1,head,query,key"));
        assert_same(&*second, &included(&[(0, 0, triangle(3, T)), (0, 1, triangle(4, T)), (0, 2, triangle(5, T))]));
        assert!(second.info().read_as.is_empty());
        assert!(failure(&path, &axes("batch,head,query,key")).contains("choose one, such as batch=0"));
        assert!(failure(&path, &axes("head,query,key")).contains("--axes names 3 axes, shape [2, 3, 6, 6] has 4"));
    }
}

#[test]
fn one_sequence_of_a_batch_is_taken_from_every_layer() {
    let folder = Folder::new();
    let members = [
        ("layer_0.npy", npy("<f4", &[2, 1, T, T], &squares(0..2))),
        ("layer_1.npy", npy("<f4", &[2, 1, T, T], &squares(2..4))),
    ];
    let path = folder.write("a.npz", &npz(&members, true));
    assert!(failure(&path, &ReadOptions::default()).contains("--axes batch=0,head,query,key"));
    let source = open_with(&path, &axes("batch=1,head,query,key"));
    assert_same(&*source, &included(&[(0, 0, triangle(1, T)), (1, 0, triangle(3, T))]));
}

#[test]
fn layers_of_one_row_are_told_from_decode_steps() {
    let folder = Folder::new();
    let rows: Vec<Vec<f32>> = (0..3).map(|seed| triangle(seed, 9)[8].clone()).collect();
    let path = folder.write("a.npy", &npy("<f4", &[3, 1, 1, 9], &rows.concat()));
    let at = |text: &str| ReadOptions { first_position: Some(8), ..axes(text) };
    let source = open_with(&path, &at("layer,head,query,key"));
    let layers: Vec<String> = source.info().streams.iter().map(|stream| stream.label.to_string()).collect();
    assert_eq!(layers, ["0.0", "1.0", "2.0"]);
    let shape = failure(&folder.write("b.npy", &npy("<f4", &[3, 1, 9], &rows.concat())), &ReadOptions::default());
    assert!(shape.contains("--axes head,query,key or step,head,key"), "{shape}");
    let heads = open_with(&folder.write("b.npy", &npy("<f4", &[3, 1, 9], &rows.concat())), &at("head,query,key"));
    assert_eq!(heads.info().streams.len(), 3);
}

/// Rows of a ring of `window` columns: position p is in column p mod window.
fn ring(rows: &[Vec<f32>], window: usize) -> Vec<f32> {
    let line = |row: &Vec<f32>| {
        let mut line = vec![0.0; window];
        let oldest = row.len().saturating_sub(window);
        (oldest..row.len()).for_each(|position| line[position % window] = row[position]);
        line
    };
    rows.iter().flat_map(line).collect()
}

fn within(mut rows: Vec<Vec<f32>>, window: usize) -> Vec<Vec<f32>> {
    rows.iter_mut().for_each(|row| {
        let gone = row.len().saturating_sub(window);
        row[..gone].fill(0.0);
    });
    rows
}

#[test]
fn columns_of_a_ring_are_put_back_into_order() {
    let (folder, rows) = (Folder::new(), within(triangle(1, 13), 4));
    for first in [7, 1, 3] {
        let lines = ring(&rows[first..], 4);
        let path = folder.write("a.npy", &npy("<f4", &[13 - first, 1, 1, 4], &lines));
        let options = ReadOptions {
            first_position: Some(first),
            layer_window: "4".parse().expect("sound"),
            columns: ColumnOrder::Ring,
            ..Default::default()
        };
        let expected = MemoryTrace::new("expected", SelfAttention::Included)
            .with_first_position(Position(first as u32))
            .with_stream(0, "0", some(&rows[first..]))
            .expect("sound");
        let source = open_with(&path, &options);
        assert_same(&*source, &expected);
        assert!(source.info().notes[0].contains("rings"), "{:?}", source.info().notes);
        let ascending = ReadOptions { columns: ColumnOrder::Ascending, ..options };
        let note = open_with(&path, &ascending).info().notes[0].clone();
        assert!(note.contains("taken to ascend (--columns ring"), "{note}");
    }
}

#[test]
fn a_ring_without_a_window_is_refused() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[T, T], &padded(&triangle(1, T), T).concat()));
    let options = ReadOptions { columns: ColumnOrder::Ring, ..Default::default() };
    assert!(failure(&path, &options).contains("say it with --layer-window"));
}
