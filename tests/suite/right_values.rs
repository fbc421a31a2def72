//! The figures that a correct build reports on the canonical trace, and the bits of the trace.

use crate::common::assert_near;
use crate::common::files::Folder;
use crate::common::lanes::{
    Parameters, canonical, lane, logged, mass_and_recall, open, read_rows, tallies_of_one, victims,
};
use crate::reference;
use kvsim::replay::{LanePlan, Options};
use kvsim::trace::safetensors::{StoredType, write};

const BUDGETS: [usize; 3] = [256, 512, 1024];
const WINDOWS: [usize; 4] = [16, 32, 64, 128];

/// What a weight becomes when it is stored.
type Rounded = fn(f32) -> f32;

/// Retained mass and recall at each budget.
type Row = [[f64; 2]; 3];

const SCISSORHANDS: Row = [[0.641318, 0.882339], [0.711377, 0.906047], [0.784746, 0.945091]];
const H2O: Row = [[0.643895, 0.886261], [0.714859, 0.913715], [0.784413, 0.945091]];
const STREAMING_LLM: Row = [[0.736691, 0.859419], [0.786153, 0.883480], [0.866203, 0.927572]];
const TOVA: Row = [[0.778128, 0.882339], [0.824012, 0.909793], [0.885888, 0.937247]];
const SNAPKV: Row = [[0.783378, 0.890183], [0.821190, 0.901949], [0.888049, 0.941169]];
const SLIDING_WINDOW: Row = [[0.596637, 0.742171], [0.655518, 0.774107], [0.754149, 0.833734]];
const RANDOM: Row = [[0.737895, 0.865379], [0.807362, 0.900685], [0.861733, 0.924317]];

const BY_BUDGET: &[(&str, Parameters, Row)] = &[
    ("scissorhands", &[], SCISSORHANDS),
    ("h2o", &[], H2O),
    ("streaming-llm", &[], STREAMING_LLM),
    ("tova", &[], TOVA),
    ("snapkv", &[], SNAPKV),
    ("pyramidkv", &[], SNAPKV),
    ("snapkv", &[("pool-kernel", 1)], TOVA),
    ("sliding-window", &[], SLIDING_WINDOW),
    ("random", &[("seed", 1)], RANDOM),
];

/// At budget 256, for each window.
const BY_WINDOW: &[(&str, [[f64; 2]; 4])] = &[
    ("scissorhands", [[0.482876, 0.677718], [0.641318, 0.882339], [0.776694, 0.886261], [0.776694, 0.886261]]),
    ("h2o", [[0.484690, 0.680567], [0.643895, 0.886261], [0.771237, 0.882339], [0.774481, 0.890183]]),
];

fn assert_row(lanes: &[LanePlan], wanted: &[[f64; 2]], name: &str) {
    for (tally, wanted) in tallies_of_one(&canonical(), lanes).iter().zip(wanted) {
        let found = mass_and_recall(tally);
        assert_near(found[0], wanted[0], &format!("{name}: retained mass"));
        assert_near(found[1], wanted[1], &format!("{name}: recall"));
    }
}

#[test]
fn every_policy_retains_at_every_budget_what_was_published() {
    for (policy, parameters, wanted) in BY_BUDGET {
        assert_row(&BUDGETS.map(|budget| lane(policy, budget, parameters)), wanted, policy);
    }
}

#[test]
fn every_recent_window_retains_what_was_published() {
    for (policy, wanted) in BY_WINDOW {
        assert_row(&WINDOWS.map(|window| lane(policy, 256, &[("recent-window", window)])), wanted, policy);
    }
}

#[test]
fn everything_past_the_budget_is_evicted_one_at_a_time() {
    let lanes: Vec<LanePlan> = BY_BUDGET
        .iter()
        .flat_map(|(policy, parameters, _)| BUDGETS.map(|budget| lane(policy, budget, parameters)))
        .collect();
    for (lane, tally) in lanes.iter().zip(tallies_of_one(&canonical(), &lanes)) {
        let evicted = 4096 - lane.budget.expect("all of these have a budget") as u64;
        assert_eq!((tally.count("eviction_calls"), tally.count("evicted")), (evicted, evicted), "{}", lane.entry.name);
    }
}

#[test]
fn full_retains_every_row_to_the_last_bit_and_the_oracle_more_than_any_policy() {
    let lanes = [lane("full", 0, &[]), lane("oracle", 256, &[]), lane("snapkv", 256, &[])];
    let [full, oracle, snapkv] = &tallies_of_one(&canonical(), &lanes)[..] else { panic!("three lanes") };
    assert_eq!(full.real("retained_mass_sum").to_bits(), full.real("row_mass_sum").to_bits());
    assert_eq!((full.count("heavy_hits"), full.count("evicted")), (full.count("heavy_possible"), 0));
    assert!(
        snapkv.real("retained_mass_sum") < oracle.real("retained_mass_sum")
            && oracle.real("retained_mass_sum") < full.real("retained_mass_sum")
    );
}

