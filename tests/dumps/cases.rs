//! Small dumps as people have them, each with the figure that an independent computation gives.

use crate::binary::{Csv, kvsim};
use std::path::PathBuf;

/// Where a case is.
pub fn case(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "dumps", "cases", name].iter().collect()
}

/// The retained mass of each policy, to six decimals.
#[track_caller]
fn retained(name: &str, args: &[&str]) -> Vec<String> {
    let path = case(name);
    let mut all = vec!["replay", path.to_str().expect("plain names"), "--format", "csv", "-q"];
    all.extend(args);
    let csv = Csv::parse(&kvsim(&all).report());
    (0..csv.len()).map(|row| format!("{:.6}", csv.number(row, "retained_mass"))).collect()
}

#[test]
fn a_generation_in_steps_replays_as_its_whole_square() {
    let block = ["--prompt", "block", "--budget", "4", "--recent-window", "1", "--policy", "h2o,tova"];
    let expected = ["0.536656", "0.690153"];
    assert_eq!(retained("hf-generate-full.npy", &[&block[..], &["--prompt-len", "6"]].concat()), expected);
    assert_eq!(retained("hf-generate-by-position.npz", &block), expected);
}

#[test]
fn decode_rows_in_lines_replay_as_the_array() {
    let tova = ["--policy", "tova", "--budget", "4"];
    assert_eq!(retained("decode-only.jsonl", &tova), ["0.886286"]);
    assert_eq!(retained("decode-only-same.npy", &[&tova[..], &["--first-position", "5"]].concat()), ["0.886286"]);
}

#[test]
fn rows_of_padding_that_are_not_numbers_are_passed_over_or_cut() {
    let h2o = ["--policy", "h2o", "--budget", "4", "--recent-window", "1"];
    let skip = [&h2o[..], &["--on-bad-row", "skip"]].concat();
    for name in ["nan-padding-rows-left.npy", "nan-padding-rows-right.npy"] {
        let path = case(name);
        let stopped = kvsim(&[&["replay", path.to_str().expect("plain")], &h2o[..]].concat());
        stopped.refuses(1, &["layer 0 head 0: row", "column 0: weight NaN is not a number", "--on-bad-row skip"]);
        assert_eq!(retained(name, &skip), ["0.854614"]);
    }
    assert_eq!(retained("nan-padding-rows-left.npy", &[&h2o[..], &["--start", "3"]].concat()), ["0.854614"]);
}

#[test]
fn marks_above_the_diagonal_are_no_position() {
    // The same square with zeros there is the array of the archive.
    let h2o = ["--policy", "h2o,tova,snapkv", "--budget", "4", "--recent-window", "1", "--per-stream"];
    assert_eq!(retained("nan-above-diagonal.npy", &h2o), retained("macosx-junk.npz", &h2o));
}

#[test]
fn lines_with_a_byte_order_mark_are_read() {
    assert_eq!(retained("bom.jsonl", &["--policy", "tova", "--budget", "1"]), ["1.000000"]);
}
