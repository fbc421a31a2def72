//! The table of planning: from what is asked for to checked lanes, before a row is read.

use crate::common::rounds::{interleave, rounds};
use crate::common::table::{Table, grouped, ms, ns};
use kvsim::budgets::CacheBudgets;
use kvsim::experiment::{Budget, LaneRequest};
use kvsim::policy::parameter::{RECENT_WINDOW, Value};
use kvsim::policy::spec::PolicySpec;
use kvsim::replay::{CachePlan, caches_of};
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::{SelfAttention, Source};
use std::ffi::OsStr;
use std::time::Instant;

const HEADER: [&str; 5] = ["lanes", "layers", "budgets", "planning", "per lane and layer"];

/// Budgets, windows, layers, and how budgets are dealt out.
const SWEEPS: [(usize, usize, usize, &str); 8] = [
    (10, 99, 1, "uniform"),
    (100, 99, 1, "uniform"),
    (400, 99, 1, "uniform"),
    (10, 99, 30, "pyramid:4"),
    (1, 1, 200, "pyramid:4"),
    (1, 1, 2000, "pyramid:4"),
    (1, 1, 20_000, "pyramid:4"),
    (1, 1, 20_000, "uniform"),
];

pub fn print() {
    let mut table = Table::new(HEADER, 0);
    SWEEPS.iter().for_each(|sweep| measure(*sweep, &mut table));
    println!("{}", table.markdown());
    println!(
        "scissorhands at budgets from 1,000 up with windows from 1 up, planned for traces of one head. Least of the rounds."
    );
}

fn measure((budgets, windows, layers, shape): (usize, usize, usize, &str), table: &mut Table) {
    let request = LaneRequest {
        policies: PolicySpec::parse_list("scissorhands").expect("it is in the table"),
        budgets: (1000..1000 + budgets).map(Budget::Count).collect(),
        values: vec![(&RECENT_WINDOW, (1..=windows).map(Value::Count).collect())],
        ..LaneRequest::default()
    };
    let (caches, dealt) = (caches(layers), CacheBudgets::parse(OsStr::new(shape)).expect("a shape"));
    let trace = MemoryTrace::new("planned", SelfAttention::Included);
    let keeping = request.keeping.of(trace.info()).expect("no prompt is asked for");
    let plan = || {
        let started = Instant::now();
        let lanes = request.lanes(4096, &caches, &dealt, &keeping);
        assert_eq!(lanes.possible.len(), budgets * windows);
        started.elapsed()
    };
    let [time] = interleave(rounds(5), [&mut { plan }]);
    let lanes = budgets * windows;
    eprintln!("planned: {lanes} lanes on {layers} layers");
    let each = time.least() / (lanes * layers) as f64;
    table.row([grouped(lanes as u64), grouped(layers as u64), shape.to_owned(), ms(time.least()), ns(each)]);
}

/// One cache in each of so many layers.
fn caches(layers: usize) -> Vec<CachePlan> {
    let empty = MemoryTrace::new("layers", SelfAttention::Excluded);
    let trace = (0..layers as u32)
        .fold(empty, |trace, layer| trace.with_stream(layer, "0", vec![Some(vec![1.0])]).expect("a row of one weight"));
    caches_of(trace.info()).expect("no metadata")
}
