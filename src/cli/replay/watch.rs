//! What happens during a replay, passed on to the progress bar, the timing and the step report.

use super::job::Job;
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::timing::Timing;
use kvsim::error::Error;
use kvsim::needs::Needs;
use kvsim::replay::{CachePlan, ExcessMass, Observer, Stage, StepRecord};
use kvsim::report::steps::StepWriter;
use std::sync::Mutex;
use std::time::Duration;

/// Tells the progress bar and the step report what happens.
pub struct Watcher<'a> {
    pub progress: &'a Progress,
    pub timing: &'a Timing,
    pub job: &'a Job,
    /// What was seen of rows that hold more than all attention, stream by stream.
    pub excess: Mutex<Vec<ExcessMass>>,
    pub steps: Option<&'a Mutex<StepWriter<Output>>>,
}

impl Watcher<'_> {
    /// One warning for all streams, unless the source has watched its rows itself.
    pub fn warnings(self) -> Vec<String> {
        let info = self.job.source.info();
        let warnings = self.job.source.warnings();
        let mut excess = self.excess.into_inner().expect("no thread panicked");
        excess.sort_by(|a, b| b.most.1.total_cmp(&a.most.1).then(a.stream.cmp(&b.stream)));
        let Some(worst) = excess.first().filter(|_| warnings.is_empty()) else { return warnings };
        let (rows, streams) = (excess.iter().map(|excess| excess.rows).sum::<u64>(), excess.len());
        let (label, (step, total)) = (&info.streams[worst.stream].label, worst.most);
        vec![format!(
            "{rows} row sums of {streams} streams exceed 1 by more than rounding explains, row {step} of stream {label} \
             most: {total:.6} (--normalize rows divides each row by its sum)"
        )]
    }
}

impl Observer for Watcher<'_> {
    fn timed(&self, stage: Stage, time: Duration) {
        self.timing.add(stage, time);
    }

    fn rows(&self, rows: u64) {
        self.progress.add(rows);
    }

    fn excess_mass(&self, excess: &ExcessMass) {
        self.excess.lock().expect("no thread panicked").push(*excess);
    }

    fn needs(&self) -> Needs {
        if self.steps.is_some() { Needs::STEP_RECORDS } else { Needs::NOTHING }
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> kvsim::error::Result<()> {
        let Some(steps) = self.steps else { return Ok(()) };
        let mut writer = steps.lock().expect("no thread panicked");
        let trace = &self.job.source.info().name;
        writer
            .write(trace, cache, &self.job.lanes, records)
            .map_err(|error| Error::data("step report", format!("cannot be written: {error}")))
    }
}
