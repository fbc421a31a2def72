//! The crate on recorded queries, keys and values.

use crate::common::files::Folder;
use crate::common::lanes::{lane, open, read_rows};
use crate::common::{assert_near, shared};
use crate::slow::attention::rows_of;
use crate::slow::file::read;
use crate::slow::quantise::{Bits, Held};
use crate::tables::LANES;
use kvsim::policy::table::find;
use kvsim::replay::{CachePlan, LanePlan, NoObserver, Options, Outcome, replay, shared_caches_of};
use kvsim::trace::Source;
use kvsim::trace::safetensors::{StoredType, write};

const NAME: &str = "smollm2-qkv-512.safetensors";

fn recording() -> Option<Box<dyn Source>> {
    Some(open(shared::trace(NAME)?))
}

/// The caches of the three KV heads of each layer.
fn caches(source: &dyn Source) -> Vec<CachePlan> {
    shared_caches_of(source.info(), 3).expect("nine query heads share three KV heads")
}

fn outcomes(source: &dyn Source, lanes: &[LanePlan]) -> Vec<Outcome> {
    // Outputs are what rows do not have.
    let meters = kvsim::meter::chosen("mass,heavy,pivotal,peaks,kept").expect("meters of rows");
    replay(source, &caches(source), lanes, &Options { meters, ..Options::default() }, &NoObserver)
        .expect("a sound replay")
}

/// Retained mass of one lane over all caches.
fn mass(outcomes: &[Outcome], lane: usize) -> f64 {
    let mut all = outcomes[0].tallies[lane].clone();
    outcomes[1..].iter().for_each(|outcome| all.merge(&outcome.tallies[lane]));
    all.figure("retained_mass").expect("rows were measured")
}

/// The published lanes of policies that the crate has.
fn published_lanes() -> Vec<(LanePlan, f64)> {
    let known = LANES.iter().filter(|(name, ..)| find(name).is_some() && !NEED_VECTORS.contains(name));
    known.map(|(name, budget, figures)| (lane(name, *budget, &[]), figures[0])).collect()
}

/// Policies that look at more than rows.
const NEED_VECTORS: [&str; 3] = ["knorm", "keydiff", "expected-attention"];

#[test]
fn policies_of_rows_retain_what_was_published() {
    let Some(source) = recording() else { return };
    let (lanes, masses): (Vec<LanePlan>, Vec<f64>) = published_lanes().into_iter().unzip();
    assert_eq!(lanes.len(), 16, "eight policies at two budgets");
    let outcomes = outcomes(&*source, &lanes);
    for (index, (lane, wanted)) in lanes.iter().zip(masses).enumerate() {
        assert_near(mass(&outcomes, index), wanted, &format!("{} @{:?}", lane.entry.name, lane.budget));
    }
}

#[test]
fn rows_written_as_attention_in_f32_give_the_same_figures() {
    let Some(source) = recording() else { return };
    let folder = Folder::new();
    let mut bytes = Vec::new();
    write(&*source, StoredType::F32, &mut bytes, &|_| ()).expect("sound rows");
    let rows = open(folder.write("rows.safetensors", bytes));
    let lanes = ["h2o", "scissorhands", "tova", "snapkv", "oracle"].map(|name| lane(name, 128, &[]));
    let (direct, written) = (outcomes(&*source, &lanes), outcomes(&*rows, &lanes));
    for (direct, written) in direct.iter().zip(&written) {
        assert_eq!((&direct.cache.label, &direct.tallies), (&written.cache.label, &written.tallies));
    }
}

#[test]
fn rebuilt_rows_are_those_of_the_reference() {
    let Some(path) = shared::trace(NAME) else { return };
    let (source, trace) = (open(&path), read(&path));
    for (index, layer) in trace.layers.iter().enumerate() {
        let wanted = rows_of(layer, &Held::keys(&layer.keys, Bits::FULL));
        for (head, wanted) in wanted.iter().enumerate() {
            let found = read_rows(&*source, index * layer.heads() + head);
            for (found, wanted) in found.iter().flatten().zip(&wanted.weights) {
                let off = found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs()).fold(0.0, f32::max);
                assert!(off <= 2e-6, "layer {} head {head}: a weight is off by {off}", layer.number);
            }
        }
    }
}

#[test]
fn layer_fifteen_is_the_attention_that_was_recorded_as_rows() {
    let (Some(source), Some(stored)) = (recording(), shared::trace("smollm2-prose-512-layer15.safetensors")) else {
        return;
    };
    let stored = open(stored);
    for head in 0..9 {
        let (rebuilt, recorded) = (read_rows(&*source, 9 + head), read_rows(&*stored, head));
        for (rebuilt, recorded) in rebuilt.iter().flatten().zip(recorded.iter().flatten()) {
            let off = rebuilt.iter().zip(recorded).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off <= 0.0012, "head {head}: a weight is off by {off}");
        }
    }
    let policies = ["streaming-llm", "h2o", "scissorhands", "tova", "snapkv"];
    let lanes: Vec<LanePlan> =
        policies.iter().flat_map(|name| [64, 128].map(|budget| lane(name, budget, &[]))).collect();
    let layer15: Vec<Outcome> =
        outcomes(&*source, &lanes).into_iter().filter(|outcome| outcome.cache.label.layer == 15).collect();
    let recorded = outcomes(&*stored, &lanes);
    for (index, lane) in lanes.iter().enumerate() {
        let (rebuilt, recorded) = (mass(&layer15, index), mass(&recorded, index));
        assert!((rebuilt - recorded).abs() <= 1e-4, "{}: {rebuilt} and {recorded}", lane.entry.name);
    }
}
