//! What is done with a row: its facts, and the gather of a lane.

use crate::common::traces::{decode_4096, rows_of};
use criterion::{Criterion, Throughput};
use kvsim::kernels::{KeptLimits, Picked, RowLimits, f32_not_above, gather, measure, nth_largest, scan_row, sum};
use kvsim::position::Position;
use std::hint::black_box;

/// k of the heavy-hitter recall.
const HEAVY: usize = 32;
/// Kept positions.
const KEPT: usize = 512;

pub fn bench(criterion: &mut Criterion) {
    let row = rows_of(&decode_4096()).pop().flatten().expect("the last row");
    facts(criterion, &row);
    gathers(criterion, &row);
}

/// The floor that a finder carries from one row to the next lies a little below the k-th weight.
fn facts(criterion: &mut Criterion, row: &[f32]) {
    let mut group = criterion.benchmark_group("row of 4095");
    group.throughput(Throughput::Elements(row.len() as u64));
    let limits = |floor: f32| RowLimits { pivotal: f32_not_above(1.0 / row.len() as f64), floor };
    let near = 0.9 * nth_largest(row, HEAVY);
    let mut picked = Picked::default();
    group.bench_function("sum", |bencher| bencher.iter(|| sum(black_box(row))));
    group.bench_function("scan, nothing picked", |bencher| {
        bencher.iter(|| scan_row(black_box(row), limits(f32::INFINITY), &mut picked));
    });
    group.bench_function("scan, and the 32nd of the picked", |bencher| {
        bencher.iter(|| {
            let scan = scan_row(black_box(row), limits(near), &mut picked);
            (scan, nth_largest(picked.weights(), HEAVY))
        });
    });
    group.bench_function("the 32nd of the whole row", |bencher| bencher.iter(|| nth_largest(black_box(row), HEAVY)));
    group.finish();
}

/// Kept sets as policies make them: the newest, old ones with gaps and the newest, scattered ones.
fn kept_sets() -> [(&'static str, Vec<Position>); 3] {
    let newest = |count: usize| (4095 - count as u32..4095).map(Position);
    let gaps = (0..).filter(|position| position % 24 != 5).map(Position).take(KEPT / 2);
    [
        ("a run", newest(KEPT).collect()),
        ("runs with gaps", gaps.chain(newest(KEPT / 2)).collect()),
        ("every third", (0..KEPT as u32).map(|slot| Position(3 * slot)).collect()),
    ]
}

fn gathers(criterion: &mut Criterion, row: &[f32]) {
    let mut group = criterion.benchmark_group("512 of 4095");
    group.throughput(Throughput::Elements(KEPT as u64));
    let limits = KeptLimits { pivotal: f32_not_above(1.0 / row.len() as f64), heavy: nth_largest(row, HEAVY) };
    let mut out = vec![0.0; KEPT];
    for (name, kept) in kept_sets() {
        group.bench_function(format!("gather {name}"), |bencher| {
            bencher.iter(|| gather(black_box(row), black_box(&kept), limits, &mut out));
        });
        group.bench_function(format!("measure {name}"), |bencher| {
            bencher.iter(|| measure(black_box(row), black_box(&kept), limits));
        });
    }
    group.finish();
}
