//! Turns panics, hangs and large allocations into findings.

use super::check::{Checked, Verdict};
use super::memory;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An execution may take this long: thousands of times what one takes on an idle machine.
const MOST_TIME: Duration = Duration::from_secs(120);

/// An execution may hold this much: inputs have a few kilobytes.
const MOST_MEMORY: usize = 64 << 20;

/// What came of an execution.
pub struct Outcome {
    /// Whether the input was accepted, or what went wrong.
    pub verdict: Result<Verdict, String>,
    /// The most memory held.
    pub memory: usize,
}

/// The execution that is under way.
struct Current {
    execution: u64,
    started: Instant,
    path: PathBuf,
}

/// Watches executions.
pub struct Watch {
    current: Arc<Mutex<Option<Current>>>,
    panicked: Arc<Mutex<Option<String>>>,
}

impl Watch {
    /// Starts to watch for hangs, and keeps panics to itself.
    pub fn start(keep: &Path) -> Watch {
        let current = Arc::new(Mutex::new(None));
        let (seen, keep) = (Arc::downgrade(&current), keep.to_owned());
        std::thread::spawn(move || {
            while let Some(current) = seen.upgrade() {
                stop_if_hanging(&lock(&current), &keep);
                drop(current);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let panicked = Arc::new(Mutex::new(None));
        let said = Arc::clone(&panicked);
        std::panic::set_hook(Box::new(move |panic| *lock(&said) = Some(panic.to_string())));
        Watch { current, panicked }
    }

    /// Runs one execution.
    pub fn run(&self, execution: u64, path: &Path, work: impl FnOnce() -> Checked) -> Outcome {
        *lock(&self.current) = Some(Current { execution, started: Instant::now(), path: path.to_owned() });
        let before = memory::start();
        let result = catch_unwind(AssertUnwindSafe(work));
        let memory = memory::most_since(before);
        *lock(&self.current) = None;
        let verdict = match result {
            Err(_) => Err(format!("panic: {}", lock(&self.panicked).take().unwrap_or_default().replace('\n', " "))),
            Ok(_) if memory > MOST_MEMORY => Err(format!("{} MiB of memory", memory >> 20)),
            Ok(verdict) => verdict,
        };
        Outcome { verdict, memory }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that hangs cannot be stopped: the whole process ends.
fn stop_if_hanging(current: &Option<Current>, keep_in: &Path) {
    if let Some(current) = current.as_ref().filter(|current| current.started.elapsed() > MOST_TIME) {
        let kept = keep(&current.path, keep_in, current.execution);
        eprintln!("execution {} does not end (input: {})", current.execution, kept.display());
        std::process::exit(1);
    }
}

/// Keeps the input of an execution.
pub fn keep(path: &Path, folder: &Path, execution: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kept = folder.join(format!("{execution}-{name}"));
    let copied = std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(path, &kept));
    copied.expect("inputs of findings can be kept");
    kept
}
