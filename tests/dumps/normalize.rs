//! Rows that do not sum to one: reported, refused, or divided on request.

use crate::attention::{assert_same, failure, included, open, open_with, read_all, square, triangle};
use crate::files::{Folder, npy, safetensors};
use kvsim::trace::options::{Normalize, ReadOptions};
use std::path::{Path, PathBuf};

fn normalized() -> ReadOptions {
    ReadOptions { normalize: Some(Normalize::Rows), ..Default::default() }
}

/// Three rows, the last with these weights.
fn with_last_row(folder: &Folder, last: [f32; 3]) -> PathBuf {
    let weights = [&[1.0, 0.0, 0.0, 0.5, 0.5, 0.0], last.as_slice()].concat();
    folder.write("a.npy", &npy("<f4", &[3, 3], &weights))
}

fn warnings_after_reading(path: &Path) -> Vec<String> {
    let source = open(path);
    read_all(&*source).expect("readable");
    source.warnings()
}

#[test]
fn rows_that_sum_to_more_than_one_give_one_warning_with_count_and_worst_row() {
    let folder = Folder::new();
    let rows = [[0.5, 0.51, 0.0], [0.6, 0.6, 0.0], [0.5, 0.5, 0.0]];
    let weights: Vec<f32> = [[1.0, 0.0, 0.0]].iter().chain(&rows[..2]).flatten().copied().collect();
    let path = folder.write("a.npy", &npy("<f4", &[3, 3], &weights));
    let expected = "rows that sum to more than one: 2, the worst layer 0 head 0 row 2 (1.2000): no softmax gives that \
                    (--normalize rows divides each by its sum)";
    assert_eq!(warnings_after_reading(&path), [expected]);
}

#[test]
fn warnings_do_not_change_when_a_trace_is_read_twice() {
    let folder = Folder::new();
    let source = open(&with_last_row(&folder, [0.5, 0.5, 0.2]));
    assert!(source.warnings().is_empty(), "nothing has been read");
    read_all(&*source).expect("readable");
    let once = source.warnings();
    read_all(&*source).expect("readable");
    assert_eq!((source.warnings(), once.len()), (once, 1));
}

#[test]
fn rounding_of_the_number_type_is_no_cause_for_a_warning() {
    let folder = Folder::new();
    let row = |dtype: &str, excess: f32| {
        let weights = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.5, excess];
        folder.write("a.safetensors", &safetensors(&[], &[("x", dtype, &[3, 3], &weights)]))
    };
    for (dtype, legal, too_much) in
        [("F16", 0.000_9, 0.001_1), ("F32", 0.000_9, 0.001_1), ("F64", 0.000_9, 0.001_1), ("BF16", 0.004_9, 0.005_2)]
    {
        assert!(warnings_after_reading(&row(dtype, legal)).is_empty(), "{dtype}");
        assert_eq!(warnings_after_reading(&row(dtype, too_much)).len(), 1, "{dtype}");
    }
}

#[test]
fn rows_that_sum_to_less_are_legal_and_remarked_on() {
    let folder = Folder::new();
    let source = open(&with_last_row(&folder, [0.25, 0.0, 0.25]));
    read_all(&*source).expect("readable");
    assert!(source.warnings().is_empty());
    let remark = source.remarks().remove(0);
    assert!(
        remark.starts_with("rows that sum to less than one: 1, the worst layer 0 head 0 row 2 (0.5000)"),
        "{remark}"
    );
}

#[test]
fn rows_that_hold_nothing_are_warned_of() {
    let folder = Folder::new();
    let warnings = warnings_after_reading(&with_last_row(&folder, [0.0, 0.0, 0.0]));
    assert!(warnings[0].contains("rows that hold no weight at all: 1"), "{warnings:?}");
}

#[test]
fn scaled_weights_are_refused_until_they_are_divided() {
    let folder = Folder::new();
    for factor in [100.0, 256.0, 2.0] {
        let scaled: Vec<f32> = square(1, 9).iter().map(|weight| weight * factor).collect();
        let path = folder.write("a.npy", &npy("<f4", &[9, 9], &scaled));
        let problem = failure(&path, &ReadOptions::default());
        assert!(problem.contains(&format!("rows sum to about {factor:.4}")), "{problem}");
        assert!(problem.contains("--normalize rows"), "{problem}");
        let source = open_with(&path, &normalized());
        assert_same(&*source, &included(&[(0, 0, triangle(1, 9))]));
        assert!(source.warnings().is_empty());
    }
}

#[test]
fn log_probabilities_are_refused() {
    let folder = Folder::new();
    let logarithms: Vec<f32> = square(1, 20).iter().map(|weight| weight.ln()).collect();
    let path = folder.write("a.npy", &npy("<f4", &[20, 20], &logarithms));
    for options in [ReadOptions::default(), normalized()] {
        let problem = failure(&path, &options);
        assert!(problem.contains("nearly all weights are negative, log-probabilities"), "{problem}");
    }
}

#[test]
fn a_row_of_zeros_is_a_step_without_information_once_rows_are_divided() {
    let folder = Folder::new();
    let source = open_with(&with_last_row(&folder, [0.0, 0.0, 0.0]), &normalized());
    let rows = read_all(&*source).expect("readable").remove(0);
    assert_eq!(rows[2], (2, vec![]));
    let source = open_with(&with_last_row(&folder, [0.25, 0.0, 0.25]), &normalized());
    assert_eq!(read_all(&*source).expect("readable")[0][2], (2, vec![0.5, 0.0, 0.5]));
}

#[test]
fn rows_of_any_format_can_be_divided() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", b"{\"step\":1,\"attn\":[0.5]}\n{\"step\":2,\"attn\":[0.5,1.5]}\n");
    let source = open_with(&path, &normalized());
    assert_eq!(read_all(&*source).expect("readable")[0], [(1, vec![1.0]), (2, vec![0.25, 0.75])]);
}
