//! Where two lanes part, why, how far they drift, and what it costs.
//!
//! Both lanes are replayed side by side, be they policies or decisions that were made elsewhere; what they do is
//! compared as it comes, so that nothing is held but the two kept sets. Two files can be compared without a trace,
//! by positions and steps alone.

use super::overlap::{Overlap, Overlapping};
use super::read::{Decisions, Evictions};
use super::why::{Protection, Told, Why, why};
use crate::error::{Error, Result};
use crate::meter::Tally;
use crate::needs::Needs;
use crate::position::Position;
use crate::replay::{CachePlan, LanePlan, Observer, Options, StepRecord, replay};
use crate::trace::{Source, StreamLabel};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What two lanes do otherwise.
#[derive(Debug)]
pub struct Diff {
    /// One entry for each cache, in the order of the trace, or of the first file.
    pub caches: Vec<CacheDiff>,
    /// For each step after the first eviction of a cache, the sum of the [overlaps](Overlap) of all caches, and
    /// their number.
    pub curve: BTreeMap<Position, (f64, u64)>,
    /// What each lane came to over all caches, where there was a trace to measure it on.
    pub tallies: Option<[Tally; 2]>,
}

/// What two lanes do otherwise to one cache.
#[derive(Clone, Debug)]
pub struct CacheDiff {
    /// The cache.
    pub cache: StreamLabel,
    /// Where they part; `None` where they never do.
    pub parting: Option<Parting>,
    /// How far they drift.
    pub overlap: Overlap,
}

/// The first step at which two lanes evict otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Parting {
    /// The step.
    pub step: Position,
    /// What each lane evicts and the other does not, ascending.
    pub only: [Vec<Position>; 2],
    /// Why.
    pub why: Why,
}

/// Replays two lanes and compares what they do.
///
/// # Errors
/// As [`replay`].
pub fn of_lanes(source: &dyn Source, caches: &[CachePlan], lanes: [LanePlan; 2], options: &Options) -> Result<Diff> {
    if lanes[0].keeping.scope != lanes[1].keeping.scope {
        return Err(Error::usage("one keeps a set for each KV head, the other for each layer: nothing to compare by"));
    }
    let comparer = Comparer {
        first: source.info().first_position,
        protection: [0, 1].map(|side| Protection::of(&lanes[side])),
        state: Mutex::default(),
    };
    let outcomes = replay(source, caches, &lanes, options, &comparer)?;
    let total = |side: usize| {
        let mut tallies = outcomes.iter().map(|outcome| &outcome.tallies[side]).filter(|tally| !tally.is_empty());
        let first = tallies.next().cloned().unwrap_or_else(|| Tally::of_no_cache(&options.meters));
        tallies.fold(first, |mut sum, tally| {
            sum.merge(tally);
            sum
        })
    };
    let diff = comparer.finish(lanes[0].sets_on(caches).iter().map(|cache| &cache.label));
    Ok(Diff { tallies: Some([total(0), total(1)]), ..diff })
}

/// Compares two files by what they say, without a trace: a lane of each.
///
/// # Errors
/// When they are not about the same caches.
pub fn of_files(files: [(&Decisions, usize); 2]) -> Result<Diff> {
    let [one, other] = files.map(|(file, lane)| by_cache(file, lane));
    if let Some(missing) = one.keys().find(|label| !other.contains_key(*label)) {
        let problem = format!("it says nothing of cache {missing}, which {} has", files[0].0.name);
        return Err(Error::data(&files[1].0.name, problem));
    }
    let mut state = State::default();
    for (label, evictions) in &one {
        let records = [*evictions, other[label]].map(|evictions| records(evictions, files.map(|(file, _)| file)));
        state.begin(label, || Overlapping::new(first_step(files[0].0), None));
        let [ours, theirs] = &records;
        ours.iter().zip(theirs).for_each(|(a, b)| state.step(label, [a, b], [Protection::default(); 2]));
    }
    Ok(state.finish(files[0].0.header.caches.iter()))
}

fn by_cache(file: &Decisions, lane: usize) -> BTreeMap<&StreamLabel, &Evictions> {
    file.header.caches.iter().zip(&file.left[lane]).collect()
}