#[test]
fn snapkv_without_pooling_reports_what_tova_does_while_other_positions_go() {
    for budget in BUDGETS {
        let lanes = [lane("snapkv", budget, &[("pool-kernel", 1)]), lane("tova", budget, &[])];
        let [snapkv, tova] = &logged(&canonical(), &lanes, &Options::default())[..] else { panic!("two lanes") };
        let [a, b] = [mass_and_recall(&snapkv.0), mass_and_recall(&tova.0)];
        assert_near(a[0], b[0], "retained mass");
        assert_eq!(a[1], b[1], "recall at budget {budget}");
        assert_ne!(victims(&snapkv.1), victims(&tova.1), "victims at budget {budget}");
    }
}

#[test]
fn pyramidkv_with_a_single_layer_is_snapkv() {
    for budget in BUDGETS {
        let lanes = [lane("pyramidkv", budget, &[]), lane("snapkv", budget, &[])];
        let [pyramidkv, snapkv] = &logged(&canonical(), &lanes, &Options::default())[..] else { panic!("two lanes") };
        assert_eq!(pyramidkv, snapkv, "budget {budget}");
    }
}

#[test]
fn scissorhands_and_h2o_lie_within_a_hundredth_of_each_other() {
    for budget in BUDGETS {
        let tallies = tallies_of_one(&canonical(), &[lane("scissorhands", budget, &[]), lane("h2o", budget, &[])]);
        let [a, b] = [mass_and_recall(&tallies[0]), mass_and_recall(&tallies[1])];
        assert!((a[0] - b[0]).abs() < 0.01, "retained mass at {budget}: {} and {}", a[0], b[0]);
        assert!((a[1] - b[1]).abs() < 0.01, "recall at {budget}: {} and {}", a[1], b[1]);
    }
}

#[test]
fn a_window_as_wide_as_the_band_retains_a_tenth_more() {
    for policy in ["scissorhands", "h2o"] {
        for budget in [256, 512] {
            let lanes = [32, 64].map(|window| lane(policy, budget, &[("recent-window", window)]));
            let tallies = tallies_of_one(&canonical(), &lanes);
            let [narrow, wide] = [mass_and_recall(&tallies[0])[0], mass_and_recall(&tallies[1])[0]];
            assert!(wide > narrow + 0.1, "{policy} at {budget}: {narrow} with 32, {wide} with 64");
        }
    }
}

#[test]
fn the_generator_makes_the_published_bits_and_those_of_the_slow_one() {
    let rows: Vec<Vec<f32>> = read_rows(&canonical(), 0).into_iter().flatten().collect();
    assert_eq!(rows.len(), 4095);
    assert_eq!(reference::fnv1a_of_rows(&rows[..200]), 0x94b9_4110);
    assert_eq!(reference::fnv1a_of_rows(&rows), 0xbaec_2a10);
    let bits = |row: &Vec<f32>| row.iter().map(|weight| weight.to_bits()).collect::<Vec<_>>();
    let slow = reference::decode_4096(4095);
    let differs = (0..4095).find(|at| bits(&rows[*at]) != bits(&slow[*at]));
    assert_eq!(differs, None, "index of the first row that differs");
}

#[test]
fn a_stored_trace_reads_back_rounded_to_its_type_and_no_further() {
    let written = read_rows(&canonical(), 0);
    let stored: [(StoredType, Rounded); 3] = [
        (StoredType::F32, |weight| weight),
        (StoredType::F16, |weight| half::f16::from_f32(weight).to_f32()),
        (StoredType::Bf16, |weight| half::bf16::from_f32(weight).to_f32()),
    ];
    let folder = Folder::new();
    for (dtype, rounded) in stored {
        let mut bytes = Vec::new();
        write(&canonical(), dtype, &mut bytes, &|_| ()).expect("memory takes it");
        let source = open(folder.write("stored.safetensors", bytes));
        let read = read_rows(&*source, 0);
        let same = |(a, b): (&Option<Vec<f32>>, &Option<Vec<f32>>)| {
            let (a, b) = (a.as_ref().expect("attention"), b.as_ref().expect("attention"));
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| rounded(*a).to_bits() == b.to_bits())
        };
        assert!(read.len() == 4095 && written.iter().zip(&read).all(same), "{dtype:?}");
    }
}
