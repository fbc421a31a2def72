//! Holds the engine to the slow replay, step by step and in everything it counts.

use crate::as_meters;
use crate::as_reference::setting_of;
use crate::common::lanes::{of_one_cache, victims};
use crate::made;
use crate::reference::cache::Cache;
use crate::reference::meters::{Seen, StepSeen};
use crate::slow::{self, Situation, Step};
use kvsim::error::Result;
use kvsim::keeping::{Combine, Keeping, PromptMode, PromptPlan, Scope};
use kvsim::needs::Needs;
use kvsim::policy::table::Make;
use kvsim::replay::{
    CachePlan, LanePlan, NoObserver, Observer, Options, Outcome, StepRecord, Tally, ViewKind, caches_of, replay,
    shared_caches_of,
};
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::{Source, StreamLabel};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The trace of a situation: its heads are those of layer 0.
pub fn trace_of(situation: &Situation) -> MemoryTrace {
    let names: Vec<String> = (0..situation.heads.len()).map(|head| head.to_string()).collect();
    let streams: Vec<_> = names.iter().zip(&situation.heads).map(|(name, rows)| (0, name.as_str(), rows)).collect();
    let trace = made::trace(situation.kind, situation.first, &streams);
    match situation.window {
        None => trace,
        Some(window) => trace.with_metadata("sliding_window.0", &window.to_string()),
    }
}

/// How the engine is told of a situation.
pub fn options_of(situation: &Situation) -> Options {
    Options {
        heavy_hitters: situation.k,
        view: if situation.renormalized { ViewKind::Renormalized } else { ViewKind::Raw },
        threads: 1,
        meters: as_meters::all_meters(),
        ..Options::default()
    }
}

/// The one cache that all heads of a situation share.
pub fn cache_of(trace: &MemoryTrace) -> Vec<CachePlan> {
    match trace.info().streams.len() {
        1 => caches_of(trace.info()),
        _ => shared_caches_of(trace.info(), 1),
    }
    .expect("heads that can share a cache")
}

/// The lanes kept as in a situation.
pub fn kept(situation: &Situation, lanes: &[LanePlan]) -> Vec<LanePlan> {
    let keeping = keeping_of(situation);
    lanes.iter().map(|lane| lane.clone().kept(Keeping { scope: lane.keeping.scope, ..keeping })).collect()
}

/// How the engine is told to keep a cache.
pub fn keeping_of(Situation { prompt, keep, .. }: &Situation) -> Keeping {
    let mode = match prompt {
        0 => PromptMode::Stream,
        _ if keep.once => PromptMode::Once,
        _ => PromptMode::Block,
    };
    let combine = match keep.combine {
        slow::Combine::Mean => Combine::Mean,
        slow::Combine::Max => Combine::Max,
        slow::Combine::Sum => Combine::Sum,
        slow::Combine::Each => Combine::Each,
    };
    let prompt = PromptPlan { mode, len: *prompt, chunk: keep.chunk };
    Keeping { combine, scope: Scope::Head, evict_every: keep.every, page: keep.page, prompt }
}

/// What each lane did and counted.
pub fn replayed(situation: &Situation, lanes: &[LanePlan]) -> Vec<(Tally, Vec<StepRecord>)> {
    let trace = trace_of(situation);
    let mut of_sets = replayed_on(&trace, &cache_of(&trace), &kept(situation, lanes), &options_of(situation));
    // The cache is the only one of its layer: a lane that keeps a set for the layer has it in the second place.
    let of_layer = of_sets.split_off(1).into_iter().flatten();
    let mut of_cache = of_sets.remove(0);
    of_cache.iter_mut().zip(of_layer).filter(|(own, _)| own.0.is_empty()).for_each(|(own, layer)| *own = layer);
    of_cache
}

/// What each lane (inner) did and counted on each cache (outer).
pub fn replayed_on(
    source: &dyn Source,
    caches: &[CachePlan],
    lanes: &[LanePlan],
    options: &Options,
) -> Vec<Vec<(Tally, Vec<StepRecord>)>> {
    let log = Log::default();
    let outcomes = replay(source, caches, lanes, options, &log).expect("a sound replay");
    let mut records = log.0.into_inner().expect("no thread panicked");
    let mut of_cache = |Outcome { cache, tallies }| {
        let records = records.remove(&cache.label).expect("every cache is logged");
        tallies.into_iter().zip(records).collect()
    };
    outcomes.into_iter().map(&mut of_cache).collect()
}

