//! The figures that a correct build reports on recorded attention.

use crate::agree::assert_agree;
use crate::common::binary::{Csv, kvsim};
use crate::common::files::package;
use crate::common::lanes::{Parameters, lane, mass_and_recall, open, read_rows, tallies};
use crate::common::{assert_near, shared};
use kvsim::policy::table::POLICIES;
use kvsim::replay::{LanePlan, Options, Tally};
use kvsim::trace::Source;

const LARGE: &str = "smollm2-prose-2048.safetensors";
const SMALL: &str = "traces/smollm2-prose-512.safetensors";
const BUDGETS: [usize; 2] = [128, 256];

const NONE: Parameters = &[];
const WINDOW_64: Parameters = &[("recent-window", 64)];

/// Retained mass, recall and pivotal hit rate at each budget.
const FIGURES: &[(&str, &str, Parameters, [[f64; 3]; 2])] = &[
    ("15.mean", "sliding-window", NONE, [[0.486755, 0.860747, 0.654321], [0.568734, 0.915375, 0.794159]]),
    ("15.mean", "streaming-llm", NONE, [[0.843636, 0.887992, 0.658554], [0.901100, 0.942097, 0.801648]]),
    ("15.mean", "h2o", NONE, [[0.775118, 0.738884, 0.397524], [0.828169, 0.811039, 0.490688]]),
    ("15.mean", "h2o", WINDOW_64, [[0.827089, 0.859994, 0.557147], [0.876612, 0.914914, 0.652509]]),
    ("15.mean", "scissorhands", NONE, [[0.793286, 0.777306, 0.443233], [0.832575, 0.810547, 0.497135]]),
    ("15.mean", "scissorhands", WINDOW_64, [[0.841104, 0.891774, 0.605715], [0.894573, 0.943988, 0.719424]]),
    ("15.mean", "tova", NONE, [[0.876735, 0.947755, 0.773136], [0.934121, 0.978567, 0.911042]]),
    ("15.mean", "snapkv", NONE, [[0.850753, 0.913315, 0.670666], [0.912526, 0.966697, 0.844686]]),
    ("16.6", "h2o", NONE, [[0.768596, 0.748632, 0.493457], [0.854733, 0.851199, 0.616241]]),
    ("16.6", "scissorhands", NONE, [[0.625203, 0.615514, 0.384655], [0.695501, 0.683933, 0.465402]]),
    ("16.6", "tova", NONE, [[0.925186, 0.967205, 0.840988], [0.976214, 0.993573, 0.959677]]),
];

/// What the oracle retains at each budget.
const ORACLE: &[(&str, [f64; 2])] = &[("15.mean", [0.910900, 0.957143]), ("16.6", [0.958937, 0.988163])];

/// Retained mass of full caches, peak miss rate and broken row rate at each budget.
const TAILS: &[(&str, &str, Parameters, [[f64; 3]; 2])] = &[
    ("15.mean", "sliding-window", NONE, [[0.452251, 0.937012, 0.002441], [0.506848, 0.874512, 0.0]]),
    ("15.mean", "tova", NONE, [[0.868447, 0.000488, 0.0], [0.924665, 0.0, 0.0]]),
    ("16.6", "h2o", NONE, [[0.753040, 0.015137, 0.000488], [0.833888, 0.006348, 0.0]]),
    ("16.6", "scissorhands", NONE, [[0.600008, 0.178711, 0.006836], [0.651807, 0.157227, 0.005371]]),
    ("16.6", "scissorhands", WINDOW_64, [[0.762129, 0.057129, 0.002441], [0.825071, 0.047363, 0.000977]]),
];

fn large() -> Option<Box<dyn Source>> {
    Some(open(shared::trace(LARGE)?))
}

fn small() -> Box<dyn Source> {
    open(package(SMALL))
}

fn index_of(source: &dyn Source, stream: &str) -> usize {
    let mut streams = source.info().streams.iter();
    streams.position(|known| known.label.to_string() == stream).expect("the stream is in the trace")
}

/// The tally of a policy on a stream at each budget.
fn at_budgets(source: &dyn Source, stream: &str, policy: &str, parameters: Parameters) -> Vec<Tally> {
    let lanes = BUDGETS.map(|budget| lane(policy, budget, parameters));
    tallies(source, &lanes, &Options::default()).remove(index_of(source, stream))
}

fn pivotal(tally: &Tally) -> f64 {
    tally.count("pivotal_hits") as f64 / tally.count("pivotal_possible") as f64
}

