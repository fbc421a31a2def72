//! `--timing`: where the time of a replay went, on standard error.

use super::notes::to_stderr;
use kvsim::replay::Stage;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Adds up the time of the stages; those of several threads overlap.
pub struct Timing {
    started: Instant,
    stages: [AtomicU64; 3],
}

const STAGES: [(Stage, &str); 3] = [(Stage::Read, "read"), (Stage::Select, "select"), (Stage::Lanes, "lanes")];

impl Timing {
    pub fn start() -> Timing {
        Timing { started: Instant::now(), stages: Default::default() }
    }

    pub fn add(&self, stage: Stage, time: Duration) {
        self.stages[stage as usize].fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// One line for each stage, summed over threads, then the replay as a whole, on standard error.
    pub fn report(&self, rows: u64, weights: u64, lanes: usize, report: Duration) {
        let say = |text: String| to_stderr(&format!("timing: {text}"));
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        for (stage, name) in STAGES {
            let time = Duration::from_nanos(self.stages[stage as usize].load(Relaxed));
            say(format!("{name:<7} {:>10.3} ms (all threads)", milliseconds(time)));
        }
        let wall = self.started.elapsed() - report;
        let per_second = |count: u64| count as f64 / wall.as_secs_f64();
        say(format!("report  {:>10.3} ms", milliseconds(report)));
        say(format!(
            "replay  {:>10.3} ms for {rows} rows in {lanes} lanes: {:.0} rows/s, {:.2} GB/s of f32 weights",
            milliseconds(wall),
            per_second(rows),
            per_second(4 * weights) / 1e9
        ));
    }
}
