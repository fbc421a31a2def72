//! Replays through the library, with or without a record of every step.

use kvsim::error::Result;
use kvsim::needs::Needs;
use kvsim::policy::parameter::PARAMETERS;
use kvsim::policy::table::find;
use kvsim::replay::{
    CachePlan, LanePlan, NoObserver, Observer, Options, Outcome, StepRecord, Tally, caches_of, replay,
};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::options::ReadOptions;
use kvsim::trace::spec::{DEFAULT_TRACE, MixtureSpec};
use kvsim::trace::synthetic::SyntheticTrace;
use kvsim::trace::{RowBlock, SelfAttention, Source, formats};
use std::ffi::OsStr;
use std::sync::Mutex;

/// The canonical trace.
pub fn canonical() -> SyntheticTrace {
    SyntheticTrace::new(MixtureSpec::built_in(DEFAULT_TRACE).expect("it is built in"))
}

/// Opens a trace with nothing said that its file does not say.
#[track_caller]
pub fn open(path: impl AsRef<OsStr>) -> Box<dyn Source> {
    formats::open(path.as_ref(), &ReadOptions::default()).expect("a sound trace")
}

/// A trace of one stream.
pub fn trace(kind: SelfAttention, rows: &Rows) -> MemoryTrace {
    MemoryTrace::new("made by a test", kind).with_stream(0, "0", rows.clone()).expect("rows of the right length")
}

/// Rows that all hold attention.
pub fn rows_of(weights: &[&[f32]]) -> Rows {
    weights.iter().map(|row| Some(row.to_vec())).collect()
}

/// Parameters as on the command line, with whole numbers.
pub type Parameters = &'static [(&'static str, usize)];

/// A lane, its parameters spelled as on the command line.
#[track_caller]
pub fn lane(policy: &str, budget: usize, parameters: &[(&str, usize)]) -> LanePlan {
    let mut lane = LanePlan::new(find(policy).expect("the policy is in the table"), budget);
    for (name, value) in parameters {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == *name).expect("a parameter");
        assert!(lane.entry.takes(parameter), "{policy} has no {name}");
        lane.values.set(parameter, parameter.parse(&value.to_string()).expect("a possible value"));
    }
    lane
}

/// The tallies of every stream (outer) and lane (inner).
#[track_caller]
pub fn tallies(source: &dyn Source, lanes: &[LanePlan], options: &Options) -> Vec<Vec<Tally>> {
    let caches = caches_of(source.info()).expect("sound metadata");
    let outcomes = replay(source, &caches, lanes, options, &NoObserver).expect("a sound replay");
    match caches.len() {
        1 => vec![of_one_cache(outcomes)],
        _ => outcomes.into_iter().map(|outcome| outcome.tallies).collect(),
    }
}

/// The tallies of every lane on a single cache, or on its layer, which is the same.
#[track_caller]
pub fn of_one_cache(outcomes: Vec<Outcome>) -> Vec<Tally> {
    assert_eq!(outcomes.iter().filter(|outcome| outcome.cache.layer_set.is_none()).count(), 1, "one cache");
    let lanes = outcomes[0].tallies.len();
    let of_lane = |lane: usize| {
        let mut tally = Tally::default();
        outcomes.iter().for_each(|outcome| tally.merge(&outcome.tallies[lane]));
        tally
    };
    (0..lanes).map(of_lane).collect()
}

/// The tallies of a trace with one stream.
#[track_caller]
pub fn tallies_of_one(source: &dyn Source, lanes: &[LanePlan]) -> Vec<Tally> {
    tallies(source, lanes, &Options::default()).remove(0)
}

/// Retained mass and heavy-hitter recall; no number where it was not counted.
pub fn mass_and_recall(tally: &Tally) -> [f64; 2] {
    ["retained_mass", "heavy_recall"].map(|name| tally.figure(name).unwrap_or(f64::NAN))
}

/// Records what each lane of a single stream did in every step.
#[derive(Default)]
pub struct StepLog(Mutex<Vec<Vec<StepRecord>>>);

impl StepLog {
    /// The records of every lane.
    pub fn records(self) -> Vec<Vec<StepRecord>> {
        self.0.into_inner().expect("no thread panicked")
    }
}

impl Observer for StepLog {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS
    }

    fn steps(&self, _cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let mut log = self.0.lock().expect("no thread panicked");
        log.resize_with(records.len(), Vec::new);
        log.iter_mut().zip(records).for_each(|(log, records)| log.extend_from_slice(records));
        Ok(())
    }
}

/// Tallies and step records of every lane on the first stream of a trace.
#[track_caller]
pub fn logged(source: &dyn Source, lanes: &[LanePlan], options: &Options) -> Vec<(Tally, Vec<StepRecord>)> {
    let cache = caches_of(source.info()).expect("sound metadata").remove(0);
    let log = StepLog::default();
    let outcomes = replay(source, &[cache], lanes, options, &log).expect("a sound replay");
    of_one_cache(outcomes).into_iter().zip(log.records()).collect()
}

/// The victims of each step.
pub fn victims(records: &[StepRecord]) -> Vec<Vec<u32>> {
    records.iter().map(|record| record.victims.iter().map(|position| position.0).collect()).collect()
}

/// The positions held after the last step.
pub fn kept_at_the_end(records: &[StepRecord]) -> Vec<u32> {
    let gone: Vec<u32> = victims(records).concat();
    let last = records.last().map_or(0, |record| record.step.0);
    (0..=last).filter(|position| !gone.contains(position)).collect()
}

/// All rows of a stream.
#[track_caller]
pub fn read_rows(source: &dyn Source, stream: usize) -> Rows {
    let (mut block, mut rows) = (RowBlock::default(), Rows::new());
    let mut reader = source.open(stream).expect("the stream opens");
    while reader.read(&mut block, 64).expect("the stream is sound") > 0 {
        rows.extend(block.rows().map(|row| (!row.weights.is_empty()).then(|| row.weights.to_vec())));
        block.clear();
    }
    rows
}
