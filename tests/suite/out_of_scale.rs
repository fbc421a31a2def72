//! Numbers outside the scale of attention: refused with a place and a remedy, never a figure that is wrong.

use crate::common::binary::{Csv, kvsim, kvsim_in};
use crate::common::files::{Folder, json_lines};

/// Eight rows, self included, whose heaviest weights move; times a factor.
fn rows(factor: f32) -> String {
    let weight = |step: usize, at: usize| factor * if at == step / 2 { 0.5 } else { 0.5 / step.max(1) as f32 };
    let row = |step: usize| Some((0..=step).map(|at| weight(step, at)).collect());
    json_lines(0, &(0..8).map(row).collect::<Vec<_>>())
}

const LANES: [&str; 6] = ["-p", "h2o,future-greedy,optimal", "-b", "3", "--recent-window", "1"];

/// Retained mass by lane.
fn retained(folder: &Folder, name: &str, more: &[&str]) -> Vec<f64> {
    let report = kvsim_in(folder.path(), &[&["replay", name, "-q"], &LANES[..], more].concat()).report();
    let csv = Csv::parse(&report);
    (0..csv.len()).map(|row| csv.number(row, "retained_mass")).collect()
}

#[test]
fn rows_far_below_one_are_refused_by_what_plans_ahead_until_they_are_divided_by_their_sums() {
    let folder = Folder::new();
    folder.write("plain.jsonl", rows(1.0));
    folder.write("tiny.jsonl", rows(1e-20));
    let ran = kvsim_in(folder.path(), &[&["replay", "tiny.jsonl"], &LANES[..]].concat());
    ran.refuses(1, &["tiny.jsonl: 0.0: rows sum to", "e-21 on average: future-greedy plans", "(--normalize rows)"]);
    let normalized = retained(&folder, "tiny.jsonl", &["--normalize", "rows"]);
    assert_eq!(normalized, retained(&folder, "plain.jsonl", &["--normalize", "rows"]));
    assert!(normalized[0] <= normalized[2] && normalized[1] <= normalized[2], "{normalized:?}");
}

#[test]
fn a_weight_of_2e19_is_refused_by_what_plans_ahead_alone() {
    let folder = Folder::new();
    let heavy = Some(vec![2e19, 0.0]);
    folder.write("heavy.jsonl", json_lines(0, &[Some(vec![1.0]), heavy, Some(vec![0.75, 0.25, 0.0])]));
    let ran = kvsim_in(folder.path(), &["replay", "heavy.jsonl", "-p", "optimal", "-b", "1"]);
    ran.refuses(
        1,
        &["heavy.jsonl:2: layer 0 head 0: row 1: the row sums to 2.00e19: optimal plans", "--normalize rows"],
    );
    kvsim_in(folder.path(), &["replay", "heavy.jsonl", "-q", "-p", "h2o", "-b", "1", "--recent-window", "0"]).report();
}

#[test]
fn a_weight_that_f16_cannot_hold_is_refused_and_leaves_no_file() {
    let folder = Folder::new();
    folder.write("large.jsonl", json_lines(0, &[Some(vec![1.0]), Some(vec![0.0, 1e5])]));
    let convert = |dtype: &str| kvsim_in(folder.path(), &["convert", "large.jsonl", "--dtype", dtype, "-o", "out"]);
    convert("f16").refuses(1, &["large.jsonl:2:", "column 1: weight 100000 is more than F16 can hold", "--dtype f32"]);
    assert_eq!(folder.names(), ["large.jsonl"]);
    assert_eq!(convert("bf16").code, 0);
}

#[test]
fn a_spec_whose_rows_would_be_nothing_is_refused_with_its_name() {
    let folder = Folder::new();
    let spec = r#"{"kvsim_spec": 1, "name": "s", "positions": 60, "seed": 7, "noise": {"mass": 5e-324}}"#;
    let path = folder.write("faint.json", spec);
    let wanted = ["faint.json: 5e-324 is out of range: masses and sink weights must lie between 1e-100"];
    kvsim(&["replay", &path]).refuses(1, &wanted);
    kvsim(&["generate", &path, "-o", &folder.at("out")]).refuses(1, &wanted);
    assert_eq!(folder.names(), ["faint.json"]);
}
