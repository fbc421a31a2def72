//! Which positions rows and columns stand for: padding, dead columns, decode steps, windows, and the token itself.

use crate::attention::{assert_same, failure, included, open, open_with, padded, read_all, some, square, triangle};
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::position::Position;
use kvsim::trace::SelfAttention;
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::options::{PerLayer, ReadOptions};
use kvsim::trace::safetensors::{StoredType, write};

const NONE: fn() -> ReadOptions = ReadOptions::default;

fn starting_at(start: usize) -> ReadOptions {
    ReadOptions { start: Some(start), ..NONE() }
}

fn standing_at(first_position: usize) -> ReadOptions {
    ReadOptions { first_position: Some(first_position), ..NONE() }
}

fn windowed(layer_window: &str, first_position: usize) -> ReadOptions {
    ReadOptions { layer_window: layer_window.parse().expect("sound"), ..standing_at(first_position) }
}

/// The rows of a triangle from `first` on, as a trace in memory.
fn later(rows: &[Vec<f32>], first: usize) -> MemoryTrace {
    MemoryTrace::new("expected", SelfAttention::Included)
        .with_first_position(Position(first as u32))
        .with_stream(0, "0", some(&rows[first..]))
        .expect("sound")
}

/// The triangle without the weights of the tokens on themselves.
fn excluded(rows: &[Vec<f32>]) -> MemoryTrace {
    let rows: Vec<Vec<f32>> = rows[1..].iter().map(|row| row[..row.len() - 1].to_vec()).collect();
    let trace = MemoryTrace::new("expected", SelfAttention::Excluded);
    trace.with_stream(0, "0", some(&rows)).expect("sound")
}

/// Three tokens of padding before a triangle; a row without a token to attend to comes out uniform.
fn left_padded(rows: &[Vec<f32>]) -> Vec<f32> {
    let width = rows.len() + 3;
    let mut lines = vec![vec![1.0 / width as f32; width]; 3];
    lines.extend(padded(rows, width - 3).into_iter().map(|row| [vec![0.0; 3], row].concat()));
    lines.concat()
}

#[test]
fn padding_on_the_left_is_refused_until_it_is_skipped() {
    let (folder, rows) = (Folder::new(), triangle(1, 6));
    let path = folder.write("a.npy", &npy("<f4", &[9, 9], &left_padded(&rows)));
    let problem = failure(&path, &NONE());
    assert!(problem.contains("layer 0 head 0: row 0: 0.8889 of the row lies after its own token"), "{problem}");
    assert!(problem.contains("--start N"), "{problem}");
    let source = open_with(&path, &starting_at(3));
    assert_same(&*source, &included(&[(0, 0, rows)]));
    assert!(source.warnings().is_empty());
    assert!(failure(&path, &starting_at(9)).contains("--start 9 leaves none of the rows"));
}

#[test]
fn places_name_the_row_of_the_array_where_it_is_another() {
    let (folder, rows) = (Folder::new(), triangle(1, 6));
    let path = folder.write("a.npy", &npy("<f4", &[9, 9], &left_padded(&rows)));
    let place = open_with(&path, &starting_at(3)).place(0, Position(2));
    assert!(place.ends_with("a.npy: layer 0 head 0: row 2 (row 5 of the array)"), "{place}");
}

#[test]
fn weight_before_the_start_is_left_out_with_a_warning() {
    let (folder, rows) = (Folder::new(), triangle(1, 4));
    let path = folder.write("a.npy", &npy("<f4", &[4, 4], &square(1, 4)));
    let source = open_with(&path, &starting_at(1));
    let cut: Vec<Vec<f32>> = rows[1..].iter().map(|row| row[1..].to_vec()).collect();
    assert_same(&*source, &included(&[(0, 0, cut)]));
    assert!(source.warnings()[0].contains("rows with weight before --start: 3"), "{:?}", source.warnings());
}

