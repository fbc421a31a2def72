//! One lane of every policy on decode-4096, rows in memory, one thread.

use crate::common::lanes::{lane, on_threads, replay_cost};
use crate::common::traces::{decode_4096, in_memory, rows_of};
use criterion::{Criterion, Throughput};
use kvsim::policy::table::POLICIES;
use kvsim::trace::memory::MemoryTrace;

pub fn bench(criterion: &mut Criterion) {
    let trace = in_memory(rows_of(&decode_4096()));
    let mut group = criterion.benchmark_group("one lane at 512");
    group.throughput(Throughput::Elements(4095));
    let policies = POLICIES.iter().filter(|entry| entry.runs_by_default());
    for name in policies.map(|entry| entry.name) {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| lanes_time(&trace, name)).sum());
        });
    }
    group.finish();
}

/// Time of the lane alone, without rows and their facts.
fn lanes_time(trace: &MemoryTrace, policy: &str) -> std::time::Duration {
    replay_cost(trace, &[lane(policy, 512)], &on_threads(1)).lanes
}
