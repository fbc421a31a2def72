//! What all parts of a running replay share, and what comes out of it.

use super::caches::CachePlan;
use super::lane_plan::LanePlan;
use super::observer::{Observer, Stage};
use super::options::Options;
use crate::meter::Tally;
use crate::trace::Source;
use std::time::Instant;

/// A replay that has been checked.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub source: &'a dyn Source,
    pub lanes: &'a [LanePlan],
    /// The budget of each lane (outer) on each cache.
    pub budgets: &'a [Vec<usize>],
    pub options: &'a Options,
    pub observer: &'a dyn Observer,
}

impl Context<'_> {
    /// Runs a stage and tells the observer how long it took.
    pub(super) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.observer.timed(stage, started.elapsed());
        result
    }
}

/// The tallies of one cache, one for each lane in the order asked.
#[derive(Debug)]
pub struct Outcome {
    /// The cache.
    pub cache: CachePlan,
    /// One tally for each lane.
    pub tallies: Vec<Tally>,
}