#[test]
fn a_diagonal_of_zeros_is_taken_as_excluded_with_a_note() {
    let (folder, mut rows) = (Folder::new(), triangle(1, 6));
    rows.iter_mut().zip(0..).for_each(|(row, own): (_, usize)| row[own] = 0.0);
    rows[0] = vec![0.0];
    let path = folder.write("a.npy", &npy("<f4", &[6, 6], &padded(&rows, 6).concat()));
    let source = open(&path);
    assert_same(&*source, &excluded(&rows));
    assert!(source.info().notes[0].contains("taken as self excluded"));
    let kept = ReadOptions { self_attention: Some(SelfAttention::Included), ..NONE() };
    let source = open_with(&path, &kept);
    assert!(source.info().notes.is_empty());
    assert_same(&*source, &included(&[(0, 0, rows)]));
}

#[test]
fn one_weight_on_the_diagonal_is_enough_to_be_included() {
    let folder = Folder::new();
    let square = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.5];
    let source = open(&folder.write("a.npy", &npy("<f4", &[3, 3], &square)));
    assert_eq!(source.info().self_attention, SelfAttention::Included);
}

#[test]
fn excluding_the_token_itself_leaves_its_weight_out_with_a_warning() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[6, 6], &square(1, 6)));
    let source = open_with(&path, &ReadOptions { self_attention: Some(SelfAttention::Excluded), ..NONE() });
    assert_same(&*source, &excluded(&triangle(1, 6)));
    assert!(source.warnings()[0].contains("rows with weight on their own token: 5"), "{:?}", source.warnings());
}

#[test]
fn metadata_may_say_what_rows_hold() {
    let (folder, weights) = (Folder::new(), square(1, 6));
    let path =
        |word| folder.write("a.safetensors", &safetensors(&[("self", word)], &[("x", "F32", &[6, 6], &weights)]));
    assert_same(&*open(&path("excluded")), &excluded(&triangle(1, 6)));
    assert!(failure(&path("yes"), &NONE()).contains("self is \"yes\" in the metadata"));
}

#[test]
fn columns_past_the_last_row_are_cut_where_it_is_known_that_rows_begin_at_0() {
    let (folder, rows) = (Folder::new(), triangle(1, 5));
    let path = folder.write("a.npy", &npy("<f2", &[1, 1, 5, 8], &padded(&rows, 8).concat()));
    let problem = failure(&path, &NONE());
    assert!(problem.contains("5 rows of 8 columns: say with --first-position where row 0 stands"), "{problem}");
    assert!(problem.contains("3 where these are the last 5 of 8 positions"), "{problem}");
    let source = open_with(&path, &standing_at(0));
    assert_eq!(source.info().notes, ["3 columns at the end stand for no position in any row: cut"]);
    assert_same(&*source, &included(&[(0, 0, rows)]));
}

#[test]
fn decode_steps_stand_where_they_are_said_to() {
    let (folder, rows) = (Folder::new(), triangle(1, 9));
    // The same four steps from a cache that grows, and from one of a fixed size.
    for width in [9, 12] {
        let path = folder.write("a.npy", &npy("<f4", &[4, 1, 1, width], &padded(&rows[5..], width).concat()));
        assert!(failure(&path, &NONE()).contains("--first-position"));
        let source = open_with(&path, &standing_at(5));
        assert_eq!((source.info().first_position, source.info().positions), (Position(5), 9));
        assert_same(&*source, &later(&rows, 5));
        assert!(failure(&path, &standing_at(4)).contains("lies after its own token"));
    }
    let path = folder.write("a.npy", &npy("<f4", &[4, 1, 1, 9], &padded(&rows[5..], 9).concat()));
    let problem = failure(&path, &standing_at(6));
    assert!(problem.contains("rows go up to position 9, 9 columns only up to position 8"), "{problem}");
    let path = folder.write("a.npy", &npy("<f4", &[4, 1, 1, 12], &padded(&rows[5..], 12).concat()));
    assert!(failure(&path, &standing_at(6)).contains("--first-position 6 is too high"));
}

