//! The threads that work is spread over. Results never depend on how many there are.

use crate::error::{Error, Result};

/// Has the whole program use so many threads, 0 for one for each core, wherever no number is asked for.
///
/// Counts once, before anything is spread over threads; later calls change nothing.
///
/// # Errors
/// When the threads cannot be started.
pub fn use_threads(threads: usize) -> Result<()> {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        Err(error) if std::error::Error::source(&error).is_some() => Err(not_started(threads, &error)),
        _ => Ok(()),
    }
}

/// Does some work on so many threads: on those of the program for 0, or where it is done already on as many.
///
/// # Errors
/// When the threads cannot be started.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    if threads == 0 || (rayon::current_thread_index().is_some() && rayon::current_num_threads() == threads) {
        return Ok(rayon::scope(|_| work()));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(|pool| pool.install(work)).map_err(|error| not_started(threads, &error))
}

fn not_started(threads: usize, error: &rayon::ThreadPoolBuildError) -> Error {
    Error::usage(format!("cannot start {threads} threads: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_on_as_many_threads_as_asked_and_on_those_that_are_there() {
        let there = || (rayon::current_num_threads(), rayon::current_thread_index().is_some());
        assert_eq!(on_threads(3, there).expect("three threads"), (3, true));
        let inside = on_threads(2, || {
            let here = std::thread::current().id();
            on_threads(2, || std::thread::current().id() == here).expect("no new thread")
        });
        assert!(inside.expect("two threads"), "a pool of that size is used as it is");
        assert!(on_threads(0, there).expect("the program's threads").1);
    }
}
