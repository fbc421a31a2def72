//! Policies that go through the rows one by one: published figures, and whom they evict first.

use crate::common::assert_near;
use crate::common::binary::{Csv, kvsim};
use crate::common::lanes::{StepLog, open, victims};
use kvsim::keeping::Keeping;
use kvsim::policy::parameter::{SCORE, Value};
use kvsim::policy::table::find;
use kvsim::replay::{LanePlan, Options, replay, shared_caches_of};

/// The recorded trace of all figures: four layers of nine query heads that share three KV heads.
pub const PROSE: &str = "traces/smollm2-prose-384.safetensors";

/// Retained mass and peak miss rate of each line of a replay.
#[track_caller]
pub fn mass_and_misses(args: &[&str]) -> Vec<[f64; 2]> {
    let report = kvsim(&[&["replay", "--format", "csv", "-q"], args].concat()).report();
    let csv = Csv::parse(&report);
    (0..csv.len()).map(|row| ["retained_mass", "peak_miss_rate"].map(|name| csv.number(row, name))).collect()
}

/// Holds the lines of a replay to retained masses and peak miss rates.
#[track_caller]
pub fn assert_lines(args: &[&str], wanted: &[[f64; 2]]) {
    let found = mass_and_misses(args);
    assert_eq!(found.len(), wanted.len(), "{args:?}");
    for (line, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert_near(found[0], wanted[0], &format!("{args:?}: retained mass of line {line}"));
        assert_near(found[1], wanted[1], &format!("{args:?}: peak misses of line {line}"));
    }
}

#[test]
fn means_and_deviations_retain_on_recorded_rows_what_was_published() {
    let at = |policy, more: &[&str], wanted: &[[f64; 2]]| {
        assert_lines(&[&[PROSE, "--policy", policy], more].concat(), wanted);
    };
    let stream = ["--budget", "64,128"];
    at("h2o:score=mean", &stream, &[[0.925724, 0.004630], [0.972249, 0.001085]]);
    at("roco", &stream, &[[0.926953, 0.004847], [0.971553, 0.001302]]);
    let block = ["--budget", "64", "--prompt", "block", "--prompt-len", "256"];
    at("h2o:score=mean", &block, &[[0.876371, 0.007378]]);
    at("roco", &block, &[[0.878392, 0.005859]]);
}

#[test]
fn g_kv_retains_on_recorded_rows_what_was_published() {
    let at = |more: &[&str], wanted: &[[f64; 2]]| assert_lines(&[&[PROSE, "--policy", "g-kv"], more].concat(), wanted);
    let budgets = ["--budget", "64,128", "--evict-every"];
    at(&[&budgets[..], &["1"]].concat(), &[[0.932394, 0.004774], [0.974688, 0.001374]]);
    at(&[&budgets[..], &["16"]].concat(), &[[0.931003, 0.004702], [0.975124, 0.000434]]);
    at(&["--budget", "64", "--evict-every", "16", "--combine", "mean"], &[[0.931529, 0.005281]]);
    let block = ["--budget", "64", "--evict-every", "16", "--prompt", "block", "--prompt-len", "256"];
    at(&block, &[[0.888725, 0.003472]]);
}

#[test]
fn g_kv_retains_of_the_canonical_trace_what_was_published() {
    let found = mass_and_misses(&["--policy", "g-kv", "--budget", "256", "--evict-every", "16,128"]);
    assert_near(found[0][0], 0.778381, "every 16");
    assert_near(found[1][0], 0.775451, "every 128");
}

#[test]
fn means_and_deviations_retain_of_the_canonical_trace_what_was_published() {
    let found = mass_and_misses(&["--policy", "h2o:score=mean,roco", "--budget", "256"]);
    assert_near(found[0][0], 0.784032, "h2o by the mean");
    assert_near(found[1][0], 0.788634, "roco");
}

/// Whom a lane evicts first on the first cache of the recorded trace.
fn first_victims(lane: LanePlan, count: usize) -> Vec<u32> {
    let trace = open(PROSE);
    let caches = shared_caches_of(trace.info(), 3).expect("nine heads share three");
    let log = StepLog::default();
    replay(&*trace, &caches[..1], &[lane], &Options::default(), &log).expect("a sound replay");
    victims(&log.records()[0]).concat().into_iter().take(count).collect()
}

#[test]
fn the_first_victims_are_those_published() {
    let mut by_mean = LanePlan::new(find("h2o").expect("in the table"), 64);
    by_mean.values.set(&SCORE, Value::Word("mean"));
    let wanted = [3, 8, 28, 33, 11, 15, 38, 14, 9, 29, 16, 7, 32, 21, 36, 41, 26, 45, 46, 51];
    assert_eq!(first_victims(by_mean, 20), wanted);
    let g_kv = LanePlan::new(find("g-kv").expect("in the table"), 64);
    let every_16 = Keeping { evict_every: 16, ..g_kv.keeping };
    let wanted = [2, 3, 6, 7, 8, 9, 10, 11, 13, 26, 28, 31, 33, 38, 42, 45];
    assert_eq!(first_victims(g_kv.kept(every_16), 16), wanted);
    let roco = LanePlan::new(find("roco").expect("in the table"), 64);
    let wanted = [3, 8, 38, 28, 33, 11, 15, 14, 53, 9, 29, 16, 7, 32, 21, 36, 51, 41, 26, 45];
    assert_eq!(first_victims(roco, 20), wanted);
}
