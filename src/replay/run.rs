//! The run: source to rows to lanes to tallies, over all caches and on all cores.
//!
//! A block of rows is read once and feeds every lane; the next block is read meanwhile. A trace of
//! many caches is shared out cache by cache, one of few lane by lane. Results never depend on how
//! the work was shared out.

use super::block::{Feed, Inspector, StepBlock};
use super::lane::{Lane, StepRecord};
use super::plan::{CachePlan, LanePlan};
use super::tally::Tally;
use crate::error::{Error, Result};
use crate::trace::Source;
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// What policies are shown of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum ViewKind {
    /// The kept weights as recorded; they sum to less than one by what was lost.
    #[default]
    Raw,
    /// The kept weights divided by their sum, as a softmax over a compressed cache shows them.
    Renormalized,
}

impl ViewKind {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            ViewKind::Raw => "raw",
            ViewKind::Renormalized => "renormalized",
        }
    }
}

/// What to do with a row that holds a negative weight or no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum BadRows {
    /// Stop, naming the place.
    #[default]
    Error,
    /// Treat it as a step without information, and count it.
    Skip,
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
}

/// k of the heavy-hitter recall unless said otherwise.
pub const DEFAULT_HEAVY_HITTERS: usize = 32;

impl Default for Options {
    fn default() -> Self {
        Options {
            heavy_hitters: DEFAULT_HEAVY_HITTERS,
            view: ViewKind::default(),
            steps: None,
            bad_rows: BadRows::default(),
            threads: 0,
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

    /// Rows that every lane has seen.
    fn rows(&self, rows: u64) {
        let _ = rows;
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
        lane.check().map_err(|problem| Error::usage(format!("policy {}: {problem}", lane.entry.name)))?;
    }
    let run = Run { source, lanes, options, observer };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let pool = pool.map_err(|error| Error::usage(format!("cannot start {} threads: {error}", options.threads)))?;
    pool.install(|| run.all(caches))
}

struct Run<'a> {
    source: &'a dyn Source,
    lanes: &'a [LanePlan],
    options: &'a Options,
    observer: &'a dyn Observer,
}

impl Run<'_> {
    fn all(&self, caches: &[CachePlan]) -> Result<Vec<Outcome>> {
        if caches.len() >= 2 * rayon::current_num_threads() && !self.observer.wants_steps() {
            caches.par_iter().map(|cache| self.one(cache, false)).collect()
        } else {
            caches.iter().map(|cache| self.one(cache, true)).collect()
        }
    }

    fn one(&self, cache: &CachePlan, share_lanes: bool) -> Result<Outcome> {
        let source = self.source;
        let kind = source.info().self_attention;
        let mut lanes: Vec<Lane> =
            self.lanes.iter().map(|plan| Lane::new(plan, cache, kind, self.options.view)).collect();
        let steps = self.options.steps.unwrap_or(usize::MAX);
        let mut feed = Feed::open(source, cache, steps)?;
        let mut inspector = Inspector::new(source, cache, self.options.heavy_hitters, self.options.bad_rows);
        let (mut block, mut ahead) = (StepBlock::default(), StepBlock::default());
        let mut fill = |block: &mut StepBlock| self.time(Stage::Read, || feed.fill(block));
        fill(&mut block)?;
        while block.len() > 0 {
            let mut work = || {
                self.time(Stage::Select, || inspector.inspect(&mut block))?;
                self.time(Stage::Lanes, || self.block(cache, &block, &mut lanes, share_lanes))
            };
            if share_lanes {
                let (read, worked) = rayon::join(|| fill(&mut ahead), work);
                worked.and(read)?;
                std::mem::swap(&mut block, &mut ahead);
            } else {
                work()?;
                fill(&mut block)?;
            }
        }
        let tallies = lanes.into_iter().map(Lane::finish).collect();
        Ok(Outcome { cache: cache.clone(), tallies })
    }

    fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.observer.timed(stage, started.elapsed());
        result
    }

    fn block(&self, cache: &CachePlan, block: &StepBlock, lanes: &mut [Lane], share: bool) -> Result<()> {
        if self.observer.wants_steps() {
            let mut records = vec![Vec::new(); lanes.len()];
            lanes.iter_mut().zip(&mut records).try_for_each(|(lane, log)| lane.run(block, Some(log)))?;
            self.observer.steps(cache, &records)?;
        } else if share && lanes.len() > 1 {
            let results: Vec<Result<()>> = lanes.par_iter_mut().map(|lane| lane.run(block, None)).collect();
            results.into_iter().collect::<Result<()>>()?;
        } else {
            lanes.iter_mut().try_for_each(|lane| lane.run(block, None))?;
        }
        self.observer.rows(block.len() as u64 * block.heads() as u64);
        Ok(())
    }
}