#[test]
fn recorded_attention_is_retained_recalled_and_hit_as_published() {
    let Some(source) = large() else { return };
    for (stream, policy, parameters, wanted) in FIGURES {
        for (tally, wanted) in at_budgets(&*source, stream, policy, parameters).iter().zip(wanted) {
            let [mass, recall] = mass_and_recall(tally);
            assert_near(mass, wanted[0], &format!("{stream} {policy}: retained mass"));
            assert_near(recall, wanted[1], &format!("{stream} {policy}: recall"));
            assert_near(pivotal(tally), wanted[2], &format!("{stream} {policy}: pivotal hit rate"));
        }
    }
}

#[test]
fn the_oracle_retains_of_recorded_attention_what_was_published() {
    let Some(source) = large() else { return };
    for (stream, wanted) in ORACLE {
        for (tally, wanted) in at_budgets(&*source, stream, "oracle", NONE).iter().zip(wanted) {
            assert_near(tally.real("retained_mass_sum") / tally.count("rows_measured") as f64, *wanted, stream);
        }
    }
}

#[test]
fn the_tail_figures_of_recorded_attention_are_those_published() {
    let Some(source) = large() else { return };
    for (stream, policy, parameters, wanted) in TAILS {
        for (tally, wanted) in at_budgets(&*source, stream, policy, parameters).iter().zip(wanted) {
            let rows = tally.count("rows_measured") as f64;
            let full = tally.real("retained_mass_full_sum") / tally.count("rows_full") as f64;
            assert_near(full, wanted[0], &format!("{stream} {policy}: retained mass of full caches"));
            assert_near(
                tally.count("peak_misses") as f64 / rows,
                wanted[1],
                &format!("{stream} {policy}: peak miss rate"),
            );
            assert_near(
                tally.count("broken_rows") as f64 / rows,
                wanted[2],
                &format!("{stream} {policy}: broken row rate"),
            );
        }
    }
}

#[test]
fn layer_fifteen_is_the_third_of_four_and_gets_its_share() {
    let Some(source) = large() else { return };
    let budgets = |stream| at_budgets(&*source, stream, "pyramidkv", NONE)[0].count("budget_sum");
    assert_eq!(budgets("15.mean"), 102);
    let all = ["3.mean", "10.1", "15.mean", "16.6"].map(budgets);
    assert_eq!(all, [204, 153, 102, 51], "from four times the last one's down, 128 on average");
}

#[test]
fn on_recorded_attention_scissorhands_and_h2o_lie_further_apart_than_a_hundredth() {
    let Some(source) = large() else { return };
    for budget in 0..2 {
        let mass = |policy| mass_and_recall(&at_budgets(&*source, "16.6", policy, NONE)[budget])[0];
        assert!((mass("scissorhands") - mass("h2o")).abs() > 0.1);
    }
}

#[test]
fn the_small_recorded_trace_is_the_beginning_of_the_large_one() {
    let Some(large) = large() else { return };
    for stream in ["15.mean", "16.6"] {
        let [whole, part] = [&*large, &*small()].map(|source| read_rows(source, index_of(source, stream)));
        assert_eq!(part.len(), 512);
        assert!(whole[..512] == part[..], "{stream}");
    }
}

#[test]
fn on_the_small_recorded_trace_engine_and_reference_agree() {
    let source = small();
    let kind = source.info().self_attention;
    for stream in 0..source.info().streams.len() {
        let rows = read_rows(&*source, stream);
        for entry in POLICIES.iter().filter(|entry| !entry.needs_more_than_rows()) {
            let lanes = if entry.budgeted { vec![64, 200] } else { vec![0] };
            let lanes = lanes.into_iter().map(|budget| LanePlan::new(entry, budget));
            for lane in lanes.filter(|lane| lane.check().is_ok()) {
                assert_agree(&rows, kind, &lane, &Options::default());
            }
        }
    }
}

#[test]
fn the_small_recorded_trace_says_where_it_comes_from() {
    let source = small();
    let info = source.info();
    let labels: Vec<String> = info.streams.iter().map(|stream| stream.label.to_string()).collect();
    assert_eq!((labels.join(" ").as_str(), info.positions), ("15.mean 16.6", 512));
    assert!(info.metadata.contains_key("model") && info.metadata.contains_key("source"));
}

#[test]
fn lru_on_the_prose_that_is_in_the_package() {
    let args = ["replay", "traces/smollm2-prose-384.safetensors", "--kv-heads", "3", "--budget", "64", "-q"];
    let report = Csv::parse(&kvsim(&[&args[..], &["--policy", "lru,tova,scissorhands"]].concat()).report());
    for (row, (mass, misses)) in
        [(0.925512, 0.004557), (0.928057, 0.010055), (0.918088, 0.006366)].into_iter().enumerate()
    {
        assert_near(report.number(row, "retained_mass"), mass, "retained mass");
        assert_near(report.number(row, "peak_miss_rate"), misses, "peak misses");
    }
}
