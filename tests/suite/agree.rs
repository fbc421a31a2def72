//! Holds the engine to the slow reference, step by step.

use crate::as_reference::{kind_of, setting_of};
use crate::common::lanes::{logged, trace, victims};
use crate::reference;
use kvsim::replay::{LanePlan, Options, StepRecord, Tally, ViewKind};
use kvsim::trace::SelfAttention;
use kvsim::trace::memory::Rows;

/// Fails unless engine and reference keep and count the same; returns what the engine found.
#[track_caller]
pub fn assert_agree(
    rows: &Rows,
    kind: SelfAttention,
    lane: &LanePlan,
    options: &Options,
) -> (Tally, Vec<StepRecord>, reference::Outcome) {
    let (tally, records) = logged(&trace(kind, rows), std::slice::from_ref(lane), options).remove(0);
    let renormalized = options.view == ViewKind::Renormalized;
    let setting = setting_of(lane);
    let k = options.heavy_hitters;
    let wanted = if lane.entry.is_coupled() {
        reference::replay_cross_layer(std::slice::from_ref(rows), kind_of(kind), &setting, k, renormalized).remove(0)
    } else {
        reference::replay(rows, kind_of(kind), &setting, k, renormalized)
    };
    if !lane.entry.is_bound() {
        assert_same_steps(lane, &records, &wanted);
        assert_same_counts(lane, &tally, &wanted);
    }
    assert_same_sums(lane, &tally, &wanted);
    (tally, records, wanted)
}

#[track_caller]
fn assert_same_steps(lane: &LanePlan, records: &[StepRecord], wanted: &reference::Outcome) {
    let name = lane.entry.name;
    let wanted_victims: Vec<Vec<u32>> = wanted.steps.iter().map(|step| step.victims.clone()).collect();
    assert_eq!(victims(records), wanted_victims, "{name}: victims");
    for (record, wanted) in records.iter().zip(&wanted.steps) {
        let step = record.step;
        assert_eq!(record.kept, wanted.kept.len(), "{name}: kept after step {step}");
        let hits =
            record.measured.map(|row| [row.heavy_hits, row.heavy_possible, row.pivotal_hits, row.pivotal_possible]);
        let wanted_hits = wanted.measured.as_ref().map(|row| {
            [row.heavy_hits, row.heavy_possible, row.pivotal_hits, row.pivotal_possible].map(|count| count as u64)
        });
        assert_eq!(hits, wanted_hits, "{name}: hits in step {step}");
        let masses = (record.measured.map(|row| row.retained), wanted.measured.as_ref().map(|row| row.mass));
        let near = masses.0.zip(masses.1).is_none_or(|(found, wanted)| (found - wanted).abs() <= 1e-12);
        assert!(near, "{name}: mass in step {step}: {masses:?}");
    }
}

/// Fails unless both count the same evictions.
#[track_caller]
pub fn assert_same_counts(lane: &LanePlan, tally: &Tally, wanted: &reference::Outcome) {
    let measured = || wanted.steps.iter().filter_map(|step| step.measured.as_ref());
    let found = [tally.eviction_calls, tally.evicted, tally.peak_kept, tally.kept_sum, tally.peak_misses];
    let kept: usize = wanted.steps.iter().map(|step| step.kept.len()).sum();
    let misses = measured().filter(|row| row.peak_missed).count();
    let wanted =
        [wanted.eviction_calls(), wanted.evicted(), wanted.peak_kept(), kept, misses].map(|count| count as u64);
    assert_eq!(found, wanted, "{}: eviction calls, evicted, peak kept, kept sum, peak misses", lane.entry.name);
}

/// Fails unless both measured the same rows and masses.
#[track_caller]
pub fn assert_same_sums(lane: &LanePlan, tally: &Tally, wanted: &reference::Outcome) {
    let measured = || wanted.steps.iter().filter_map(|step| step.measured.as_ref());
    let late = || measured().filter(|row| row.after_first_eviction);
    let counts = [tally.steps, tally.skipped_rows, tally.rows, tally.rows_full, tally.broken_rows];
    let rows = measured().count();
    let broken = measured().filter(|row| row.broken).count();
    let wanted_counts = [rows, wanted.steps.len() - rows, rows, late().count(), broken].map(|count| count as u64);
    assert_eq!(counts, wanted_counts, "{}: steps, skipped, rows, rows after eviction, broken", lane.entry.name);
    let sums = [tally.retained, tally.retained_full, tally.row_mass];
    let wanted_sums = [
        measured().map(|row| row.mass).sum::<f64>(),
        late().map(|row| row.mass).sum(),
        measured().map(|row| row.row_total).sum(),
    ];
    for (found, wanted) in sums.into_iter().zip(wanted_sums) {
        assert!((found - wanted).abs() <= 1e-12 * rows.max(1) as f64, "{}: sum {found}, {wanted}", lane.entry.name);
    }
    let least = (tally.min_step_mass, wanted.min_step_mass());
    let near = least.0.zip(least.1).map_or(least.0.is_none() && least.1.is_none(), |(a, b)| (a - b).abs() <= 1e-12);
    assert!(near, "{}: least mass {least:?}", lane.entry.name);
}