fn first_step(file: &Decisions) -> Position {
    let first = file.header.self_attention.first_step();
    file.header.first_position.map_or(first, |late| Position(late).max(first))
}

/// What a file says as the steps of a replay: as many as either file is about.
fn records(evictions: &Evictions, files: [&Decisions; 2]) -> Vec<StepRecord> {
    let last = |file: &Decisions| {
        let steps = file.left.iter().flatten().flatten().map(|(_, step)| step.0 + 1);
        steps.max().unwrap_or(0).max(file.header.seq_len.unwrap_or(0) as u32)
    };
    let end = files.map(last).into_iter().max().unwrap_or(0);
    let mut rest = &evictions[..];
    let mut record = |step: u32| {
        let (now, later) = rest.split_at(rest.partition_point(|(_, left)| left.0 <= step));
        rest = later;
        let victims = now.iter().map(|(position, _)| *position).collect();
        StepRecord { step: Position(step), kept: 0, measured: None, victims, judged: Vec::new() }
    };
    (first_step(files[0]).0..end).map(&mut record).collect()
}

/// Compares the lanes of a replay as it runs.
struct Comparer {
    first: Position,
    protection: [Protection; 2],
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    caches: BTreeMap<StreamLabel, Tracked>,
    curve: BTreeMap<Position, (f64, u64)>,
}

/// One cache on its way.
struct Tracked {
    parting: Option<Parting>,
    overlapping: Overlapping,
}

impl Comparer {
    fn finish<'a>(self, caches: impl Iterator<Item = &'a StreamLabel>) -> Diff {
        self.state.into_inner().expect("no thread panicked").finish(caches)
    }
}

impl Observer for Comparer {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS.and(Needs::SCORES)
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let mut state = self.state.lock().expect("no thread panicked");
        state.begin(&cache.label, || Overlapping::new(self.first, cache.window));
        records[0].iter().zip(&records[1]).for_each(|(a, b)| state.step(&cache.label, [a, b], self.protection));
        Ok(())
    }
}

impl State {
    fn begin(&mut self, cache: &StreamLabel, new: impl FnOnce() -> Overlapping) {
        if !self.caches.contains_key(cache) {
            self.caches.insert(cache.clone(), Tracked { parting: None, overlapping: new() });
        }
    }

    fn step(&mut self, cache: &StreamLabel, sides: [&StepRecord; 2], protection: [Protection; 2]) {
        let tracked = self.caches.get_mut(cache).expect("the cache has begun");
        if tracked.parting.is_none() && sides[0].victims != sides[1].victims {
            tracked.parting = Some(tracked.part(sides, protection));
        }
        if let Some(overlap) = tracked.overlapping.step(sides) {
            let (sum, caches) = self.curve.entry(sides[0].step).or_default();
            *sum += overlap;
            *caches += 1;
        }
    }

    fn finish<'a>(mut self, caches: impl Iterator<Item = &'a StreamLabel>) -> Diff {
        let without_rows = || Tracked { parting: None, overlapping: Overlapping::new(Position(0), None) };
        let mut diff = |cache: &StreamLabel| {
            let Tracked { parting, overlapping } = self.caches.remove(cache).unwrap_or_else(without_rows);
            CacheDiff { cache: cache.clone(), parting, overlap: overlapping.finish() }
        };
        let caches = caches.map(&mut diff).collect();
        Diff { caches, curve: self.curve, tallies: None }
    }
}

impl Tracked {
    fn part(&self, sides: [&StepRecord; 2], protection: [Protection; 2]) -> Parting {
        let only = [(0, 1), (1, 0)].map(|(own, other): (usize, usize)| {
            let shared = |position: &Position| sides[other].victims.contains(position);
            sides[own].victims.iter().copied().filter(|position| !shared(position)).collect::<Vec<Position>>()
        });
        let held = self.overlapping.held_before(sides[0].step);
        let told = [0, 1].map(|side| Told {
            judged: &sides[side].judged,
            only: &only[side],
            evicted: sides[side].victims.len(),
            protection: protection[side],
        });
        let why = why(&held, told);
        Parting { step: sides[0].step, only, why }
    }
}
