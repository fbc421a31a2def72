//! Small cases whose answers can be worked out by hand, through the engine and the reference alike.

use crate::agree::assert_agree;
use crate::common::assert_near;
use crate::common::files::{Folder, header, safetensors, tensor};
use crate::common::lanes::{
    Parameters, kept_at_the_end, lane, logged, mass_and_recall, open, read_rows, rows_of, trace, victims,
};
use kvsim::needs::Needs;
use kvsim::policy::table::Make;
use kvsim::position::{Position, Slot};
use kvsim::replay::{Cache, LanePlan, Options, Shown, ViewKind};
use kvsim::trace::SelfAttention::{self, Excluded, Included};
use kvsim::trace::memory::Rows;
use kvsim::trace::safetensors::{StoredType, write};

fn trace_a() -> Rows {
    rows_of(&[
        &[1.0],
        &[0.75, 0.25],
        &[0.5, 0.25, 0.25],
        &[0.5, 0.0625, 0.1875, 0.25],
        &[0.25, 0.25, 0.25, 0.125, 0.125],
    ])
}

fn trace_b() -> Rows {
    rows_of(&[&[1.0], &[0.5, 0.5], &[0.5, 0.25, 0.25], &[0.5, 0.125, 0.125, 0.25]])
}

/// The rows of eight positions; `weight` takes position and row length.
fn rows_by(kind: SelfAttention, weight: impl Fn(usize, usize) -> f32) -> Rows {
    let lengths = if kind == Excluded { 1..=7 } else { 1..=8 };
    lengths.map(|len| Some((0..len).map(|position| weight(position, len)).collect())).collect()
}

fn top(heavy_hitters: usize) -> Options {
    Options { heavy_hitters, ..Options::default() }
}

/// Every policy and bound that is kept in any way, with one position out of reach where it has a window or sinks, and one
/// that goes at a time.
fn every_lane(budget: usize) -> Vec<LanePlan> {
    kvsim::policy::table::POLICIES
        .iter()
        .filter(|entry| !entry.own.is_any() && !entry.needs_more_than_rows())
        .map(|entry| {
            let takes = |name: &str| entry.parameters.iter().any(|(parameter, _)| parameter.name == name);
            // Where the rows that are observed are the window too.
            let window = if takes("recent-window") { "recent-window" } else { "obs-window" };
            let small: Vec<(&str, usize)> =
                [(window, 1), ("sinks", 1), ("drop", 1)].into_iter().filter(|(name, _)| takes(name)).collect();
            lane(entry.name, budget, &small)
        })
        // What cuts at the end of a prompt needs one.
        .filter(|lane| !lane.entry.needs.has(Needs::PROMPT_END))
        .collect()
}

fn retained(rows: &Rows, kind: SelfAttention, lane: &LanePlan) -> f64 {
    mass_and_recall(&assert_agree(rows, kind, lane, &top(2)).0)[0]
}

#[test]
fn votes_and_scores_name_different_victims_for_the_same_rows() {
    let rows = rows_of(&[
        &[1.0],
        &[0.875, 0.125],
        &[0.0625, 0.5, 0.4375],
        &[0.0625, 0.3125, 0.3125, 0.3125],
        &[0.0625, 0.25, 0.25, 0.25, 0.1875],
    ]);
    let lanes = ["scissorhands", "h2o"].map(|policy| lane(policy, 5, &[("recent-window", 2)]));
    let together = logged(&trace(Excluded, &rows), &lanes, &top(2));
    let last = |lane: usize| victims(&together[lane].1).concat();
    assert_eq!(last(0), [0], "votes are 1 3 3 2 0");
    assert_eq!(last(1), [3], "position 0 has the highest score, 2.0625");
    for (lane, (tally, records)) in lanes.iter().zip(&together) {
        let alone = assert_agree(&rows, Excluded, lane, &top(2));
        assert_eq!((&alone.0, &alone.1), (tally, records), "{}", lane.entry.name);
    }
}

