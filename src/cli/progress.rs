//! The progress bar: on standard error, on a terminal only, and only for work that lasts.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts rows and shows them once the work has lasted a second.
pub struct Progress {
    total: u64,
    done: AtomicU64,
    started: Instant,
    bar: OnceLock<ProgressBar>,
    hidden: bool,
}

impl Progress {
    /// Work of `total` rows; `quiet` never shows a bar.
    pub fn new(total: u64, quiet: bool) -> Progress {
        Progress { total, done: AtomicU64::new(0), started: Instant::now(), bar: OnceLock::new(), hidden: quiet }
    }

    /// More rows are done.
    pub fn add(&self, rows: u64) {
        let done = self.done.fetch_add(rows, Relaxed) + rows;
        if self.hidden || (self.bar.get().is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        self.bar.get_or_init(|| self.start_bar()).set_position(done);
    }

    fn start_bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr_with_hz(5));
        let style = "{bar:30} {human_pos}/{human_len} rows  {per_sec}  {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is sound"));
        bar.with_elapsed(self.started.elapsed())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
