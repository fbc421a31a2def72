//! What holds for every policy of the table on any trace, and the engine against the reference.

use crate::agree::{assert_agree, assert_same_sums};
use crate::as_meters::all_meters;
use crate::as_reference::{kind_of, setting_of};
use crate::common::files::{Folder, json_lines};
use crate::common::lanes::{logged, open, tallies, trace, victims};
use crate::reference::replay_cross_layer;
use kvsim::policy::parameter::{BLOCK_SIZE, Kind, Parameter, RECENT_SIZE, RECENT_WINDOW, SINKS, START_SIZE, Value};
use kvsim::policy::table::{POLICIES, PolicyEntry};
use kvsim::replay::{LanePlan, Options, StepRecord, ViewKind};
use kvsim::trace::SelfAttention;
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::word::Word;
use proptest::prelude::*;
use proptest::sample::select;

/// Policies that the reference does not know, each with the reason.
const UNKNOWN_TO_THE_REFERENCE: &[(&str, &str)] = &[];

/// A trace as proptest draws it.
#[derive(Clone, Debug)]
struct Drawn {
    kind: SelfAttention,
    rows: Rows,
}

/// Draws positions, kind and rows: some flat, some of few values, some of zeros, some unknown.
fn any_trace(most_rows: usize) -> impl Strategy<Value = Drawn> {
    (select(&[SelfAttention::Excluded, SelfAttention::Included][..]), 1..=most_rows)
        .prop_flat_map(|(kind, count)| (Just(kind), (0..count).map(any_row).collect::<Vec<_>>()))
        .prop_map(|(kind, rows)| Drawn { kind, rows })
}

/// So many rows, of either kind.
fn any_row_of(rows: usize) -> impl Strategy<Value = Rows> {
    (0..rows).map(any_row).collect::<Vec<_>>()
}

/// Row `index` has one weight more than its index, whichever the kind.
fn any_row(index: usize) -> BoxedStrategy<Option<Vec<f32>>> {
    let len = index + 1;
    // Sixteenths: sums are exact, ties are common.
    let coarse = prop::collection::vec(0..=16_u32, len).prop_map(|row| row.iter().map(|w| *w as f32 / 16.0).collect());
    let few = prop::collection::vec(0..=2_u32, len).prop_map(|row| row.iter().map(|w| *w as f32 / 4.0).collect());
    let fine = prop::collection::vec(0.0..1.0_f32, len).prop_map(|row| {
        let total: f32 = row.iter().sum();
        row.iter().map(|weight| weight / total.max(0.01)).collect()
    });
    let flat = Just(vec![1.0 / len as f32; len]);
    let newest = Just((0..len).map(|position| if position + 1 == len { 1.0 } else { 0.0 }).collect());
    prop_oneof![
        4 => fine.prop_map(Some),
        4 => coarse.prop_map(Some),
        2 => few.prop_map(Some),
        1 => flat.prop_map(Some),
        1 => newest.prop_map(Some),
        1 => Just(Some(vec![0.0; len])),
        1 => Just(None),
    ]
    .boxed()
}

/// A lane of every policy with small random parameters; impossible ones are left out.
fn lanes_from(budget: usize, draws: [usize; 4]) -> Vec<LanePlan> {
    let lane = |entry: &'static PolicyEntry| {
        let mut lane = LanePlan::new(entry, budget);
        for (at, (parameter, _)) in entry.parameters.iter().enumerate() {
            lane.values.set(parameter, small_value(parameter, draws[at % 4]));
        }
        if let Some(Value::Count(block)) = lane.values.get(&BLOCK_SIZE) {
            let blocks = |draw: usize| Value::Count(draw % 2 * block);
            lane.values.set(&START_SIZE, blocks(draws[0]));
            lane.values.set(&RECENT_SIZE, blocks(draws[1]));
        }
        lane
    };
    POLICIES
        .iter()
        .filter(|entry| !entry.needs_more_than_rows())
        .map(lane)
        .filter(|lane| lane.check().is_ok())
        .collect()
}

fn small_value(parameter: &Parameter, draw: usize) -> Value {
    match parameter.kind {
        Kind::Count { least, odd: true } => Value::Count((least + draw) | 1),
        Kind::Count { least, odd: false } => Value::Count(least + draw),
        Kind::Word(words) => Value::Word(words[draw % words.len()]),
        Kind::CountOr(word) => Value::Word(word),
        Kind::CountOrShare { .. } => parameter.parse(["1", "3", "30%", "100%"][draw]).expect("a count or a share"),
        Kind::Real { least, most } => Value::Real(least + (most - least).min(4.0) * draw as f64 / 4.0),
    }
}

fn any_draws() -> impl Strategy<Value = [usize; 4]> {
    prop::array::uniform4(0..4_usize)
}

fn policies_of(lanes: &[LanePlan]) -> Vec<LanePlan> {
    lanes.iter().filter(|lane| !lane.entry.is_bound()).cloned().collect()
}

fn options(view: ViewKind, threads: usize) -> Options {
    Options { heavy_hitters: 3, view, threads, meters: all_meters(), ..Options::default() }
}

