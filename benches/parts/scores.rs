//! What policies do with what was gathered: votes, scores, the lowest of them, sums of rings, pooling.

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use kvsim::kernels::{
    accumulate, add_exactly, add_rows, count_above, lowest, pool_max, replace, widen_bf16, widen_f16,
};
use kvsim::trace::rng::Xoshiro128;
use std::hint::black_box;

/// Slots of a lane.
const SLOTS: usize = 512;
/// Length of a ring.
const RING: usize = 16;

fn random_weights(count: usize, seed: u32) -> Vec<f32> {
    let mut random = Xoshiro128::new(seed);
    (0..count).map(|_| (1 + random.below(1 << 20)) as f32 / (1 << 24) as f32).collect()
}

pub fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("512 slots");
    group.throughput(Throughput::Elements(SLOTS as u64));
    let weights = random_weights(SLOTS, 1);
    votes_and_scores(&mut group, &weights);
    rings(&mut group, &weights);
    group.finish();
    widening(criterion);
}

fn votes_and_scores(group: &mut BenchmarkGroup<'_, WallTime>, weights: &[f32]) {
    let mut votes = vec![1_u32; SLOTS];
    let mut scores: Vec<f64> = random_weights(SLOTS, 2).into_iter().map(f64::from).collect();
    group.bench_function("votes, count_above", |bencher| {
        bencher.iter(|| count_above(black_box(&mut votes), black_box(weights), 0.03));
    });
    group.bench_function("votes, lowest", |bencher| bencher.iter(|| lowest(black_box(&votes))));
    group.bench_function("scores, accumulate", |bencher| {
        bencher.iter(|| accumulate(black_box(&mut scores), black_box(weights)));
    });
    group.bench_function("scores, lowest", |bencher| bencher.iter(|| lowest(black_box(&scores))));
    group.bench_function("weights, lowest", |bencher| bencher.iter(|| lowest(black_box(weights))));
}

fn rings(group: &mut BenchmarkGroup<'_, WallTime>, weights: &[f32]) {
    let mut rows: Vec<Vec<f32>> = (0..RING as u32).map(|seed| random_weights(SLOTS, seed)).collect();
    let (mut sums, mut pooled) = (vec![0.0; SLOTS], Vec::new());
    group.bench_function("rings, add_exactly", |bencher| bencher.iter(|| add_exactly(black_box(weights))));
    group.bench_function("rings, add_rows", |bencher| bencher.iter(|| add_rows(black_box(&rows), &mut sums)));
    group.bench_function("rings, replace", |bencher| {
        bencher.iter(|| replace(black_box(&mut sums), &mut rows[0], black_box(weights)));
    });
    group.bench_function("rings, pool_max of 7", |bencher| bencher.iter(|| pool_max(black_box(&sums), 3, &mut pooled)));
}

fn widening(criterion: &mut Criterion) {
    const WEIGHTS: usize = 64 * 1024;
    let mut group = criterion.benchmark_group("64 Ki weights");
    group.throughput(Throughput::Bytes(2 * WEIGHTS as u64));
    let mut random = Xoshiro128::new(5);
    let bits: Vec<u16> = (0..WEIGHTS).map(|_| random.below(0x3c00) as u16).collect();
    let mut wide = vec![0.0; WEIGHTS];
    group.bench_function("widen f16", |bencher| bencher.iter(|| widen_f16(black_box(&bits), &mut wide)));
    group.bench_function("widen bf16", |bencher| bencher.iter(|| widen_bf16(black_box(&bits), &mut wide)));
    group.finish();
}
