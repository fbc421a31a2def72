//! The crate's figures of outputs on recorded queries, keys, values and gradients.

use crate::agree;
use crate::common::lanes::{lane, open};
use crate::common::shared;
use crate::tables::{BY_CHANNEL, IN_FEW_BITS, LANES, SINGLE_LAYERS};
use kvsim::keeping::Keeping;
use kvsim::policy::table::find;
use kvsim::quantise::{KeyGroups, KvBits};
use kvsim::replay::{LanePlan, NoObserver, Options, Outcome, Tally, replay, shared_caches_of};
use kvsim::trace::Source;

/// The columns of the table of lanes.
const COLUMNS: [&str; 7] =
    ["retained_mass", "value_mass", "output_error", "output_cosine", "large_error_rate", "update_error", "layer_error"];

fn outcomes(source: &dyn Source, lanes: &[LanePlan], options: &Options) -> Vec<Outcome> {
    let caches = shared_caches_of(source.info(), 3).expect("nine query heads share three KV heads");
    replay(source, &caches, lanes, options, &NoObserver).expect("a sound replay")
}

/// What one lane counted on some caches.
fn merged<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>, lane: usize) -> Tally {
    let mut all = Tally::default();
    outcomes.into_iter().for_each(|outcome| all.merge(&outcome.tallies[lane]));
    all
}

#[track_caller]
fn near(found: Option<f64>, wanted: f64, what: &str) {
    let found = found.expect("the figure is filled");
    assert!((found - wanted).abs() <= 1e-6, "{what}: {found} is not {wanted}");
}

/// A published lane.
fn lane_of(name: &str, budget: usize) -> Option<LanePlan> {
    let policy = name.split('/').next()?;
    find(policy).map(|_| agree::lane_of(name, budget, 32))
}

#[test]
fn lanes_have_the_published_figures() {
    let Some(path) = shared::trace("smollm2-qkv-512.safetensors") else { return };
    let source = open(path);
    let known = LANES.iter().filter_map(|(name, budget, wanted)| Some((lane_of(name, *budget)?, name, budget, wanted)));
    let known: Vec<_> = known.collect();
    let lanes: Vec<LanePlan> = known.iter().map(|(lane, ..)| lane.clone()).collect();
    let outcomes = outcomes(&*source, &lanes, &Options::default());
    for (index, (_, name, budget, wanted)) in known.iter().enumerate() {
        let tally = merged(&outcomes, index);
        for (column, wanted) in COLUMNS.into_iter().zip(*wanted) {
            near(tally.figure(column), *wanted, &format!("{name} @{budget}: {column}"));
        }
        let single = SINGLE_LAYERS.iter().filter(|(of, _)| of == *name && **budget == 128);
        for (layer, wanted) in single.flat_map(|(_, wanted)| [3, 15, 24].into_iter().zip(wanted)) {
            let tally = merged(outcomes.iter().filter(|outcome| outcome.cache.label.layer == layer), index);
            for (column, wanted) in ["retained_mass", "output_error", "update_error", "layer_error"].iter().zip(wanted)
            {
                near(tally.figure(column), *wanted, &format!("{name} @{budget}: layer {layer}: {column}"));
            }
        }
    }
    let single = &outcomes[0].tallies[0];
    assert_eq!((single.figure("layer_error"), single.figure("update_error")), (None, None), "of a single cache");
    assert!(single.figure("output_error").is_some());
}

/// Loss, by layers, by heads, mean square of the change, retained mass, of full caches.
const LOSSES: &[(&str, [f64; 6])] = &[
    ("h2o", [0.0469926, 0.0405907, 0.0519785, 0.128600, 0.945038, 0.920775]),
    ("scissorhands", [0.0374069, 0.0347660, 0.0422867, 0.114343, 0.950874, 0.929187]),
    ("tova", [0.0438585, 0.0437589, 0.0514296, 0.137923, 0.959450, 0.941549]),
    ("streaming-llm", [0.198236, 0.208650, 0.272706, 0.489490, 0.853080, 0.788223]),
    ("sliding-window", [2.50703, 2.42192, 2.29420, 10.3188, 0.629485, 0.465924]),
];

const LOSS_COLUMNS: [&str; 6] = [
    "predicted_loss",
    "predicted_loss_layers",
    "predicted_loss_heads",
    "output_change",
    "retained_mass",
    "retained_mass_full",
];

