//! The slow replay against published figures of recorded data.

use crate::common::shared;
use crate::slow::cache::Spec;
use crate::slow::figures::{self, Figures};
use crate::slow::file::{Layer, Trace, read};
use crate::slow::loss::Changes;
use crate::slow::pages::{Lane, Pages};
use crate::slow::quantise::{Bits, KeyGroups};
use crate::slow::replay::{Exact, HeldLayer, Step, replay};
use crate::tables::{BY_CHANNEL, IN_FEW_BITS, LANES, PAGES, SINGLE_LAYERS};

fn recording() -> Option<Trace> {
    Some(read(&shared::trace("smollm2-qkv-512.safetensors")?))
}

#[track_caller]
fn near(found: f64, wanted: f64, what: &str) {
    assert!((found - wanted).abs() <= 1e-6, "{what}: {found} is not {wanted}");
}

fn values(figures: &Figures) -> [f64; 7] {
    let Figures { retained_mass, value_mass, output_error, output_cosine, .. } = *figures;
    let all = [
        retained_mass,
        value_mass,
        output_error,
        output_cosine,
        figures.large_error_rate,
        figures.update_error,
        figures.layer_error,
    ];
    all.map(|mean| mean.value().expect("every column is filled"))
}

/// The layers of a recording with what lanes are measured against.
struct Bench<'a> {
    exact: Vec<Exact<'a>>,
    held: Vec<HeldLayer>,
}

