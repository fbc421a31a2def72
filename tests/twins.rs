//! Policies that must be one and the same at some setting: identical victims at every step.

use kvsim::error::Result;
use kvsim::needs::Needs;
use kvsim::policy::parameter::PARAMETERS;
use kvsim::policy::table::find;
use kvsim::position::Position;
use kvsim::replay::{CachePlan, LanePlan, Observer, Options, StepRecord, caches_of, replay};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::spec::{DEFAULT_TRACE, MixtureSpec};
use kvsim::trace::synthetic::SyntheticTrace;
use kvsim::trace::{SelfAttention, Source};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Who went after each step, for each cache and lane.
type VictimsOf = BTreeMap<(String, usize), Vec<Vec<Position>>>;

/// Notes who goes.
#[derive(Default)]
struct Victims(Mutex<VictimsOf>);

impl Observer for Victims {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let mut all = self.0.lock().expect("no panic yet");
        for (lane, records) in records.iter().enumerate() {
            let victims = records.iter().map(|record| record.victims.clone());
            all.entry((cache.label.to_string(), lane)).or_default().extend(victims);
        }
        Ok(())
    }
}

/// A lane by name, with parameters as they are written on the command line.
fn lane((policy, parameters): (&str, &[(&str, &str)]), budget: usize) -> LanePlan {
    let mut plan = LanePlan::new(find(policy).expect("a policy of the table"), budget);
    for (name, text) in parameters {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == *name).expect("a parameter");
        plan.values.set(parameter, parameter.parse(text).expect("a sound value"));
    }
    plan
}

/// A policy by name, with parameters as they are written on the command line.
type Named<'a> = (&'a str, &'a [(&'a str, &'a str)]);

fn assert_twins(source: &dyn Source, budget: usize, one: Named<'_>, other: Named<'_>) {
    let caches = caches_of(source.info()).expect("sound metadata");
    let victims = Victims::default();
    let lanes = [lane(one, budget), lane(other, budget)];
    replay(source, &caches, &lanes, &Options::default(), &victims).expect("a sound replay");
    let victims = victims.0.into_inner().expect("no panic");
    for cache in &caches {
        let of = |lane| &victims[&(cache.label.to_string(), lane)];
        assert!(of(0).iter().any(|victims| !victims.is_empty()), "something is evicted");
        assert_eq!(of(0), of(1), "{one:?} and {other:?} on {}", cache.label);
    }
}

/// Three layers of one head and one of another, with many ties; layers may end early.
fn layers(seed: u32, kind: SelfAttention) -> MemoryTrace {
    let mut random = Xoshiro128::new(seed);
    let mut trace = MemoryTrace::new("layers", kind);
    for (layer, head, rows) in [(0, "0", 60), (3, "0", 50), (7, "0", 60), (3, "1", 60)] {
        let lengths = (kind.first_step().0..).map(|step| kind.row_len(Position(step)));
        let row = |len| Some((0..len).map(|_| random.below(9) as f32 / 256.0).collect());
        let rows: Rows = lengths.take(rows).map(row).collect();
        trace = trace.with_stream(layer, head, rows).expect("rows have their lengths");
    }
    trace
}

#[test]
fn decay_is_h2o_scissorhands_and_tova_at_its_ends() {
    let canonical = SyntheticTrace::new(MixtureSpec::built_in(DEFAULT_TRACE).expect("it is built in"));
    let included = layers(1, SelfAttention::Included);
    let excluded = layers(2, SelfAttention::Excluded);
    let traces: [(&dyn Source, usize, &str, &str); 3] =
        [(&canonical, 256, "32", "1"), (&included, 9, "3", "0"), (&excluded, 9, "3", "1")];
    for (source, budget, window, last) in traces {
        let window = ("recent-window", window);
        let decay = |parameters: &'static [(&'static str, &'static str)], window| [parameters, &[window]].concat();
        assert_twins(source, budget, ("h2o", &[window]), ("decay", &decay(&[("gamma", "1")], window)));
        let votes = decay(&[("gamma", "1"), ("signal", "vote")], window);
        assert_twins(source, budget, ("scissorhands", &[window]), ("decay", &votes));
        let newest = decay(&[("gamma", "0")], ("recent-window", last));
        assert_twins(source, budget, ("tova", &[]), ("decay", &newest));
    }
}

#[test]
fn layers_that_share_nothing_are_decay_without_memory() {
    for kind in [SelfAttention::Included, SelfAttention::Excluded] {
        for (seed, window) in [(3, "0"), (4, "1"), (5, "6")] {
            let window = ("recent-window", window);
            let alone: Named<'_> = ("scissorhands-cross-layer", &[("alpha", "0"), window]);
            assert_twins(&layers(seed, kind), 9, alone, ("decay", &[("gamma", "0"), window]));
        }
    }
}

#[test]
fn a_drop_of_one_that_counts_highs_of_the_kept_over_all_rows_is_the_vote_count() {
    for kind in [SelfAttention::Included, SelfAttention::Excluded] {
        let window = ("recent-window", "3");
        let all = [("drop", "1"), ("count", "high"), ("threshold", "kept"), ("history-window", "1000"), window];
        assert_twins(&layers(6, kind), 9, ("scissorhands", &[window]), ("scissorhands-paper", &all));
    }
}

#[test]
fn lanes_beside_a_coupled_lane_are_what_they_are_alone() {
    let trace = layers(7, SelfAttention::Included);
    let caches = caches_of(trace.info()).expect("no metadata");
    let names = ["h2o", "scissorhands-paper", "oracle", "optimal", "future-greedy"];
    let plain = names.map(|name| {
        let window: &[(&str, &str)] =
            if matches!(name, "h2o" | "scissorhands-paper") { &[("recent-window", "3")] } else { &[] };
        lane((name, window), 9)
    });
    let coupled = lane(("scissorhands-cross-layer", &[("recent-window", "3")]), 9);
    let together: Vec<LanePlan> = plain.iter().cloned().chain([coupled.clone()]).collect();
    let run = |lanes: &[LanePlan], threads| {
        let options = Options { threads, ..Options::default() };
        replay(&trace, &caches, lanes, &options, &kvsim::replay::NoObserver).expect("a sound replay")
    };
    let (alone, single) = (run(&plain, 1), run(&[coupled], 1));
    for threads in [1, 2, 5] {
        for (index, outcome) in run(&together, threads).into_iter().enumerate() {
            assert_eq!(outcome.cache.label, caches[index].label, "outcomes come in the order of caches");
            let (of_coupled, of_plain) = outcome.tallies.split_last().expect("all lanes");
            assert_eq!(of_plain, alone[index].tallies);
            assert_eq!(of_coupled, &single[index].tallies[0]);
        }
    }
}