#[test]
fn gradients_give_the_published_losses_with_any_number_of_threads() {
    let Some(path) = shared::trace("smollm2-fisher-160.safetensors") else { return };
    let source = open(path);
    let windows = [("recent-window", 16)];
    let parameters = |name: &str| if ["h2o", "scissorhands"].contains(&name) { &windows[..] } else { &[] };
    let mut lanes: Vec<LanePlan> = LOSSES.iter().map(|(name, _)| lane(name, 48, parameters(name))).collect();
    lanes.push(lane("h2o", 160, &windows));
    let run = |threads| outcomes(&*source, &lanes, &Options { threads, ..Options::default() });
    let found = run(1);
    for (index, (name, wanted)) in LOSSES.iter().enumerate() {
        let tally = merged(&found, index);
        assert_eq!(tally.count("predicted_loss_rows"), 2 * 111, "rows and samples");
        for (column, wanted) in LOSS_COLUMNS.iter().zip(wanted) {
            let found = tally.figure(column).expect("there are counted rows");
            assert!((found - wanted).abs() <= 1e-5 * wanted, "{name}: {column}: {found} is not {wanted}");
        }
    }
    let whole = merged(&found, LOSSES.len());
    assert_eq!((whole.figure("predicted_loss"), whole.figure("output_error")), (None, Some(0.0)), "nothing is lost");
    assert_eq!(whole.figure("output_change"), None, "no row comes after an eviction");
    for (one, other) in found.iter().zip(run(2)) {
        assert_eq!(one.tallies, other.tallies, "{}", one.cache.label);
    }
}

/// A published lane at 128 that holds keys and values in few bits.
fn in_bits(name: &str, bits: &str, key_groups: KeyGroups) -> Option<LanePlan> {
    let plan = lane_of(name, 128)?;
    let bits = KvBits { key_groups, ..bits.parse().expect("sound bits") };
    Some(LanePlan { keeping: Keeping { bits: Some(bits), ..plan.keeping }, ..plan })
}

fn check_bits(source: &dyn Source, table: &[(&str, &[[f64; 2]])], groups: KeyGroups) {
    let all = ["16", "8", "4", "2", "8/4", "4/8"];
    let cells: Vec<(LanePlan, String, [f64; 2])> = table
        .iter()
        .flat_map(|(name, wanted)| all.into_iter().zip(*wanted).map(move |(bits, wanted)| (name, bits, wanted)))
        .filter_map(|(name, bits, wanted)| Some((in_bits(name, bits, groups)?, format!("{name} in {bits}"), *wanted)))
        .collect();
    let lanes: Vec<LanePlan> = cells.iter().map(|(lane, ..)| lane.clone()).collect();
    let found = outcomes(source, &lanes, &Options::default());
    for (index, (_, what, [error, layer])) in cells.iter().enumerate() {
        let tally = merged(&found, index);
        near(tally.figure("output_error"), *error, &format!("{what}: output_error"));
        near(tally.figure("layer_error"), *layer, &format!("{what}: layer_error"));
    }
}

#[test]
fn caches_in_few_bits_have_the_published_figures() {
    let Some(path) = shared::trace("smollm2-qkv-512.safetensors") else { return };
    let source = open(path);
    let table: Vec<(&str, &[[f64; 2]])> = IN_FEW_BITS.iter().map(|(name, wanted)| (*name, &wanted[..])).collect();
    check_bits(&*source, &table, KeyGroups::Position);
    let table: Vec<(&str, &[[f64; 2]])> = BY_CHANNEL.iter().map(|(name, wanted)| (*name, &wanted[..])).collect();
    check_bits(&*source, &table, KeyGroups::Channel);
}

#[test]
fn policies_decide_by_what_is_held_and_memory_is_counted() {
    let Some(path) = shared::trace("smollm2-qkv-512.safetensors") else { return };
    let source = open(path);
    let wanted = [
        ("8", [0.921056, 0.938428, 0.947504], 144.0),
        ("4", [0.920359, 0.936846, 0.947198], 80.0),
        ("2", [0.909333, 0.918146, 0.933632], 48.0),
    ];
    for (bits, masses, bytes) in wanted {
        let lanes: Vec<LanePlan> = ["h2o", "scissorhands", "tova"]
            .iter()
            .filter_map(|name| in_bits(name, bits, KeyGroups::Position))
            .collect();
        let found = outcomes(&*source, &lanes, &Options::default());
        for (index, mass) in masses.into_iter().enumerate() {
            let tally = merged(&found, index);
            near(tally.figure("retained_mass"), mass, bits);
            assert_eq!(tally.count("token_bytes"), 9 * bytes as u64, "{bits} bits");
            assert_eq!(tally.count("kv_bytes_peak"), 9 * 128 * bytes as u64, "{bits} bits");
            assert_eq!(tally.figure("memory_ratio"), Some(512.0 * 256.0 / (128.0 * bytes)), "{bits} bits");
        }
    }
}
