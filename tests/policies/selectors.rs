//! Selectors: published figures of `sift-attention`, its rule again the obvious way, and how selectors stand
//! apart from policies.

use crate::common::assert_near;
use crate::common::binary::{Csv, kvsim};
use crate::common::lanes::{open, read_rows};
use crate::streaming::PROSE;

fn csv(args: &[&str]) -> Csv {
    Csv::parse(&kvsim(&[&["replay", PROSE, "--format", "csv", "-q"], args].concat()).report())
}

#[test]
fn sift_attention_reads_and_retains_what_was_published() {
    for (quantile, warm_up, mass, read) in
        [("0.9", "64", 0.891150, 33.501), ("0.75", "64", 0.943941, 68.372), ("0.9", "128", 0.908220, 38.146)]
    {
        let policy = format!("sift-attention:quantile={quantile},warm-up={warm_up}");
        let csv = csv(&["--policy", &policy, "--prompt-len", "256"]);
        assert_near(csv.number(0, "retained_mass"), mass, &policy);
        let found = csv.number(0, "mean_read");
        assert!((found - read).abs() < 5e-4, "{policy}: {found} read, not {read}");
    }
}

#[test]
fn rows_of_which_a_window_leaves_nothing_are_passed_over() {
    let args = ["replay", "decode-4096", "--steps", "60", "--layer-window", "1", "--prompt-len", "20", "-q"];
    let csv = Csv::parse(&kvsim(&[&args[..], &["--policy", "sift-attention", "--format", "csv"]].concat()).report());
    assert_eq!((csv.text(0, "read_sum"), csv.text(0, "fits")), ("0", "0"));
}

#[test]
fn the_law_of_each_query_head_stands_beside_the_mass() {
    for (head, quantile, scale, exponent) in
        [("10/0", "0.75", 0.173490, 1.183092), ("3/5", "0.75", 0.009438, 0.196673), ("10/0", "0.9", 4.1e9, 5.16)]
    {
        let policy = format!("sift-attention:quantile={quantile}");
        let (layer, head) = head.split_once('/').expect("layer and head");
        let streams = ["--layers", layer, "--heads", head, "--kv-heads", "off", "--prompt-len", "256"];
        let csv = csv(&[&["--policy", &policy], &streams[..]].concat());
        let (found_scale, found) = (csv.number(0, "fit_log_scale").exp(), csv.number(0, "fit_exponent"));
        assert_eq!(csv.text(0, "fits"), "1");
        assert!((found_scale / scale - 1.0).abs() < 0.01 && (found - exponent).abs() < 5e-3, "{found_scale}, {found}");
        if quantile == "0.75" {
            assert_near(found_scale, scale, "scale");
            assert_near(found, exponent, "exponent");
        }
    }
}

/// The quantile of a row, linear between order statistics.
fn quantile(row: &[f32], share: f64) -> f64 {
    let mut sorted: Vec<f64> = row.iter().map(|weight| f64::from(*weight)).collect();
    sorted.sort_by(f64::total_cmp);
    let place = (row.len() as f64 - 1.0) * share;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * (place - place.floor())
}

/// Mass and positions read of a query head, by the rule as it is written down.
fn by_the_rule(rows: &[Vec<f32>], prompt: usize, share: f64, warm_up: usize) -> (f64, usize) {
    let points: Vec<(f64, f64)> = rows[prompt - warm_up..prompt]
        .iter()
        .map(|row| (row.len() as f64, quantile(row, share)))
        .filter(|point| point.1 > 0.0)
        .map(|(length, theta)| (length.ln(), theta.ln()))
        .collect();
    // Normal equations of a straight line.
    let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (length, theta) in points {
        (n, x, y, xx, xy) = (n + 1.0, x + length, y + theta, xx + length * length, xy + length * theta);
    }
    let slope = (n * xy - x * y) / (n * xx - x * x);
    let scale = (y - slope * x) / n;
    let (mut mass, mut read) = (0.0, 0);
    for row in &rows[prompt..] {
        let threshold = (scale + slope * (row.len() as f64).ln()).exp();
        for weight in row.iter().map(|weight| f64::from(*weight)).filter(|weight| *weight > threshold) {
            mass += weight;
            read += 1;
        }
    }
    (mass, read)
}

#[test]
fn sift_attention_follows_its_rule_on_every_query_head() {
    let trace = open(PROSE);
    let args = ["--policy", "sift-attention", "--prompt-len", "300", "--kv-heads", "off", "--per-stream"];
    let csv = csv(&args);
    assert_eq!(csv.len(), 36);
    for stream in 0..csv.len() {
        let rows: Vec<Vec<f32>> = read_rows(&*trace, stream).into_iter().flatten().collect();
        let (mass, read) = by_the_rule(&rows, 300, 0.9, 64);
        assert_near(csv.number(stream, "retained_mass_sum"), mass, &format!("stream {stream}"));
        assert_eq!(csv.number(stream, "read_sum"), read as f64, "stream {stream}");
    }
}

#[test]
fn selectors_hold_nothing_have_no_budget_and_are_not_ranked_among_policies() {
    let csv = csv(&["--policy", "tova,top-k:top-k=64,top-p,fixed-threshold", "--budget", "64"]);
    assert_eq!(csv.column("budget"), "64   ", "one line for each selector");
    assert_eq!((csv.text(1, "mean_kept"), csv.text(1, "state_bytes"), csv.text(0, "mean_read")), ("", "", ""));
    assert!(csv.number(1, "retained_mass") > csv.number(0, "retained_mass"), "it reads the heaviest of all");
    assert!(csv.number(2, "retained_mass") >= 0.9 && csv.number(2, "broken_row_rate") == 0.0);
    let list = kvsim(&["policies"]).report();
    assert_eq!(list.lines().filter(|line| line.contains("  selector: ")).count(), 4, "{list}");
    let default = kvsim(&["replay", PROSE, "--budget", "64", "--format", "csv", "-q"]).report();
    assert!(!default.contains("top-k,") && !default.contains("sift-attention"), "selectors run by name only");
}

#[test]
fn a_selector_that_needs_a_prompt_says_so() {
    let refused = kvsim(&["replay", PROSE, "-q", "--policy", "sift-attention"]);
    refused.refuses(2, &["sift-attention", "prompt", "--prompt-len"]);
}
