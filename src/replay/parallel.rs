//! Work on all cores whose outcome does not depend on who came first, not even when it fails.

use crate::error::Result;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does the work for every item, and returns the results in order.
///
/// # Errors
/// The first failure in the order of items, whichever happened first.
pub(super) fn in_parallel<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> Result<T> + Sync) -> Result<Vec<T>> {
    let first_failed = AtomicUsize::new(usize::MAX);
    let work_unless_failed = |(index, item): (usize, &I)| {
        if index > first_failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = work(item);
        if result.is_err() {
            first_failed.fetch_min(index, Ordering::Relaxed);
        }
        Some(result)
    };
    let results: Vec<Option<Result<T>>> = items.par_iter().enumerate().map(work_unless_failed).collect();
    // What was not done comes after a failure.
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_first_failure_in_order_is_told_whichever_happens_first() {
        let work = |item: &u64| match item % 10 {
            3 => {
                std::thread::sleep(std::time::Duration::from_millis(5));
                Err(Error::usage(item.to_string()))
            }
            7 => Err(Error::usage(item.to_string())),
            _ => Ok(*item),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("four threads");
        let sound: Vec<u64> = (0..100).filter(|item| item % 10 < 3).collect();
        pool.install(|| {
            for _ in 0..20 {
                let failed = in_parallel(&(0..100).collect::<Vec<u64>>(), work);
                assert_eq!(failed.expect_err("some fail").to_string(), "3");
            }
            assert_eq!(in_parallel(&sound, work).expect("none fails"), sound);
        });
    }
}
