//! Watches a replay for rows that hold more attention than there is, and passes everything on.

use crate::error::Result;
use crate::needs::Needs;
use crate::replay::{CachePlan, ExcessMass, Observer, Stage, StepRecord};
use crate::trace::Source;
use std::sync::Mutex;
use std::time::Duration;

/// An observer in front of another.
pub(super) struct Excess<'a> {
    observer: &'a dyn Observer,
    /// What was seen of rows that hold more than all attention, stream by stream.
    seen: Mutex<Vec<ExcessMass>>,
}

impl<'a> Excess<'a> {
    pub(super) fn new(observer: &'a dyn Observer) -> Excess<'a> {
        Excess { observer, seen: Mutex::default() }
    }

    /// One warning for all streams, unless the source has watched its rows itself.
    pub(super) fn warnings(self, source: &dyn Source) -> Vec<String> {
        let warnings = source.warnings();
        let mut excess = self.seen.into_inner().expect("no thread panicked");
        excess.sort_by(|a, b| b.most.1.total_cmp(&a.most.1).then(a.stream.cmp(&b.stream)));
        let Some(worst) = excess.first().filter(|_| warnings.is_empty()) else { return warnings };
        let (rows, streams) = (excess.iter().map(|excess| excess.rows).sum::<u64>(), excess.len());
        let (label, (step, total)) = (&source.info().streams[worst.stream].label, worst.most);
        vec![format!(
            "{rows} row sums of {streams} streams exceed 1 by more than rounding explains, row {step} of stream {label} \
             most: {total:.6} (--normalize rows divides each row by its sum)"
        )]
    }
}

impl Observer for Excess<'_> {
    fn timed(&self, stage: Stage, time: Duration) {
        self.observer.timed(stage, time);
    }

    fn planned(&self, evictions: u64) {
        self.observer.planned(evictions);
    }

    fn rows(&self, rows: u64, weights: u64) {
        self.observer.rows(rows, weights);
    }

    fn excess_mass(&self, excess: &ExcessMass) {
        self.seen.lock().expect("no thread panicked").push(*excess);
        self.observer.excess_mass(excess);
    }

    fn needs(&self) -> Needs {
        self.observer.needs()
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        self.observer.steps(cache, records)
    }
}