/// Keeps what each lane did on each cache.
#[derive(Default)]
struct Log(Mutex<BTreeMap<StreamLabel, Vec<Vec<StepRecord>>>>);

impl Observer for Log {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let mut log = self.0.lock().expect("no thread panicked");
        let lanes = log.entry(cache.label.clone()).or_insert_with(|| vec![Vec::new(); records.len()]);
        lanes.iter_mut().zip(records).for_each(|(lane, records)| lane.extend_from_slice(records));
        Ok(())
    }
}

/// The tallies of lanes.
pub fn tallies(situation: &Situation, lanes: &[LanePlan]) -> Vec<Tally> {
    let trace = trace_of(situation);
    let lanes = kept(situation, lanes);
    let replayed = replay(&trace, &cache_of(&trace), &lanes, &options_of(situation), &NoObserver);
    of_one_cache(replayed.expect("a sound replay"))
}

/// Fails unless every policy of one cache among the lanes does and counts what the slow replay says.
#[track_caller]
pub fn assert_agree(situation: &Situation, lanes: &[LanePlan], what: &str) {
    let lanes: Vec<LanePlan> = kept(situation, lanes);
    let lanes: Vec<LanePlan> =
        lanes.into_iter().filter(|lane| matches!(lane.entry.make, Make::Policy(_)) && lane.check().is_ok()).collect();
    for (lane, (tally, records)) in lanes.iter().zip(replayed(situation, &lanes)) {
        let what = format!("{what}: {} at {:?}", lane.entry.name, lane.budget);
        let steps = replayed_slowly(situation, lane);
        assert_same_steps(&records, &steps, &what);
        assert_same_counts(&tally, &steps, &what);
    }
}

/// What the slow replay says of a lane, which may have its own way to combine heads.
pub fn replayed_slowly(situation: &Situation, lane: &LanePlan) -> Vec<Step> {
    let combine = if lane.entry.own.combine.is_some() { slow::Combine::Sum } else { situation.keep.combine };
    let situation = Situation { keep: slow::Keep { combine, ..situation.keep }, ..situation.clone() };
    slow::replay(&situation, Cache::new(&setting_of(lane)), lane.budget.unwrap_or(usize::MAX))
}

#[track_caller]
pub fn assert_same_steps(records: &[StepRecord], steps: &[Step], what: &str) {
    let wanted: Vec<Vec<u32>> = steps.iter().map(|step| step.victims.clone()).collect();
    assert_eq!(victims(records), wanted, "{what}: victims");
    for (record, step) in records.iter().zip(steps) {
        assert_eq!(record.step.index(), step.step, "{what}: step");
        assert_eq!(record.kept, step.kept.len(), "{what}: kept after step {}", step.step);
        assert_eq!(record.measured.is_some(), !step.measured.is_empty(), "{what}: measured in step {}", step.step);
        if let Some(tally) = &record.measured {
            let seen = Seen::step(step.measured.clone());
            as_meters::assert_same_sums(&format!("{what}: step {}", step.step), tally, &seen);
        }
    }
}

/// Fails unless the tally is what the meters of the reference count of the steps.
#[track_caller]
pub fn assert_same_counts(tally: &Tally, steps: &[Step], what: &str) {
    let seen_of = |step: &Step| StepSeen {
        kept: step.kept.len(),
        positions: step.kept.clone(),
        evicted: step.victims.len(),
        expired: step.expired.len(),
        measured: !step.measured.is_empty(),
        in_prompt: step.in_prompt,
    };
    let seen = Seen {
        rows: steps.iter().flat_map(|step| step.measured.clone()).collect(),
        steps: steps.iter().map(seen_of).collect(),
        budget: tally.number("budget_sum").map(|budget| budget.as_f64() as usize),
        window: tally.number("window_sum").map(|window| window.as_f64() as usize),
        own_sinks: tally.number("sinks_sum").map(|sinks| sinks.as_f64() as usize),
        sinks: 4,
    };
    as_meters::assert_same_sums(what, tally, &seen);
}
