//! What all parts of a running replay share, and what comes out of it.

use super::caches::CachePlan;
use super::lane_plan::LanePlan;
use super::observer::{Observer, Stage};
use super::options::Options;
use crate::keeping::Scope;
use crate::meter::Tally;
use crate::trace::Source;
use std::borrow::Cow;
use std::time::Instant;

/// A replay that has been checked.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub source: &'a dyn Source,
    pub lanes: &'a [LanePlan],
    /// The caches, and the kept sets of layers.
    pub sets: &'a Sets<'a>,
    /// The budget of each lane (outer) on each of its kept sets.
    pub budgets: &'a [Vec<usize>],
    pub options: &'a Options,
    pub observer: &'a dyn Observer,
}

/// The kept sets that lanes may have, by scope.
pub(super) struct Sets<'a> {
    pub caches: &'a [CachePlan],
    pub layers: Cow<'a, [CachePlan]>,
}

impl<'a> Context<'a> {
    /// A kept set of this scope.
    pub(super) fn set(&self, scope: Scope, index: usize) -> &'a CachePlan {
        match scope {
            Scope::Head => &self.sets.caches[index],
            Scope::Layer => &self.sets.layers[index],
        }
    }

    /// Runs a stage and tells the observer how long it took.
    pub(super) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.observer.timed(stage, started.elapsed());
        result
    }
}

/// The tallies of one cache, one for each lane in the order asked; of lanes that keep a set for its layer, or
/// of a layer for the others, they are [empty](Tally::is_empty).
#[derive(Debug)]
pub struct Outcome {
    /// The cache, or all those of a layer where a lane keeps one set for them.
    pub cache: CachePlan,
    /// One tally for each lane.
    pub tallies: Vec<Tally>,
}