fn count_of(lane: &LanePlan, parameter: &Parameter) -> usize {
    match lane.values.get(parameter) {
        Some(Value::Count(count)) => count,
        _ => 0,
    }
}

/// The kept set before and after each eviction, rebuilt from what went.
fn kept_sets(drawn: &Drawn, records: &[StepRecord]) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut kept: Vec<u32> = (0..drawn.kind.first_step().0).collect();
    let mut sets = Vec::new();
    for record in records {
        kept.push(record.step.0);
        let before = kept.clone();
        kept.retain(|position| !record.victims.iter().any(|victim| victim.0 == *position));
        sets.push((before, kept.clone()));
    }
    sets
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engine_and_reference_agree_on_every_trace(
        drawn in any_trace(90), budget in 1..70_usize, draws in any_draws(),
        heavy_hitters in 1..40_usize, renormalized in any::<bool>(),
    ) {
        let view = if renormalized { ViewKind::Renormalized } else { ViewKind::Raw };
        let options = Options { heavy_hitters, ..options(view, 1) };
        for lane in lanes_from(budget, draws) {
            if !UNKNOWN_TO_THE_REFERENCE.iter().any(|(name, _)| *name == lane.entry.name) {
                assert_agree(&drawn.rows, drawn.kind, &lane, &options);
            }
        }
    }

    #[test]
    fn victims_were_held_and_the_budget_and_the_protected_slots_are_kept(
        drawn in any_trace(40), budget in 1..16_usize, draws in any_draws(),
    ) {
        let source = trace(drawn.kind, &drawn.rows);
        let lanes = policies_of(&lanes_from(budget, draws));
        for (lane, (_, records)) in lanes.iter().zip(logged(&source, &lanes, &options(ViewKind::Raw, 1))) {
            let name = lane.entry.name;
            for (record, (before, after)) in records.iter().zip(kept_sets(&drawn, &records)) {
                let gone: Vec<u32> = record.victims.iter().map(|victim| victim.0).collect();
                prop_assert!(gone.is_sorted_by(|a, b| a < b), "{name}: {gone:?} ascend");
                prop_assert!(gone.iter().all(|victim| before.contains(victim)), "{name}: {gone:?} of {before:?}");
                prop_assert!(lane.budget.is_none_or(|budget| after.len() <= budget), "{name}: {after:?}");
                let window = count_of(lane, &RECENT_WINDOW).min(before.len());
                let newest = &before[before.len() - window..];
                prop_assert!(newest.iter().all(|position| after.contains(position)), "{name}: {gone:?} of {before:?}");
                let sinks = (0..count_of(lane, &SINKS) as u32).filter(|sink| before.contains(sink));
                prop_assert!(sinks.clone().all(|sink| after.contains(&sink)), "{name}: {gone:?} of {before:?}");
            }
        }
    }

    #[test]
    fn a_budget_as_long_as_the_sequence_is_full(drawn in any_trace(30), more in 0..3_usize, draws in any_draws()) {
        let positions = drawn.kind.positions_of(drawn.rows.len());
        let source = trace(drawn.kind, &drawn.rows);
        let full = LanePlan::new(kvsim::policy::table::find("full").expect("in the table"), 0);
        let mut lanes = [vec![full], policies_of(&lanes_from(positions + more, draws))].concat();
        // Blocks go before a budget in part of one is full.
        lanes.retain(|lane| lane.entry.own.cuts.is_none());
        let all = logged(&source, &lanes, &options(ViewKind::Raw, 1));
        for (lane, (tally, records)) in lanes.iter().zip(&all) {
            let name = lane.entry.name;
            prop_assert_eq!(records, &all[0].1, "{}", name);
            prop_assert_eq!(tally.real("retained_mass_sum").to_bits(), tally.real("row_mass_sum").to_bits(), "{}", name);
            prop_assert_eq!(tally.count("heavy_hits"), tally.count("heavy_possible"), "{}", name);
        }
    }

    #[test]
    fn no_policy_retains_more_of_a_row_than_the_oracle(
        drawn in any_trace(40), budget in 1..16_usize, draws in any_draws(),
    ) {
        let lanes: Vec<LanePlan> =
            lanes_from(budget, draws).into_iter().filter(|lane| lane.entry.budgeted).collect();
        let source = trace(drawn.kind, &drawn.rows);
        let all = tallies(&source, &lanes, &options(ViewKind::Raw, 1)).remove(0);
        let most = lanes.iter().zip(&all).find(|(lane, _)| lane.entry.name == "oracle").expect("it is a lane").1;
        for (lane, tally) in lanes.iter().zip(&all).filter(|(lane, _)| !lane.entry.is_bound()) {
            prop_assert!(tally.real("retained_mass_sum") <= most.real("retained_mass_sum") + 1e-9, "{}", lane.entry.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_repeat_to_the_last_bit_on_any_number_of_threads(
        drawn in any_trace(60), budget in 1..16_usize, draws in any_draws(),
    ) {
        let source = trace(drawn.kind, &drawn.rows).with_stream(1, "mean", drawn.rows.clone()).expect("another stream");
        let source = source.with_stream(2, "1", drawn.rows.clone()).expect("a third stream");
        let lanes = lanes_from(budget, draws);
        let on = |threads| format!("{:?}", tallies(&source, &lanes, &options(ViewKind::Raw, threads)));
        let once = on(1);
        for threads in [1, 2, 3, 7] {
            prop_assert_eq!(&on(threads), &once, "{} threads", threads);
        }
    }

    #[test]
    fn layers_that_share_one_state_agree_with_the_reference(
        first in any_trace(40), others in prop::collection::vec(any_row_of(40), 2), budget in 1..16_usize, draws in any_draws(),
    ) {
        let streams: Vec<Rows> = [vec![first.rows.clone()], others.iter().map(|rows| rows[..first.rows.len()].to_vec()).collect()].concat();
        let mut source = MemoryTrace::new("layers", first.kind);
        for (layer, rows) in (0..).zip(&streams) {
            source = source.with_stream(layer, "0", rows.clone()).expect("another layer");
        }
        let coupled: Vec<LanePlan> = lanes_from(budget, draws).into_iter().filter(|lane| lane.entry.is_coupled()).collect();
        let found = tallies(&source, &coupled, &options(ViewKind::Raw, 2));
        for (at, lane) in coupled.iter().enumerate() {
            let wanted = replay_cross_layer(&streams, kind_of(first.kind), &setting_of(lane), 3, false);
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_same_sums(lane, &found[at], wanted);
            }
        }
    }

    #[test]
    fn lanes_together_equal_lanes_alone(drawn in any_trace(40), budget in 1..16_usize, draws in any_draws()) {
        let source = trace(drawn.kind, &drawn.rows);
        let lanes = lanes_from(budget, draws);
        let together = logged(&source, &lanes, &options(ViewKind::Raw, 2));
        for (lane, together) in lanes.iter().zip(together) {
            let alone = logged(&source, std::slice::from_ref(lane), &options(ViewKind::Raw, 2)).remove(0);
            prop_assert_eq!(alone, together, "{}", lane.entry.name);
        }
    }

    #[test]
    fn half_of_every_weight_changes_no_decision(drawn in any_trace(40), budget in 1..16_usize, draws in any_draws()) {
        let halve = |row: &Option<Vec<f32>>| row.as_ref().map(|row| row.iter().map(|weight| weight / 2.0).collect());
        let halved: Rows = drawn.rows.iter().map(halve).collect();
        let insensitive = |lane: &LanePlan| ["h2o", "tova", "snapkv", "pyramidkv"].contains(&lane.entry.name);
        let lanes: Vec<LanePlan> = lanes_from(budget, draws).into_iter().filter(insensitive).collect();
        let [whole, half] = [&drawn.rows, &halved].map(|rows| logged(&trace(drawn.kind, rows), &lanes, &options(ViewKind::Raw, 1)));
        for (lane, (whole, half)) in lanes.iter().zip(whole.iter().zip(&half)) {
            prop_assert_eq!(victims(&whole.1), victims(&half.1), "{}", lane.entry.name);
        }
    }

    #[test]
    fn a_trace_cut_short_is_a_prefix(
        drawn in any_trace(40), budget in 1..16_usize, cut in 1..40_usize, draws in any_draws(),
    ) {
        let source = trace(drawn.kind, &drawn.rows);
        let lanes = lanes_from(budget, draws);
        let short = Options { steps: Some(cut), ..options(ViewKind::Raw, 1) };
        let shorter_file = trace(drawn.kind, &drawn.rows[..cut.min(drawn.rows.len())].to_vec());
        let by_file = tallies(&shorter_file, &lanes, &options(ViewKind::Raw, 1)).remove(0);
        let by_option = tallies(&source, &lanes, &short).remove(0);
        prop_assert_eq!(&by_option, &by_file);
        let policies = policies_of(&lanes);
        let whole = logged(&source, &policies, &options(ViewKind::Raw, 1));
        let part = logged(&source, &policies, &short);
        for (lane, ((_, whole), (_, part))) in policies.iter().zip(whole.iter().zip(&part)) {
            prop_assert_eq!(&whole[..part.len()], &part[..], "{}", lane.entry.name);
        }
    }

    #[test]
    fn a_trace_in_json_lines_replays_as_in_memory(
        drawn in any_trace(30), budget in 1..16_usize, draws in any_draws(),
    ) {
        let header = format!("{{\"kvsim\":1,\"self\":\"{}\"}}\n", drawn.kind.word());
        let text = header + &json_lines(drawn.kind.first_step().0 as usize, &drawn.rows);
        let folder = Folder::new();
        let source = open(folder.write("drawn.jsonl", text));
        let lanes = lanes_from(budget, draws);
        let in_memory: MemoryTrace = trace(drawn.kind, &drawn.rows);
        let [written, held] = [&*source, &in_memory].map(|source| tallies(source, &lanes, &options(ViewKind::Raw, 1)));
        prop_assert_eq!(written, held);
    }
}
