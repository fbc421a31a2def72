//! Budgets across layers, as the replay puts them in force.

use kvsim::budgets::CacheBudgets;
use kvsim::error::Error;
use kvsim::policy::table::find;
use kvsim::replay::{LanePlan, NoObserver, Options, Outcome, caches_of, replay};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::{SelfAttention, Source};
use std::ffi::OsStr;
use std::io::Write;

const ROWS: usize = 80;

/// Layers 2, 5 and 9 of one head, uniform attention.
fn trace() -> MemoryTrace {
    let rows: Rows = (1..=ROWS).map(|len| Some(vec![1.0 / len as f32; len])).collect();
    [2, 5, 9].into_iter().fold(MemoryTrace::new("layers", SelfAttention::Included), |trace, layer| {
        trace.with_stream(layer, "0", rows.clone()).expect("rows have their lengths")
    })
}

fn replayed(policy: &str, budget: usize, layers: CacheBudgets) -> Result<Vec<Outcome>, Error> {
    let trace = trace();
    let caches = caches_of(trace.info()).expect("no metadata");
    let lanes = [LanePlan::new(find(policy).expect("in the table"), budget)];
    let options = Options { budgets: layers, ..Options::default() };
    replay(&trace, &caches, &lanes, &options, &NoObserver)
}

/// Budget in force and most positions held, layer by layer.
fn held(policy: &str, budget: usize, layers: &str) -> Vec<(u64, u64)> {
    let layers = CacheBudgets::parse(OsStr::new(layers)).expect("a shape");
    let outcomes = replayed(policy, budget, layers).expect("a sound replay");
    outcomes
        .iter()
        .map(|outcome| (outcome.tallies[0].count("budget_sum"), outcome.tallies[0].count("peak_kept")))
        .collect()
}

#[test]
fn every_kind_of_lane_holds_its_layers_budget() {
    for policy in ["sliding-window", "h2o", "optimal", "scissorhands-cross-layer"] {
        assert_eq!(held(policy, 50, "uniform"), [(50, 50), (50, 50), (50, 50)], "{policy}");
        assert_eq!(held(policy, 50, "pyramid:1.5"), [(60, 60), (50, 50), (40, 40)], "{policy}");
        assert_eq!(held(policy, 50, "funnel:1.5"), [(40, 40), (50, 50), (60, 60)], "{policy}");
    }
}

#[test]
fn a_layer_keeps_at_least_its_window_and_one_and_the_lane_says_so() {
    assert_eq!(held("h2o", 40, "funnel:3"), [(33, 33), (40, 40), (60, 60)]);
    assert_eq!(held("sliding-window", 40, "funnel:3"), [(20, 20), (40, 40), (60, 60)]);
    let caches = caches_of(trace().info()).expect("no metadata");
    let funnel = CacheBudgets::parse(OsStr::new("funnel:3")).expect("a shape");
    let lane = LanePlan::new(find("h2o").expect("in the table"), 40);
    let budgets = lane.budgets_on(&caches, &funnel).expect("covered");
    assert_eq!(budgets.iter().map(|budget| budget.raised).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn a_table_is_read_from_its_file_and_must_name_every_layer() {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(br#"{"2": 10, "5": 30, "9": 20}"#).expect("written");
    let name = file.path().to_str().expect("a plain name");
    assert_eq!(held("sliding-window", 40, name), [(20, 20), (60, 60), (40, 40)]);

    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(br#"{"2": 10, "5": 30}"#).expect("written");
    let table = CacheBudgets::parse(file.path().as_os_str()).expect("a table");
    let problem = replayed("sliding-window", 40, table).expect_err("layer 9 is missing").to_string();
    assert_eq!(problem, "policy sliding-window: the table of budgets has no layer 9, it names 2, 5");
}

#[test]
fn pyramidkv_keeps_to_its_own_rule() {
    let pyramid = CacheBudgets::parse(OsStr::new("pyramid:2")).expect("a shape");
    let problem = replayed("pyramidkv", 50, pyramid).expect_err("two rules at once").to_string();
    assert!(problem.starts_with("policy pyramidkv: it deals the budget out to layers by its own rule"), "{problem}");
    assert!(replayed("pyramidkv", 50, CacheBudgets::uniform()).is_ok());
}