#[test]
fn decode_steps_of_several_heads_lie_between_each_other() {
    let (folder, heads) = (Folder::new(), [triangle(1, 9), triangle(2, 9)]);
    let lines = heads.each_ref().map(|rows| padded(&rows[5..], 9));
    let weights: Vec<f32> = (0..4).flat_map(|step| [lines[0][step].clone(), lines[1][step].clone()].concat()).collect();
    let source = open_with(&folder.write("a.npy", &npy("<f4", &[4, 2, 1, 9], &weights)), &standing_at(5));
    let expected = later(&heads[0], 5).with_stream(0, "1", some(&heads[1][5..])).expect("sound");
    assert_same(&*source, &expected);
}

#[test]
fn padding_comes_off_the_positions_of_decode_steps_too() {
    let (folder, rows) = (Folder::new(), triangle(1, 9));
    let lines: Vec<Vec<f32>> = padded(&rows[5..], 9).into_iter().map(|row| [vec![0.0; 2], row].concat()).collect();
    let path = folder.write("a.npy", &npy("<f4", &[4, 1, 1, 11], &lines.concat()));
    assert_same(&*open_with(&path, &ReadOptions { start: Some(2), ..standing_at(7) }), &later(&rows, 5));
}

#[test]
fn a_square_of_decode_steps_is_not_taken_for_a_prompt() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[4, 1, 1, 4], &square(1, 4)));
    assert!(failure(&path, &NONE()).contains("--first-position"));
}

#[test]
fn metadata_may_say_where_rows_begin() {
    let (folder, rows) = (Folder::new(), triangle(1, 9));
    let weights = padded(&rows[5..], 9).concat();
    let bytes = |first| safetensors(&[("first_position", first)], &[("x", "F32", &[4, 1, 1, 9], &weights)]);
    let source = open(&folder.write("a.safetensors", &bytes("5")));
    assert_same(&*source, &later(&rows, 5));
    assert!(!source.info().metadata.contains_key("first_position"), "applied, not to be applied again");
    assert!(failure(&folder.write("b.safetensors", &bytes("x")), &NONE()).contains("first_position is \"x\""));
    let huge = folder.write("c.safetensors", &bytes("18446744073709551615"));
    assert!(failure(&huge, &NONE()).contains("positions are more than"));
}

/// Rows that see nothing before position `zero`.
fn late(rows: &[Vec<f32>], zero: usize) -> Vec<Vec<f32>> {
    rows.iter().map(|row| [vec![0.0; zero], row.clone()].concat()).collect()
}

#[test]
fn columns_that_begin_late_are_put_where_they_stand() {
    let (folder, rows) = (Folder::new(), triangle(1, 7));
    let weights = padded(&rows[4..], 7).concat();
    let expected = MemoryTrace::new("expected", SelfAttention::Included)
        .with_first_position(Position(9))
        .with_stream(0, "0", some(&late(&rows[4..], 5)))
        .expect("sound");
    let path = folder.write("a.npy", &npy("<f4", &[3, 7], &weights));
    let options = ReadOptions { column_offset: PerLayer::all(5), ..standing_at(9) };
    assert_same(&*open_with(&path, &options), &expected);
    let said = safetensors(&[("column_offset.0", "5")], &[("x", "F32", &[3, 7], &weights)]);
    let source = open_with(&folder.write("a.safetensors", &said), &standing_at(9));
    assert_same(&*source, &expected);
    assert!(!source.info().metadata.contains_key("column_offset.0"), "applied, not to be applied again");
    let problem = failure(&path, &ReadOptions { column_offset: PerLayer::all(10), ..standing_at(9) });
    assert!(problem.contains("column 0 stands for position 10, but row 0 already for position 9"), "{problem}");
    let problem = failure(&path, &standing_at(9));
    assert!(problem.contains("--column-offset") && problem.contains("--layer-window"), "{problem}");
    let huge = ReadOptions { column_offset: PerLayer::all(usize::MAX), ..standing_at(9) };
    assert!(failure(&path, &huge).contains("positions are more than"));
}

