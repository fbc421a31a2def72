//! Measuring in rounds.

use std::time::{Duration, Instant};

/// Times of one thing, one for each round of a run.
pub struct Times(Vec<Duration>);

impl Times {
    /// Seconds in the fastest round.
    pub fn least(&self) -> f64 {
        self.seconds().fold(f64::INFINITY, f64::min)
    }

    /// Seconds in the median round.
    pub fn median(&self) -> f64 {
        median(self.seconds().collect())
    }

    /// Seconds in each round.
    pub fn seconds(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(Duration::as_secs_f64)
    }
}

/// The middle value, the upper one of two.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Something that can be run once, and says how long it took.
pub type Work<'a> = &'a mut dyn FnMut() -> Duration;

/// Runs every work once a round, in turn, so that what drifts on the machine strikes all alike. A
/// first round, which fills caches, does not count.
pub fn interleave<const N: usize>(rounds: usize, mut works: [Work<'_>; N]) -> [Times; N] {
    let mut times = [const { Times(Vec::new()) }; N];
    for round in 0..=rounds {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let time = work();
            if round > 0 {
                times.0.push(time);
            }
        }
    }
    times
}

/// How long something takes.
pub fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed()
}

/// The shortest of a few tries.
pub fn shortest_of(tries: usize, mut work: impl FnMut() -> Duration) -> Duration {
    (0..tries).map(|_| work()).min().expect("at least one try")
}

/// Whether a run is to be short, to see that it works.
pub fn is_short() -> bool {
    std::env::var_os("KVSIM_BENCH_SHORT").is_some_and(|value| value != "0")
}

/// Number of rounds: as many as asked for, few in a short run.
pub fn rounds(full: usize) -> usize {
    if is_short() { full.min(3) } else { full }
}
