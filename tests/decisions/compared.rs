//! Drift against the slow way, and the reports of the command.

use crate::common::binary::kvsim;
use crate::common::files::Folder;
use crate::common::lanes::{lane, logged, trace, victims};
use crate::rows;
use kvsim::decisions::diff::of_lanes;
use kvsim::replay::{Options, caches_of};
use kvsim::trace::SelfAttention::{Excluded, Included};
use kvsim::trace::Source;
use std::collections::BTreeSet;

const TRACE: &str = "traces/smollm2-prose-384.safetensors";

#[test]
fn the_overlap_is_that_of_the_kept_sets() {
    for (kind, first) in [(Included, 0), (Excluded, 1)] {
        let source = trace(kind, &rows(9, 50));
        let lanes = [lane("tova", 10, &[]), lane("lru", 12, &[("recent-window", 3)])];
        let logs: Vec<_> =
            logged(&source, &lanes, &Options::default()).into_iter().map(|(_, log)| victims(&log)).collect();
        let (mut held, mut wanted) = ([BTreeSet::from([0]), BTreeSet::from([0])], Vec::new());
        for step in 0..50 {
            for (held, log) in held.iter_mut().zip(&logs) {
                held.insert(first + step as u32);
                log[step].iter().for_each(|position| assert!(held.remove(position)));
            }
            let both = held[0].intersection(&held[1]).count() as f64;
            wanted.push(both / held[0].union(&held[1]).count() as f64);
        }
        let evicted = |step: usize| logs.iter().any(|log| log[..=step].iter().any(|victims| !victims.is_empty()));
        let wanted: Vec<f64> = (0..50).filter(|step| evicted(*step)).map(|step| wanted[step]).collect();
        let caches = caches_of(source.info()).expect("sound");
        let diff = of_lanes(&source, &caches, lanes, &Options::default()).expect("a sound replay");
        let overlap = diff.caches[0].overlap;
        assert_eq!(diff.curve.values().map(|(sum, _)| *sum).collect::<Vec<_>>(), wanted);
        assert_eq!(overlap.steps as usize, wanted.len());
        assert_eq!(overlap.mean, wanted.iter().sum::<f64>() / wanted.len() as f64);
        assert_eq!(overlap.least, wanted.iter().copied().fold(1.0, f64::min));
        assert_eq!(Some(&overlap.last), wanted.last());
    }
}

#[test]
fn a_report_says_where_why_how_far_and_at_what_cost() {
    let run = |more: &[&str]| kvsim(&[&["diff", "h2o", "scissorhands", TRACE, "--budget", "64", "-q"], more].concat());
    let report = run(&[]).report();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines[0], "A: h2o, budget 64, recent_window 32, score sum");
    assert_eq!(lines[3], "they part in 12 of 12 caches, first in 3.kv0 at step 64");
    assert!(report.contains("kept sets (Jaccard, mean over caches): 0.6855 over steps"), "{report}");
    assert!(report.contains("retained_mass       0.908529  0.918088  +0.009558"), "{report}");
    assert_eq!(run(&["--threads", "1"]).report(), report);
    let json: serde_json::Value = serde_json::from_str(&run(&["-f", "json"]).report()).expect("JSON");
    assert_eq!(json["caches"][0]["parting"]["step"], 64);
    assert_eq!(json["caches"][0]["parting"]["a"], serde_json::json!([28]));
    assert_eq!(json["cost"]["peak_miss_rate"].as_array().map(Vec::len), Some(2));
}

#[test]
fn scores_in_few_bits_are_told_as_rounding() {
    for (to, kinds) in
        [("bf16", "why: rounding 11, scores 1"), ("f16", "why: rounding 5"), ("f32", "they evict the same")]
    {
        let report = kvsim(&["diff", "h2o", "h2o", TRACE, "-b", "64", "-q", "--round-scores", to]).report();
        assert!(report.contains(kinds), "{to}: {report}");
    }
}

#[test]
fn a_file_stands_for_the_policy_that_wrote_it() {
    let folder = Folder::new();
    let file = folder.at("h2o.jsonl");
    kvsim(&["decisions", TRACE, "-p", "h2o", "-b", "64", "-q", "-o", &file]).report();
    let same = kvsim(&["diff", "h2o", &file, TRACE, "-q"]).report();
    assert!(same.contains("they evict the same in all 12 caches"), "the budget is the file's: {same}");
    let two = kvsim(&["diff", &file, &file]).report();
    assert!(two.contains("they evict the same in all 12 caches") && !two.contains("cost"), "{two}");
    let other = kvsim(&["diff", &file, "tova", TRACE, "-q"]).report();
    assert!(other.contains("why: scores 12") && other.contains("B scores"), "{other}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let refused = |args: &[&str], parts: &[&str]| kvsim(&[&["diff"], args].concat()).refuses(2, parts);
    refused(&["h2o", "tova"], &["a policy decides on a trace"]);
    refused(&["h2o", "nothing.jsonl", TRACE], &["nothing.jsonl", "neither a policy"]);
    refused(&["h2o", "oracle", TRACE, "-b", "64", "-q"], &["oracle holds no positions"]);
    refused(&["h2o", "h2o", TRACE, "-b", "64,96,128", "-q"], &["one for A and one for B"]);
    refused(&["h2o", "h2o", TRACE, "-b", "64", "--recent-window", "3,4", "-q"], &["name one value of each parameter"]);
}