#[test]
fn a_square_whose_columns_begin_late_begins_with_them() {
    let (folder, rows) = (Folder::new(), triangle(1, 4));
    let path = folder.write("a.npy", &npy("<f4", &[4, 4], &square(1, 4)));
    let source = open_with(&path, &ReadOptions { column_offset: PerLayer::all(3), ..NONE() });
    assert_eq!(source.info().first_position, Position(3));
    let lengths: Vec<usize> = read_all(&*source).expect("readable")[0].iter().map(|(_, row)| row.len()).collect();
    assert_eq!(lengths, [4, 5, 6, 7]);
    assert_eq!(read_all(&*source).expect("readable")[0][1].1, late(&rows, 3)[1]);
}

/// Rows of a layer that sees the newest `window` positions, as a cache that lets the others go records them.
fn slid(rows: &[Vec<f32>], window: usize) -> Vec<Vec<f32>> {
    let newest = |row: &Vec<f32>| row[row.len().saturating_sub(window)..].to_vec();
    padded(&rows.iter().map(newest).collect::<Vec<_>>(), window)
}

/// Rows that hold all their weight in the newest `window` positions.
fn within(rows: &[Vec<f32>], window: usize) -> Vec<Vec<f32>> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        let gone = row.len().saturating_sub(window);
        row[..gone].fill(0.0);
    }
    rows
}

#[test]
fn columns_slide_with_the_rows_of_a_layer_as_wide_as_its_window() {
    let (folder, rows) = (Folder::new(), within(&triangle(1, 12), 4));
    // Where the cache is full, where it fills up on the way, and where it is full from the first row on.
    for first in [7, 1, 3] {
        let lines = slid(&rows[first..], 4);
        let path = folder.write("a.npy", &npy("<f4", &[lines.len(), 1, 1, 4], &lines.concat()));
        let source = open_with(&path, &windowed("4", first));
        assert_same(&*source, &later(&rows, first));
        assert_eq!(source.info().metadata["sliding_window.0"], "4", "the replay lets positions expire by it");
        assert!(source.info().notes[0].contains("slide with the row"));
        assert!(failure(&path, &standing_at(first)).contains("--layer-window"));
    }
}

#[test]
fn a_window_as_wide_as_the_sequence_slides_nothing() {
    let (folder, rows) = (Folder::new(), triangle(1, 6));
    let path = folder.write("a.npy", &npy("<f4", &[6, 6], &square(1, 6)));
    let options = ReadOptions { layer_window: PerLayer::all(6), ..NONE() };
    assert_same(&*open_with(&path, &options), &included(&[(0, 0, rows)]));
}

#[test]
fn full_and_sliding_layers_stand_side_by_side() {
    let (folder, full, local) = (Folder::new(), triangle(1, 12), within(&triangle(2, 12), 4));
    let members = [
        ("layer0.npy", npy("<f4", &[5, 1, 1, 12], &padded(&full[7..], 12).concat())),
        ("layer1.npy", npy("<f4", &[5, 1, 1, 4], &slid(&local[7..], 4).concat())),
    ];
    let source = open_with(&folder.write("a.npz", &npz(&members, false)), &windowed("1:4", 7));
    let expected = later(&full, 7).with_stream(1, "0", some(&local[7..])).expect("sound");
    assert_same(&*source, &expected);
    assert!(!source.info().metadata.contains_key("sliding_window.0"));
    let said = safetensors(
        &[("sliding_window.1", "4"), ("first_position", "7")],
        &[
            ("0", "F32", &[5, 1, 1, 12], &padded(&full[7..], 12).concat()),
            ("1", "F32", &[5, 1, 1, 4], &slid(&local[7..], 4).concat()),
        ],
    );
    assert_same(&*open(&folder.write("a.safetensors", &said)), &expected);
}

#[test]
fn a_square_tells_where_the_other_layers_stand() {
    let (folder, a, b) = (Folder::new(), triangle(1, 5), triangle(2, 5));
    let members = [
        ("layer0.npy", npy("<f4", &[5, 5], &padded(&a, 5).concat())),
        ("layer1.npy", npy("<f4", &[5, 8], &padded(&b, 8).concat())),
    ];
    let expected = included(&[(0, 0, a), (1, 0, b)]);
    assert_same(&*open(&folder.write("a.npz", &npz(&members, false))), &expected);
}

