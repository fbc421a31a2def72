//! Experiments: traces x caches x policies x parameters x budgets x ways to keep a cache, described in plain values, checked
//! before any row is read, run, and handed back as results.
//!
//! An [`Experiment`] says what is wanted; a [`Job`] is one trace of it with the lanes that run there;
//! a [`Finished`] job holds what came out. What a user should know on the way is told as
//! [`Remark`]s. Stands above the replay and the report; knows no command line. The example
//! `examples/sweep.rs` is a whole program.

pub mod budget;
pub mod budget_shape;
pub mod caches;
mod identity;
pub mod job;
pub mod keeping;
pub mod lanes;
pub mod list;
pub mod open;
pub mod refusals;
pub mod remark;
pub mod work;

pub use budget::Budget;
pub use budget_shape::BudgetShape;
pub use caches::{ChosenCaches, KvHeads, Selection};
pub use job::{Finished, Job, joined};
pub use keeping::KeepingRequest;
pub use lanes::{DEFAULT_BUDGET, LaneRequest, Lanes};
pub use open::OpenTrace;
pub use remark::{Listener, Remark, Severity};
pub use work::Work;

use crate::error::{Error, Result};
use crate::replay::{Observer, Options};
use crate::trace::options::ReadOptions;
use crate::trace::spec::DEFAULT_TRACE;
use std::ffi::{OsStr, OsString};

/// A description of what is replayed. The default is what `kvsim replay` does without arguments.
#[derive(Clone, Default)]
pub struct Experiment {
    /// Trace files, built-in names, or `-` for standard input; none: the built-in trace.
    pub traces: Vec<OsString>,
    /// How they are read, where they do not say it.
    pub read: ReadOptions,
    /// Which streams are replayed, and as which caches.
    pub streams: Selection,
    /// Policies, budgets and parameter values.
    pub lanes: LaneRequest,
    /// How budgets are dealt out to caches.
    pub shape: BudgetShape,
    /// How it is run. How budgets are dealt out is filled in for each trace.
    pub options: Options,
}

impl Experiment {
    /// Opens every trace and plans its replay.
    ///
    /// # Errors
    /// When a trace cannot be read, or the experiment is impossible on it.
    pub fn jobs(&self, listener: &mut Listener<'_>) -> Result<Vec<Job>> {
        self.lanes.check()?;
        let default = [OsString::from(DEFAULT_TRACE)];
        let traces = if self.traces.is_empty() { &default[..] } else { &self.traces };
        traces.iter().map(|trace| Job::prepare(self, trace, listener)).collect()
    }

    /// Opens a trace, and says how a replay of it runs: how budgets are dealt out.
    ///
    /// # Errors
    /// When the trace cannot be read, or the experiment is impossible on it.
    pub fn open(&self, trace: &OsStr, listener: &mut Listener<'_>) -> Result<(OpenTrace, Options)> {
        let trace = OpenTrace::open(trace, &self.read, &self.streams, self.options.steps, listener)?;
        let info = trace.info();
        let budgets = self.shape.budgets.of_layers(|layer| trace.chosen.facts.owns_cache(layer));
        let budgets = budgets.map_err(|problem| Error::usage(format!("{}: {problem}", info.name)))?;
        let options = Options { budgets, ..self.options.clone() };
        Ok((trace, options))
    }

    /// Replays every trace, in order.
    ///
    /// # Errors
    /// As [`Experiment::jobs`] and [`Job::replay`].
    pub fn run(&self, observer: &dyn Observer, listener: &mut Listener<'_>) -> Result<Vec<Finished>> {
        let jobs = self.jobs(listener)?.into_iter();
        jobs.map(|job| Ok(Finished { outcomes: job.replay(observer, listener)?, job })).collect()
    }
}