impl<'a> Bench<'a> {
    fn new(layers: &'a [Layer], bits: Bits) -> Bench<'a> {
        Bench {
            exact: layers.iter().map(Exact::new).collect(),
            held: layers.iter().map(|layer| HeldLayer::new(layer, bits)).collect(),
        }
    }

    fn steps(&self, spec: Spec) -> Vec<Vec<Step>> {
        self.exact.iter().zip(&self.held).map(|(exact, held)| replay(exact, held, spec)).collect()
    }

    /// Of each layer, and of all.
    fn figures(&self, spec: Spec) -> (Vec<Figures>, Figures) {
        let steps = self.steps(spec);
        let each: Vec<Figures> =
            self.exact.iter().zip(&steps).map(|(exact, steps)| figures::of(exact, steps)).collect();
        let mut all = Figures::default();
        each.iter().for_each(|figures| all.merge(figures));
        (each, all)
    }
}

fn check_lane(bench: &Bench<'_>, name: &'static str, budget: usize, wanted: &[f64; 7]) {
    let (layers, all) = bench.figures(Spec::new(name, budget));
    for (index, (found, wanted)) in values(&all).into_iter().zip(wanted).enumerate() {
        near(found, *wanted, &format!("{name} @{budget}: column {index}"));
    }
    let single = SINGLE_LAYERS.iter().filter(|(of, _)| *of == name && budget == 128);
    for (layer, wanted) in single.flat_map(|(_, wanted)| layers.iter().zip(wanted)) {
        let [mass, _, error, _, _, update, layer] = values(layer);
        let found = [mass, error, update, layer];
        found.iter().zip(wanted).for_each(|(found, wanted)| near(*found, *wanted, &format!("{name}: a single layer")));
    }
}

fn check_lanes(chosen: impl Fn(&str, usize) -> bool) {
    let Some(trace) = recording() else { return };
    let bench = Bench::new(&trace.layers, Bits::FULL);
    for (name, budget, wanted) in LANES.iter().filter(|(name, budget, _)| chosen(name, *budget)) {
        check_lane(&bench, name, *budget, wanted);
    }
}

#[test]
fn lanes_of_every_kind_have_the_published_figures() {
    check_lanes(|name, budget| budget == 128 && ["tova", "caote/tova", "oracle"].contains(&name));
}

#[test]
#[ignore = "a minute: run it after a change to the reference"]
fn all_lanes_have_the_published_figures() {
    check_lanes(|_, _| true);
    let Some(trace) = recording() else { return };
    let bench = Bench::new(&trace.layers, Bits::FULL);
    let figures = bench.figures(Spec { recent_window: 31, ..Spec::new("criticalkv/snapkv", 128) }).1;
    let [mass, _, error, _, _, update, layer] = values(&figures);
    let wanted = [0.925614, 0.106616, 0.079301, 0.018008];
    [mass, error, update, layer]
        .iter()
        .zip(wanted)
        .for_each(|(found, wanted)| near(*found, wanted, "criticalkv's half"));
}

fn check_bits(layers: &[Layer], bits: Bits, column: usize, table: &[(&'static str, Vec<[f64; 2]>)]) {
    let bench = Bench::new(layers, bits);
    for (name, wanted) in table {
        let figures = bench.figures(Spec::new(name, 128)).1;
        let [error, layer] = wanted[column];
        let what = format!("{name} in {bits:?}");
        near(figures.output_error.value().expect("filled"), error, &what);
        near(figures.layer_error.value().expect("filled"), layer, &what);
    }
}

#[test]
#[ignore = "minutes: run it after a change to the reference"]
fn caches_in_few_bits_have_the_published_figures() {
    let Some(trace) = recording() else { return };
    let mixed = |keys, values| Bits { keys, values, key_groups: KeyGroups::Position };
    let table: Vec<_> = IN_FEW_BITS.iter().map(|(name, wanted)| (*name, wanted.to_vec())).collect();
    let all = [Bits::FULL, Bits::both(8), Bits::both(4), Bits::both(2), mixed(8, 4), mixed(4, 8)];
    for (column, bits) in all.into_iter().enumerate() {
        check_bits(&trace.layers, bits, column, &table);
    }
    let table: Vec<_> = BY_CHANNEL.iter().map(|(name, wanted)| (*name, wanted.to_vec())).collect();
    for (column, bits) in all.into_iter().enumerate().take(5) {
        check_bits(&trace.layers, Bits { key_groups: KeyGroups::Channel, ..bits }, column, &table);
    }
}

#[test]
#[ignore = "a minute: run it after a change to the reference"]
fn what_policies_retain_when_they_see_few_bits_is_as_published() {
    let Some(trace) = recording() else { return };
    let wanted =
        [(8, [0.921056, 0.938428, 0.947504]), (4, [0.920359, 0.936846, 0.947198]), (2, [0.909333, 0.918146, 0.933632])];
    for (bits, masses) in wanted {
        let bench = Bench::new(&trace.layers, Bits::both(bits));
        for (name, mass) in ["h2o", "scissorhands", "tova"].into_iter().zip(masses) {
            let figures = bench.figures(Spec::new(name, 128)).1;
            near(figures.retained_mass.value().expect("filled"), mass, &format!("{name} in {bits} bits"));
        }
    }
}

#[test]
#[ignore = "a minute: run it after a change to the reference"]
fn kept_sets_occupy_the_published_pages() {
    let Some(trace) = recording() else { return };
    let bench = Bench::new(&trace.layers, Bits::FULL);
    for (name, wanted) in PAGES {
        let steps = bench.steps(Spec::new(name, 128));
        let lane = Lane(&steps);
        let found = [lane.compacted(16), lane.in_place(16), lane.of_layers(16), lane.of_trace(16)];
        for (Pages { mean, peak, last }, (wanted_mean, wanted_peak, wanted_last)) in found.into_iter().zip(wanted) {
            let close = |found: f64, wanted: f64| (found - wanted).abs() <= 0.005 + 1e-9;
            assert!(
                close(mean, *wanted_mean) && peak == *wanted_peak && close(last, *wanted_last),
                "{name}: {found:?}"
            );
        }
    }
}

/// Loss, by layers, by heads, mean square of the change, retained mass, of full caches, peak misses.
const LOSSES: &[(&str, [f64; 7])] = &[
    ("h2o", [0.0469926, 0.0405907, 0.0519785, 0.128600, 0.945038, 0.920775, 0.0133133]),
    ("scissorhands", [0.0374069, 0.0347660, 0.0422867, 0.114343, 0.950874, 0.929187, 0.0104104]),
    ("tova", [0.0438585, 0.0437589, 0.0514296, 0.137923, 0.959450, 0.941549, 0.0131798]),
    ("streaming-llm", [0.198236, 0.208650, 0.272706, 0.489490, 0.853080, 0.788223, 0.263797]),
    ("sliding-window", [2.50703, 2.42192, 2.29420, 10.3188, 0.629485, 0.465924, 0.792793]),
];

/// The change of the whole model by sample at rows 49, 100 and 159, and that of layer 15 at row 100.
const CHANGES: &[(&str, [[f64; 2]; 4])] = &[
    ("h2o", [[0.00651953, 0.0105749], [0.537193, 0.324399], [0.0711448, 0.183147], [0.123697, 0.225524]]),
    ("tova", [[-0.000916929, -0.000515492], [0.196696, 0.486313], [0.236378, 0.154663], [0.0815108, 0.249550]]),
    ("sliding-window", [[0.320694, 0.597643], [3.20982, 1.53850], [-0.742730, 0.880138], [-0.648226, -0.943752]]),
];

#[test]
fn gradients_give_the_published_losses() {
    let Some(path) = shared::trace("smollm2-fisher-160.safetensors") else { return };
    let trace = read(&path);
    for (name, wanted) in LOSSES {
        let run = |layer| {
            let exact = Exact::new(layer);
            let steps =
                replay(&exact, &HeldLayer::new(layer, Bits::FULL), Spec { recent_window: 16, ..Spec::new(name, 48) });
            (exact, steps)
        };
        let runs: Vec<_> = trace.layers.iter().map(run).collect();
        check_loss(&Changes::new(&trace, &runs), &runs, name, wanted);
    }
}

fn check_loss(changes: &Changes, runs: &[(Exact<'_>, Vec<Step>)], name: &str, wanted: &[f64; 7]) {
    assert_eq!(changes.rows(), 111);
    let mut all = Figures::default();
    runs.iter().for_each(|(exact, steps)| all.merge(&figures::of(exact, steps)));
    let losses = [changes.joint(), changes.by_layer(), changes.by_head(), all.squared_change.value()];
    let masses = [all.retained_mass.value(), all.retained_mass_full.value(), all.peak_misses_full.value()];
    for (found, wanted) in losses.into_iter().chain(masses).zip(wanted) {
        close(found.expect("there are counted rows"), *wanted, name);
    }
    for (_, rows) in CHANGES.iter().filter(|(of, _)| *of == name) {
        for ((t, layer), wanted) in [(49, None), (100, None), (159, None), (100, Some(15))].into_iter().zip(rows) {
            (0..2).for_each(|sample| close(changes.at(sample, t, layer), wanted[sample], name));
        }
    }
    assert_eq!((changes.at(0, 48, None), changes.at(1, 48, None)), (0.0, 0.0));
}

/// To the six digits that were published.
#[track_caller]
fn close(found: f64, wanted: f64, what: &str) {
    assert!((found - wanted).abs() <= 1e-5 * wanted.abs(), "{what}: {found} is not {wanted}");
}
