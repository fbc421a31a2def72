//! A trace with its lanes: everything about it is checked here, before any row is read.

use super::Experiment;
use super::identity::identity;
use super::lanes::{DEFAULT_BUDGET, Lanes};
use super::open::OpenTrace;
use super::remark::{Listener, Severity, tell};
use super::work::Work;
use crate::error::Result;
use crate::keeping::PromptMode;
use crate::replay::{BadRows, LanePlan, Observer, Options, Outcome, replay};
use crate::report::identity::Identity;
use crate::report::replayed::{Per, Replayed};
use crate::report::results::Results;
use std::ffi::OsStr;

/// A trace, the caches chosen of it, and the lanes that run on them.
pub struct Job {
    /// The trace and its caches.
    pub trace: OpenTrace,
    /// The lanes, in the order of reports.
    pub lanes: Vec<LanePlan>,
    /// How they run.
    pub options: Options,
    /// What is replayed, and how.
    pub identity: Identity,
    /// Whether a budget was named.
    pub budget_named: bool,
}

/// A job that has run.
pub struct Finished {
    /// The job.
    pub job: Job,
    /// One outcome for each cache.
    pub outcomes: Vec<Outcome>,
}

impl Job {
    /// Opens a trace and plans its replay.
    ///
    /// # Errors
    /// When the trace cannot be read, or the experiment is impossible on it.
    pub fn prepare(experiment: &Experiment, trace: &OsStr, listener: &mut Listener<'_>) -> Result<Job> {
        let (trace, options) = experiment.open(trace, listener)?;
        let (info, chosen, request) = (trace.info(), &trace.chosen, &experiment.lanes);
        let keeping = request.keeping.of(info)?;
        let Lanes { possible: lanes, notes, .. } =
            request.checked_lanes(chosen.positions, &chosen.caches, &options.budgets, &keeping)?;
        let modes: Vec<PromptMode> = lanes.iter().map(|lane| lane.keeping.prompt.mode).collect();
        tell(listener, Severity::Note, &info.name, keeping.note(info, &modes));
        tell(listener, Severity::Note, &info.name, notes);
        let (identity, budget_named) = (identity(experiment, &trace, &options), !request.budgets.is_empty());
        let job = Job { trace, lanes, options, identity, budget_named };
        tell(listener, Severity::Warning, &job.trace.info().name, job.nothing_to_measure());
        Ok(job)
    }

    /// Replays the trace.
    ///
    /// # Errors
    /// As [`replay`].
    pub fn replay(&self, observer: &dyn Observer, listener: &mut Listener<'_>) -> Result<Vec<Outcome>> {
        let source = &*self.trace.source;
        let outcomes = replay(source, self.trace.caches(), &self.lanes, &self.options, observer)?;
        let name = &source.info().name;
        tell(listener, Severity::Warning, name, source.warnings());
        tell(listener, Severity::Note, name, self.passed_over(&outcomes));
        tell(listener, Severity::Note, name, self.idle_budget());
        Ok(outcomes)
    }

    /// Rows that will be read.
    pub fn rows(&self) -> u64 {
        self.trace.rows().map(|rows| rows as u64).sum()
    }

    /// How much work the replay is.
    pub fn work(&self) -> Work {
        Work::of(&self.trace, &self.lanes, &self.options)
    }

    /// Says so where the default budget holds the whole trace: few can have meant that.
    fn idle_budget(&self) -> Option<String> {
        let positions = self.trace.chosen.positions;
        let by_default = !self.budget_named && self.lanes.iter().any(|lane| lane.budget.is_some());
        let idle = by_default && positions > 0 && DEFAULT_BUDGET >= positions;
        idle.then(|| {
            format!(
                "the default budget of {DEFAULT_BUDGET} holds all {positions} positions: name one, such as \
                 --budget 10%,25%"
            )
        })
    }

    /// Why every figure will be blank, where that can be told.
    fn nothing_to_measure(&self) -> Option<String> {
        let most = self.trace.rows().max().unwrap_or(0);
        let prompt = self.lanes.iter().map(|lane| lane.keeping.prompt.end()).min()?;
        match most {
            0 => Some("there is no row to replay".to_owned()),
            _ if self.trace.info().first_position.index() + most <= prompt.index() => {
                Some(format!("the prompt of {prompt} positions takes up every row: there is none to measure"))
            }
            _ => None,
        }
    }

    /// How many steps were passed over, where that was asked for.
    fn passed_over(&self, outcomes: &[Outcome]) -> Option<String> {
        let skipped_by = |lane: usize| outcomes.iter().map(|outcome| outcome.tallies[lane].count("skipped_rows")).sum();
        let skipped: u64 = (0..self.lanes.len()).map(skipped_by).max().unwrap_or(0);
        let asked = self.options.bad_rows == BadRows::Skip && skipped > 0;
        asked.then(|| format!("{skipped} steps without usable attention were passed over"))
    }
}

/// The results of several jobs as one.
///
/// # Errors
/// As [`Finished::results`].
pub fn joined(finished: &[Finished], per: Per) -> Result<Results> {
    let mut all = Results::default();
    for finished in finished {
        all.join(finished.results(per)?);
    }
    Ok(all)
}

impl Finished {
    /// What came out, with what it is about: one line for each lane, and for what else is asked for.
    ///
    /// # Errors
    /// When the trace cannot be read once more, for the hash of its content.
    pub fn results(&self, per: Per) -> Result<Results> {
        let content = Some(self.job.trace.source.content_hash()?);
        let identity = &Identity { content, ..self.job.identity.clone() };
        Ok(Replayed { identity, lanes: &self.job.lanes, outcomes: &self.outcomes }.per(per))
    }
}