#[test]
fn trace_a_retains_keeps_and_recalls_as_worked_out() {
    let table: [(&str, Parameters, f64, [u32; 3], f64); 6] = [
        ("sliding-window", &[], 0.8, [3, 4, 5], 2.0 / 3.0),
        ("streaming-llm", &[("sinks", 1)], 0.8875, [0, 4, 5], 8.0 / 9.0),
        ("h2o", &[("recent-window", 1)], 0.8875, [0, 1, 5], 1.0),
        ("h2o", &[("recent-window", 0)], 0.9, [0, 1, 2], 8.0 / 9.0),
        ("scissorhands", &[("recent-window", 1)], 0.8875, [0, 4, 5], 8.0 / 9.0),
        ("tova", &[], 0.8875, [0, 4, 5], 8.0 / 9.0),
    ];
    for (policy, parameters, mass, kept, recall) in table {
        let (tally, records, wanted) = assert_agree(&trace_a(), Excluded, &lane(policy, 3, parameters), &top(2));
        assert_near(mass_and_recall(&tally)[0], mass, policy);
        assert_near(mass_and_recall(&tally)[1], recall, policy);
        assert_eq!((kept_at_the_end(&records), &wanted.kept), (kept.to_vec(), &kept.to_vec()), "{policy}");
    }
}

#[test]
fn trace_b_retains_as_worked_out() {
    for lane in every_lane(2) {
        let wanted = match lane.entry.name {
            "sliding-window" => 7.0 / 8.0,
            "streaming-llm" | "h2o" | "scissorhands" | "tova" => 31.0 / 32.0,
            _ => continue,
        };
        assert_eq!(retained(&trace_b(), Included, &lane), wanted, "{}", lane.entry.name);
    }
    for lane in [3, 4, 100].into_iter().flat_map(every_lane) {
        assert_eq!(retained(&trace_b(), Included, &lane), 1.0, "{} at {:?}", lane.entry.name, lane.budget);
    }
}

#[test]
fn a_budget_as_long_as_the_trace_retains_exactly_everything() {
    for (budget, evictions) in [(5, 1), (6, 0), (100, 0)] {
        for lane in every_lane(budget) {
            let (tally, ..) = assert_agree(&trace_a(), Excluded, &lane, &top(2));
            if lane.entry.is_selector() {
                // It has no budget, and reads what it reads.
                continue;
            }
            assert_eq!(tally.real("retained_mass_sum"), 5.0, "{} at {budget}", lane.entry.name);
            if !lane.entry.is_bound() {
                let evictions = if lane.entry.budgeted { evictions } else { 0 };
                assert_eq!(
                    (tally.count("heavy_hits"), tally.count("evicted")),
                    (9, evictions),
                    "{} at {budget}",
                    lane.entry.name
                );
            }
        }
    }
}

#[test]
fn on_uniform_rows_all_policies_are_alike() {
    for (kind, wanted) in [(Excluded, 739.0 / 980.0), (Included, 1373.0 / 1680.0)] {
        let rows = rows_by(kind, |_, len| 1.0 / len as f32);
        for lane in every_lane(3).into_iter().filter(|lane| lane.entry.budgeted) {
            assert_near(retained(&rows, kind, &lane), wanted, lane.entry.name);
        }
    }
}

#[test]
fn without_a_window_h2o_keeps_the_first_positions_for_ever() {
    let rows = rows_by(Excluded, |position, len| if position + 1 == len { 1.0 } else { 0.0 });
    let with_window = |policy, window| lane(policy, 3, &[("recent-window", window)]);
    let (tally, records, _) = assert_agree(&rows, Excluded, &with_window("h2o", 0), &top(2));
    assert_near(mass_and_recall(&tally)[0], 3.0 / 7.0, "h2o");
    assert_eq!(kept_at_the_end(&records), [0, 1, 2]);
    assert_near(retained(&rows, Excluded, &with_window("scissorhands", 0)), 4.0 / 7.0, "scissorhands");
    for policy in ["h2o", "scissorhands"] {
        assert_eq!(retained(&rows, Excluded, &with_window(policy, 1)), 1.0, "{policy}");
    }
}

#[test]
fn rows_whose_kept_sum_is_zero_are_no_information_to_a_renormalized_view() {
    let rows = rows_by(Excluded, |position, len| if position + 1 == len { 1.0 } else { 0.0 });
    let options = Options { view: ViewKind::Renormalized, ..top(2) };
    for lane in every_lane(3) {
        let (tally, ..) = assert_agree(&rows, Excluded, &lane, &options);
        assert!(tally.real("retained_mass_sum").is_finite() && tally.count("steps") == 7, "{}", lane.entry.name);
    }
    let lane = lane("h2o", 3, &[("recent-window", 0)]);
    assert_near(mass_and_recall(&assert_agree(&rows, Excluded, &lane, &options).0)[0], 3.0 / 7.0, "h2o");
}

