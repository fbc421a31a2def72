//! Holds the engine to the slow replay, step by step and in everything it counts.

use crate::as_reference::setting_of;
use crate::common::lanes::victims;
use crate::made;
use crate::reference::Measured;
use crate::reference::cache::Cache;
use crate::slow::{self, Situation, Step};
use kvsim::error::Result;
use kvsim::policy::table::Make;
use kvsim::position::Position;
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
        block_prompt: Position(situation.prompt as u32),
        threads: 1,
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

/// What each lane did and counted.
pub fn replayed(situation: &Situation, lanes: &[LanePlan]) -> Vec<(Tally, Vec<StepRecord>)> {
    let trace = trace_of(situation);
    replayed_on(&trace, &cache_of(&trace), lanes, &options_of(situation)).remove(0)
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
    fn wants_steps(&self) -> bool {
        true
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
    let replayed = replay(&trace, &cache_of(&trace), lanes, &options_of(situation), &NoObserver);
    replayed.expect("a sound replay").remove(0).tallies
}

/// Fails unless every policy of one cache among the lanes does and counts what the slow replay says.
#[track_caller]
pub fn assert_agree(situation: &Situation, lanes: &[LanePlan], what: &str) {
    let lanes: Vec<LanePlan> =
        lanes.iter().filter(|lane| matches!(lane.entry.make, Make::Policy(_))).cloned().collect();
    for (lane, (tally, records)) in lanes.iter().zip(replayed(situation, &lanes)) {
        let what = format!("{what}: {} at {:?}", lane.entry.name, lane.budget);
        let steps = slow::replay(situation, Cache::new(&setting_of(lane)), lane.budget.unwrap_or(usize::MAX));
        assert_same_steps(&records, &steps, &what);
        assert_same_counts(&tally, &steps, &what);
    }
}

#[track_caller]
pub fn assert_same_steps(records: &[StepRecord], steps: &[Step], what: &str) {
    let wanted: Vec<Vec<u32>> = steps.iter().map(|step| step.victims.clone()).collect();
    assert_eq!(victims(records), wanted, "{what}: victims");
    for (record, step) in records.iter().zip(steps) {
        assert_eq!(record.step.index(), step.step, "{what}: step");
        assert_eq!(record.kept, step.kept.len(), "{what}: kept after step {}", step.step);
        let hits = record.measured.map_or([0; 4], |row| {
            [row.heavy_hits, row.heavy_possible, row.pivotal_hits, row.pivotal_possible].map(|count| count as usize)
        });
        let pooled = |count: fn(&Measured) -> usize| step.measured.iter().map(count).sum::<usize>();
        let wanted = [
            pooled(|row| row.heavy_hits),
            pooled(|row| row.heavy_possible),
            pooled(|row| row.pivotal_hits),
            pooled(|row| row.pivotal_possible),
        ];
        assert_eq!(record.measured.is_some(), !step.measured.is_empty(), "{what}: measured in step {}", step.step);
        assert_eq!(hits, wanted, "{what}: hits in step {}", step.step);
        let mass = record.measured.map_or(0.0, |row| row.retained);
        let wanted: f64 = step.measured.iter().map(|row| row.mass).sum();
        assert!((mass - wanted).abs() <= 1e-12, "{what}: mass in step {}: {mass}, {wanted}", step.step);
    }
}

/// The counts of a tally, and the same counted from steps.
#[track_caller]
pub fn assert_same_counts(tally: &Tally, steps: &[Step], what: &str) {
    let decode = || steps.iter().filter(|step| !step.in_prompt);
    let rows: Vec<&Measured> = decode().flat_map(|step| &step.measured).collect();
    let count = |holds: fn(&Measured) -> bool| rows.iter().filter(|row| holds(row)).count();
    let found = [
        ("steps", tally.steps),
        ("prompt steps", tally.prompt_steps),
        ("skipped rows", tally.skipped_rows),
        ("rows", tally.rows),
        ("rows after eviction", tally.rows_full),
        ("peak misses", tally.peak_misses),
        ("broken rows", tally.broken_rows),
        ("heavy hits", tally.heavy_hits),
        ("heavy possible", tally.heavy_possible),
        ("pivotal hits", tally.pivotal_hits),
        ("pivotal possible", tally.pivotal_possible),
        ("expired", tally.expired),
        ("evicted", tally.evicted),
        ("eviction calls", tally.eviction_calls),
        ("kept sum", tally.kept_sum),
        ("peak kept", tally.peak_kept),
    ];
    let wanted = [
        decode().filter(|step| !step.measured.is_empty()).count(),
        steps.len() - decode().count(),
        decode().filter(|step| step.measured.is_empty()).count(),
        rows.len(),
        count(|row| row.after_first_eviction),
        count(|row| row.peak_missed),
        count(|row| row.broken),
        rows.iter().map(|row| row.heavy_hits).sum(),
        rows.iter().map(|row| row.heavy_possible).sum(),
        rows.iter().map(|row| row.pivotal_hits).sum(),
        rows.iter().map(|row| row.pivotal_possible).sum(),
        steps.iter().map(|step| step.expired.len()).sum(),
        steps.iter().map(|step| step.victims.len()).sum(),
        steps.iter().filter(|step| !step.victims.is_empty()).count(),
        decode().map(|step| step.kept.len()).sum(),
        decode().map(|step| step.kept.len()).max().unwrap_or(0),
    ];
    for ((name, found), wanted) in found.into_iter().zip(wanted) {
        assert_eq!(found, wanted as u64, "{what}: {name}");
    }
    let late = rows.iter().filter(|row| row.after_first_eviction);
    let sums = [
        (tally.retained, rows.iter().map(|row| row.mass).sum::<f64>()),
        (tally.retained_full, late.map(|row| row.mass).sum()),
        (tally.row_mass, rows.iter().map(|row| row.row_total).sum()),
        (tally.min_step_mass.unwrap_or(7.0), rows.iter().map(|row| row.mass).reduce(f64::min).unwrap_or(7.0)),
    ];
    for (found, wanted) in sums {
        assert!((found - wanted).abs() <= 1e-9, "{what}: retained, after eviction, row mass, least: {sums:?}");
    }
}
