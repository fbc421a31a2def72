//! Holds the engine to the slow reference, step by step.

use crate::as_meters;
use crate::as_reference::{kind_of, setting_of};
use crate::common::lanes::{logged, trace, victims};
use crate::reference;
use crate::reference::meters::Seen;
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
        assert_eq!(record.measured.is_some(), wanted.measured.is_some(), "{name}: measured in step {step}");
        if let (Some(tally), Some(row)) = (&record.measured, &wanted.measured) {
            let seen = Seen::step(vec![row.clone()]);
            as_meters::assert_same_sums(&format!("{name}: step {step}"), tally, &seen);
        }
    }
}

/// Fails unless both counted the same.
#[track_caller]
pub fn assert_same_sums(lane: &LanePlan, tally: &Tally, wanted: &reference::Outcome) {
    let budget = lane.budget.map(|_| tally.count("budget_sum") as usize);
    // Several plans may be best: they retain the same and hold different positions.
    let exact = !lane.entry.is_bound() || lane.entry.is_selector();
    let compared = |meter: &str| exact || ["rows", "mass", "budget"].contains(&meter);
    let counted = |sum: &str| tally.number(sum).map(|number| number.as_f64() as usize);
    let seen = Seen { window: counted("window_sum"), own_sinks: counted("sinks_sum"), ..wanted.seen(budget) };
    as_meters::assert_same_sums_of(lane.entry.name, tally, &seen, compared);
}
