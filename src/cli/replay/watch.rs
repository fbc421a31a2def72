//! What happens during a replay, passed on to the progress bar, the timing and the step report.

use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::timing::Timing;
use kvsim::error::Error;
use kvsim::experiment::{Job, Work};
use kvsim::needs::Needs;
use kvsim::replay::{CachePlan, Observer, Stage, StepRecord};
use kvsim::report::steps::StepWriter;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// Tells the progress bar and the step report what happens.
pub struct Watcher<'a> {
    pub progress: &'a Progress,
    pub work: &'a Work,
    pub timing: &'a Timing,
    pub job: &'a Job,
    pub steps: Option<&'a Mutex<StepWriter<Output>>>,
}

impl Observer for Watcher<'_> {
    fn timed(&self, stage: Stage, time: Duration) {
        self.timing.add(stage, time);
    }

    fn planned(&self, evictions: u64) {
        self.progress.add(0, evictions);
    }

    fn rows(&self, rows: u64, weights: u64) {
        self.progress.add(1, self.work.of_rows(rows, weights));
    }

    fn needs(&self) -> Needs {
        if self.steps.is_some() { Needs::STEP_RECORDS } else { Needs::NOTHING }
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> kvsim::error::Result<()> {
        let Some(steps) = self.steps else { return Ok(()) };
        let mut writer = steps.lock().expect("no thread panicked");
        let trace = &self.job.trace.info().name;
        writer.write(trace, cache, &self.job.lanes, records).map_err(|error| Error::io(Path::new("step report"), error))
    }
}