#[test]
fn squares_that_begin_at_different_positions_are_refused() {
    let (folder, weights) = (Folder::new(), square(1, 4));
    let bytes =
        safetensors(&[("column_offset.1", "3")], &[("0", "F32", &[4, 4], &weights), ("1", "F32", &[4, 4], &weights)]);
    let problem = failure(&folder.write("a.safetensors", &bytes), &NONE());
    assert!(problem.contains("position 0 by array \"0\", at position 3 by array \"1\""), "{problem}");
}

#[test]
fn a_trace_that_begins_late_survives_the_native_format() {
    let (folder, rows) = (Folder::new(), triangle(1, 9));
    let path = folder.write("a.npy", &npy("<f4", &[4, 1, 1, 9], &padded(&rows[5..], 9).concat()));
    let mut bytes = Vec::new();
    write(&*open_with(&path, &standing_at(5)), StoredType::F32, &mut bytes, &|_| {}).expect("written");
    assert_same(&*open(&folder.write("b.safetensors", &bytes)), &later(&rows, 5));
}

#[test]
fn what_is_said_otherwise_than_the_metadata_holds_and_is_noted() {
    let (folder, rows) = (Folder::new(), triangle(1, 7));
    let weights = padded(&rows[4..], 7).concat();
    let said = [("self", "included"), ("first_position", "9"), ("column_offset.0", "5")];
    let path = folder.write("a.safetensors", &safetensors(&said, &[("x", "F32", &[3, 7], &weights)]));
    let notes = |options: &ReadOptions| open_with(&path, options).info().notes.clone();
    let same = ReadOptions { column_offset: PerLayer::all(5), ..standing_at(9) };
    let (before, same) = (notes(&NONE()), notes(&same));
    assert_eq!(same, before, "nothing is said otherwise");
    let other = ReadOptions {
        self_attention: Some(SelfAttention::Excluded),
        column_offset: PerLayer::all(4),
        ..standing_at(8)
    };
    let made = |key, was, flag, now| format!("its metadata says that {key} is \"{was}\": {flag} makes it {now}");
    let wanted = [
        made("self", "included", "--self", "excluded"),
        made("first_position", "9", "--first-position", "8"),
        made("column_offset.0", "5", "--column-offset", "4"),
    ];
    let found = notes(&other);
    wanted.iter().for_each(|note| assert!(found.contains(note), "{note}: {found:?}"));
    let lines = folder.write("a.jsonl", b"{\"kvsim\":1,\"self\":\"included\",\"first_position\":3}\n");
    let note = "its header says that first_position is 3: --first-position makes it 1";
    assert_eq!(open_with(&lines, &standing_at(1)).info().notes, [note]);
    assert!(open_with(&lines, &standing_at(3)).info().notes.is_empty());
}

#[test]
fn options_without_a_use_are_refused_by_name() {
    let (folder, path) = (Folder::new(), |folder: &Folder| folder.write("a.jsonl", b""));
    let problem = failure(&path(&folder), &starting_at(3));
    assert_eq!(problem, "--start is for square arrays: a jsonl trace says it itself (leave out --start)");
    let mut bytes = Vec::new();
    write(&included(&[(0, 0, triangle(1, 4))]), StoredType::F32, &mut bytes, &|_| {}).expect("written");
    let native = folder.write("a.safetensors", &bytes);
    assert!(failure(&native, &standing_at(3)).starts_with("--first-position is for square arrays: a native trace"));
    let windows = ReadOptions { layer_window: "7:4".parse().expect("sound"), ..NONE() };
    assert!(failure(&native, &windows).contains("--layer-window names layer 7"));
    let windows = ReadOptions { layer_window: PerLayer::all(4), ..NONE() };
    assert_eq!(open_with(&native, &windows).info().metadata["sliding_window.0"], "4");
}
