//! Lanes to measure, and how long a replay through them takes.

use kvsim::policy::parameter::{RECENT_WINDOW, Value};
use kvsim::policy::table::find;
use kvsim::replay::{LanePlan, Observer, Options, Stage, caches_of, replay};
use kvsim::trace::Source;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A lane with default parameters.
pub fn lane(policy: &str, budget: usize) -> LanePlan {
    LanePlan::new(find(policy).expect("the bench names policies of the table"), budget)
}

/// A lane with this recent window.
pub fn lane_with_window(policy: &str, budget: usize, window: usize) -> LanePlan {
    let mut lane = lane(policy, budget);
    lane.values.set(&RECENT_WINDOW, Value::Count(window));
    lane
}

/// Two policies at four budgets and eight windows.
pub fn sixty_four_lanes() -> Vec<LanePlan> {
    let mut lanes = Vec::new();
    for policy in ["scissorhands", "h2o"] {
        for budget in [256, 512, 768, 1024] {
            lanes.extend([16, 24, 32, 48, 64, 96, 128, 192].map(|window| lane_with_window(policy, budget, window)));
        }
    }
    lanes
}

/// What a replay took.
pub struct Cost {
    /// From the call to its return.
    pub wall: Duration,
    /// Finding facts of rows, summed over threads.
    pub select: Duration,
    /// Running lanes, summed over threads.
    pub lanes: Duration,
    /// For each lane, the positions held after each step, summed over steps and caches.
    pub slot_steps: Vec<u64>,
}

/// Replays every stream of a trace through the lanes.
pub fn replay_cost(source: &dyn Source, lanes: &[LanePlan], options: &Options) -> Cost {
    let caches = caches_of(source.info()).expect("the trace is sound");
    let stages = StageTimes::default();
    let started = Instant::now();
    let outcomes = replay(source, &caches, lanes, options, &stages).expect("the lanes are possible");
    let wall = started.elapsed();
    let slot_steps = |lane: usize| outcomes.iter().map(|outcome| outcome.tallies[lane].count("kept_sum")).sum();
    Cost {
        wall,
        select: stages.of(Stage::Select),
        lanes: stages.of(Stage::Lanes),
        slot_steps: (0..lanes.len()).map(slot_steps).collect(),
    }
}

/// The default options on so many threads.
pub fn on_threads(threads: usize) -> Options {
    Options { threads, ..Options::default() }
}

#[derive(Default)]
struct StageTimes([AtomicU64; 3]);

impl StageTimes {
    fn of(&self, stage: Stage) -> Duration {
        Duration::from_nanos(self.0[stage as usize].load(Relaxed))
    }
}

impl Observer for StageTimes {
    fn timed(&self, stage: Stage, time: Duration) {
        self.0[stage as usize].fetch_add(time.as_nanos() as u64, Relaxed);
    }
}
