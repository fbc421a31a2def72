//! The progress bar: on standard error, on a terminal only, and only for work that lasts.
//!
//! Work comes in stages. The time left is told from how long each stage has taken so far for what
//! it has done, in units of work that take about the same time each (weights rather than rows, which
//! grow); a stage that has not begun cannot be estimated and is announced by its name.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows the work of some stages once it has lasted a second.
pub struct Progress {
    /// `None` where nothing is to be shown.
    shown: Option<Mutex<Shown>>,
}

struct Shown {
    stages: Stages,
    started: Instant,
    /// When the work of the current stage was last told of.
    told: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work in stages, each with its name and its amount of work; `quiet` never shows a bar.
    pub fn new(stages: &[(&'static str, u64)], quiet: bool) -> Progress {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let now = Instant::now();
        let shown = || Mutex::new(Shown { stages: Stages::new(stages), started: now, told: now, bar: None });
        Progress { shown: (!hidden).then(shown) }
    }

    /// More work of a stage is done.
    pub fn add(&self, stage: usize, work: u64) {
        let Some(shown) = &self.shown else { return };
        shown.lock().expect("no thread panicked").add(stage, work);
    }
}

impl Shown {
    fn add(&mut self, stage: usize, work: u64) {
        let now = Instant::now();
        self.stages.add(stage, work, now - self.told);
        self.told = now;
        if self.bar.is_none() && now - self.started < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(start_bar);
        let (done, total) = self.stages.of(stage);
        bar.set_length(total);
        bar.set_prefix(self.stages.name(stage));
        bar.set_position(done);
        bar.set_message(self.stages.left());
    }
}

fn start_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    let style = "{prefix} {bar:30} {percent:>3}%  {msg}";
    bar.with_style(ProgressStyle::with_template(style).expect("the template is sound"))
}

impl Drop for Progress {
    fn drop(&mut self) {
        let bar = self.shown.as_ref().and_then(|shown| shown.lock().ok()).and_then(|mut shown| shown.bar.take());
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }
}

/// The stages of some work, and how long each has taken.
struct Stages(Vec<Stage>);

struct Stage {
    name: &'static str,
    done: u64,
    total: u64,
    busy: Duration,
}

impl Stages {
    fn new(stages: &[(&'static str, u64)]) -> Stages {
        Stages(
            stages.iter().map(|(name, total)| Stage { name, done: 0, total: *total, busy: Duration::ZERO }).collect(),
        )
    }

    /// Work that was done in the time since something was told last.
    fn add(&mut self, stage: usize, work: u64, took: Duration) {
        let stage = &mut self.0[stage];
        stage.done = (stage.done + work).min(stage.total);
        stage.busy += took;
    }

    fn name(&self, stage: usize) -> &'static str {
        self.0[stage].name
    }

    /// Work done, and work in all.
    fn of(&self, stage: usize) -> (u64, u64) {
        (self.0[stage].done, self.0[stage].total)
    }

    /// How long the stages that have begun will still take, and which are to come.
    fn left(&self) -> String {
        let mut begun = self.0.iter().filter(|stage| stage.done > 0);
        let left: Option<Duration> = begun.try_fold(Duration::ZERO, |sum, stage| Some(sum + stage.left()?));
        let Some(left) = left else { return "time left not known yet".to_owned() };
        let to_come = self.0.iter().filter(|stage| stage.done == 0 && stage.total > 0);
        let to_come: String = to_come.map(|stage| format!(", then {}", stage.name)).collect();
        format!("{} left{to_come}", HumanDuration(left))
    }
}

/// A stage tells nothing of itself until one part in so many is done: what it does first may be unlike the
/// rest.
const TELLING: u64 = 50;

impl Stage {
    /// How long the stage will still take; `None` while too little of it is done to tell.
    fn left(&self) -> Option<Duration> {
        let left = (self.total - self.done) as f64 / self.done as f64;
        (self.done >= self.total / TELLING).then(|| self.busy.mul_f64(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_work_left_in_every_stage_that_has_begun() {
        let mut stages = Stages::new(&[("planning", 100), ("replay", 4000)]);
        stages.add(0, 10, Duration::from_secs(2));
        assert_eq!(stages.left(), "18 seconds left, then replay");
        stages.add(0, 40, Duration::from_secs(8));
        assert_eq!(stages.left(), "10 seconds left, then replay", "half is planned");
        stages.add(1, 1000, Duration::from_secs(10));
        assert_eq!(stages.left(), "40 seconds left", "10 of planning, 30 of replay");
        stages.add(0, 60, Duration::from_secs(1));
        assert_eq!((stages.left(), stages.of(0)), ("30 seconds left".to_owned(), (100, 100)), "never beyond the whole");
    }

    #[test]
    fn too_little_work_tells_nothing() {
        let mut stages = Stages::new(&[("planning", 1000), ("replay", 10)]);
        stages.add(0, 1, Duration::from_secs(30));
        assert_eq!(stages.left(), "time left not known yet", "the trace had to be read first");
        stages.add(0, 99, Duration::from_secs(10));
        assert_eq!(stages.left(), "6 minutes left, then replay");
    }

    #[test]
    fn a_stage_without_work_is_not_announced() {
        let mut stages = Stages::new(&[("planning", 0), ("replay", 10)]);
        stages.add(1, 5, Duration::from_secs(5));
        assert_eq!(stages.left(), "5 seconds left");
    }
}