#[test]
fn with_all_weight_on_the_first_position_only_the_sliding_window_loses_it() {
    let rows = rows_by(Excluded, |position, _| if position == 0 { 1.0 } else { 0.0 });
    for lane in every_lane(3) {
        match lane.entry.name {
            "sliding-window" => assert_near(retained(&rows, Excluded, &lane), 3.0 / 7.0, "sliding-window"),
            "streaming-llm" | "h2o" | "scissorhands" | "tova" | "oracle" | "full" => {
                assert_eq!(retained(&rows, Excluded, &lane), 1.0, "{}", lane.entry.name);
            }
            _ => {}
        }
    }
}

#[test]
fn the_newest_position_survives_every_tie() {
    for kind in [Excluded, Included] {
        let rows = rows_by(kind, |_, len| 1.0 / len as f32);
        for lane in every_lane(3).iter().filter(|lane| !lane.entry.is_bound()) {
            let (_, records, _) = assert_agree(&rows, kind, lane, &top(2));
            let spared = records.iter().all(|record| !record.victims.contains(&record.step));
            assert!(spared, "{}", lane.entry.name);
        }
    }
}

#[test]
fn a_third_is_above_an_even_share_of_three_or_not_as_it_is_stored() {
    let rows = rows_of(&[&[1.0], &[0.5, 0.5], &[1.0 / 3.0; 3]]);
    let folder = Folder::new();
    for (dtype, votes) in [(StoredType::F32, 1.0), (StoredType::F16, 0.0), (StoredType::Bf16, 1.0)] {
        let mut bytes = Vec::new();
        write(&trace(Excluded, &rows), dtype, &mut bytes, &|_| ()).expect("memory takes it");
        let stored = open(folder.write("thirds.safetensors", bytes));
        let row = read_rows(&*stored, 0).remove(2).expect("attention");
        let mut cache = cache_of(&lane("scissorhands", 3, &[("recent-window", 1)]), 3);
        cache.observe(Position(3), 3, Shown::row(&row));
        let probes: Vec<Option<f64>> = (0..3).map(|slot| cache.policy().probe(Slot(slot))).collect();
        assert_eq!(probes, [Some(votes); 3], "{dtype:?}");
    }
}

fn cache_of(lane: &LanePlan, positions: u32) -> Cache {
    let Make::Policy(make) = lane.entry.make else { panic!("{} is no policy", lane.entry.name) };
    let setting = lane.setting(kvsim::budgets::LayerPlace::ONLY);
    let mut cache = Cache::new(lane.entry.name, make(&setting), setting.budget);
    (0..positions).for_each(|position| cache.admit(Position(position)));
    cache
}

#[test]
fn half_of_every_weight_retains_half_and_changes_no_decision() {
    let halved: Rows = trace_a().into_iter().map(|row| row.map(|row| row.iter().map(|w| w / 2.0).collect())).collect();
    for policy in ["h2o", "tova", "snapkv"] {
        let window: &[(&str, usize)] = if policy == "tova" { &[] } else { &[("recent-window", 1)] };
        let [whole, half] =
            [&trace_a(), &halved].map(|rows| assert_agree(rows, Excluded, &lane(policy, 3, window), &top(2)));
        assert_eq!(half.0.real("retained_mass_sum") * 2.0, whole.0.real("retained_mass_sum"), "{policy}");
        assert_eq!(half.0.real("row_mass_sum"), 2.5, "{policy}");
        assert_eq!(victims(&half.1), victims(&whole.1), "{policy}");
    }
}

#[test]
fn positions_leave_a_trace_of_several_layers_by_their_share() {
    let entry = tensor("F32", 1, [0, 4]);
    let mut text: serde_json::Value =
        serde_json::from_str(&header(&[("attention.2.mean", entry)])).expect("a sound header");
    text["__metadata__"]["num_layers"] = "4".into();
    let bytes = safetensors(&text.to_string(), &1.0_f32.to_le_bytes());
    let folder = Folder::new();
    let source = open(folder.write("layer.safetensors", bytes));
    let (tally, _) = logged(&*source, &[lane("pyramidkv", 128, &[])], &top(2)).remove(0);
    assert_eq!(tally.count("budget_sum"), 102, "layer 2 of 4 at an average of 128");
}
