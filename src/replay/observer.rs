//! What a replay reports to while it runs.

use super::caches::CachePlan;
use crate::error::Result;
use crate::meter::Tally;
use crate::needs::Needs;
use crate::position::Position;
use std::time::Duration;

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

/// What a lane did in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Position of the token that attended.
    pub step: Position,
    /// Positions held after eviction.
    pub kept: usize,
    /// What the [meters of steps](crate::meter::MeterEntry::by_step) counted of this step alone, over
    /// all its query heads; `None` where it was not measured.
    pub measured: Option<Tally>,
    /// Positions evicted after the row, ascending.
    pub victims: Vec<Position>,
    /// Each position held before the eviction, with what the policy [judged it
    /// by](crate::policy::Policy::probe); empty where nothing was evicted, or [`Needs::SCORES`] is not asked for.
    pub judged: Vec<(Position, Option<f64>)>,
}

/// Is told what happens while a replay runs.
pub trait Observer: Sync {
    /// What it needs: [`Needs::STEP_RECORDS`] has [`Observer::steps`] called, which costs time;
    /// [`Needs::SCORES`] beside it has the records say what positions were judged by.
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }

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

    /// What each lane (outer) did in each step (inner) of a batch, in step order.
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
