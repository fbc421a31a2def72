//! The run: source to rows to lanes to tallies, over all caches and on all cores.
//!
//! A block of rows is read once and feeds every lane; the next block is read meanwhile. A trace of
//! many groups of caches is shared out group by group, one of few lane by lane. Results never depend on how
//! the work was shared out.

use super::block::ExcessMass;
use super::group::{Group, groups_of};
use super::lane::StepRecord;
use super::layer_budgets::LayerBudgets;
use super::parallel::in_parallel;
use super::plan::{CachePlan, LanePlan};
use super::planning::{check_memory, plan_ahead};
use super::tally::Tally;
use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::Source;
use crate::word::Word;
use std::time::{Duration, Instant};

/// What policies are shown of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ViewKind {
    /// The kept weights as recorded; they sum to less than one by what was lost.
    #[default]
    Raw,
    /// The kept weights divided by their sum, as a softmax over a compressed cache shows them.
    Renormalized,
}

impl Word for ViewKind {
    const WORDS: &'static [(ViewKind, &'static str, &'static str)] = &[
        (ViewKind::Raw, "raw", "the kept weights as recorded; they sum to less than one by what was lost"),
        (
            ViewKind::Renormalized,
            "renormalized",
            "the kept weights divided by their sum, as a softmax over a compressed cache shows them",
        ),
    ];
}

/// What to do with a row that holds a negative weight or no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BadRows {
    /// Stop, naming the place.
    #[default]
    Error,
    /// Treat it as a step without information, and count it.
    Skip,
}

impl Word for BadRows {
    const WORDS: &'static [(BadRows, &'static str, &'static str)] = &[
        (BadRows::Error, "error", "stop, naming the place"),
        (BadRows::Skip, "skip", "treat it as a step without information, and count it"),
    ];
}

/// How a replay is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// k of the heavy-hitter recall.
    pub heavy_hitters: usize,
    /// What policies see.
    pub view: ViewKind,
    /// Replay at most this many rows of each stream.
    pub steps: Option<usize>,
    /// What to do with rows that are no attention.
    pub bad_rows: BadRows,
    /// Number of threads; 0 means one for each core.
    pub threads: usize,
    /// How budgets are dealt out to layers.
    pub layer_budgets: LayerBudgets,
    /// Rows before this position belong to a prompt that is observed with nothing evicted and cut
    /// down to the budget at once at its end, as serving engines do; 0: the budget holds from the
    /// first row.
    pub block_prompt: Position,
    /// Most bytes that planning ahead may take, for bounds that know the future.
    pub max_memory: u64,
}

/// k of the heavy-hitter recall unless said otherwise.
pub const DEFAULT_HEAVY_HITTERS: usize = 32;

/// Most bytes for planning ahead unless said otherwise: 4 GiB.
pub const DEFAULT_MAX_MEMORY: u64 = 4 << 30;

impl Default for Options {
    fn default() -> Self {
        Options {
            heavy_hitters: DEFAULT_HEAVY_HITTERS,
            view: ViewKind::default(),
            steps: None,
            bad_rows: BadRows::default(),
            threads: 0,
            layer_budgets: LayerBudgets::default(),
            block_prompt: Position(0),
            max_memory: DEFAULT_MAX_MEMORY,
        }
    }
}

/// A stage of the replay, for timing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Reading and widening, or generating, rows.
    Read,
    /// Finding the facts of rows: totals, heavy hitters, soundness.
    Select,
    /// Running lanes.
    Lanes,
}

/// Is told what happens while a replay runs.
pub trait Observer: Sync {
    /// A stage took this long on some thread; the stages of several threads overlap.
    fn timed(&self, stage: Stage, time: Duration) {
        let _ = (stage, time);
    }

    /// Evictions that a bound which knows the future has planned, before any row is replayed; in all
    /// they are those of [`evictions_planned`](super::evictions_planned).
    fn planned(&self, evictions: u64) {
        let _ = evictions;
    }

    /// Rows that every lane has seen, and the weights in them.
    fn rows(&self, rows: u64, weights: u64) {
        let _ = (rows, weights);
    }

    /// Rows of a stream that has been replayed hold more attention than there is.
    fn excess_mass(&self, excess: &ExcessMass) {
        let _ = excess;
    }

    /// Whether [`Observer::steps`] is to be called; it costs time.
    fn wants_steps(&self) -> bool {
        false
    }

    /// What each lane (outer) did in each step (inner) of a block, in step order.
    ///
    /// # Errors
    /// Whatever it returns stops the replay.
    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let _ = (cache, records);
        Ok(())
    }
}

/// An observer that does not look.
pub struct NoObserver;

impl Observer for NoObserver {}

/// The tallies of one cache, one for each lane in the order asked.
#[derive(Debug)]
pub struct Outcome {
    /// The cache.
    pub cache: CachePlan,
    /// One tally for each lane.
    pub tallies: Vec<Tally>,
}

/// Replays the caches of a trace through the lanes.
///
/// # Errors
/// When a lane is impossible, the trace cannot be read or is no attention, or a policy breaks its
/// contract.
pub fn replay(
    source: &dyn Source,
    caches: &[CachePlan],
    lanes: &[LanePlan],
    options: &Options,
    observer: &dyn Observer,
) -> Result<Vec<Outcome>> {
    for lane in lanes {
        let checked = lane.check_on(caches, &options.layer_budgets);
        let checked = checked.and_then(|()| check_memory(source, caches, lane, options));
        checked.map_err(|problem| Error::usage(format!("policy {}: {problem}", lane.entry.name)))?;
    }
    let run = Run { source, lanes, options, observer };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let pool = pool.map_err(|error| Error::usage(format!("cannot start {} threads: {error}", options.threads)))?;
    pool.install(|| run.all(caches))
}

/// A replay that has been checked.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub source: &'a dyn Source,
    pub lanes: &'a [LanePlan],
    pub options: &'a Options,
    pub observer: &'a dyn Observer,
}

impl Run<'_> {
    fn all(&self, caches: &[CachePlan]) -> Result<Vec<Outcome>> {
        let schedules = plan_ahead(self, caches)?;
        let groups = groups_of(caches, self.lanes);
        let many = groups.len() >= 2 * rayon::current_num_threads() && !self.observer.wants_steps();
        let one = |group: &Vec<usize>| Group::new(self, caches, group, &schedules, !many)?.replay();
        let outcomes: Vec<Vec<Outcome>> =
            if many { in_parallel(&groups, one)? } else { groups.iter().map(one).collect::<Result<_>>()? };
        let mut placed: Vec<(usize, Outcome)> =
            groups.into_iter().flatten().zip(outcomes.into_iter().flatten()).collect();
        placed.sort_by_key(|(index, _)| *index);
        Ok(placed.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Runs a stage and tells the observer how long it took.
    pub(super) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.observer.timed(stage, started.elapsed());
        result
    }
}
