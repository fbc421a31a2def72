//! Figures of outputs, and the decisions of policies that look at keys and values, against the slow replay.

use crate::common::files::Folder;
use crate::common::lanes::{lane, open};
use crate::made::{File, Shape, Stored, layer, numbers};
use crate::random::Generator;
use crate::slow::cache::Spec;
use crate::slow::figures::{self, Figures};
use crate::slow::file::{Layer, Matrix, OutputNorm, Trace};
use crate::slow::loss::Changes;
use crate::slow::quantise::{self, Bits};
use crate::slow::replay::{Exact, HeldLayer, Step, replay};
use kvsim::keeping::Keeping;
use kvsim::quantise::{KeyGroups, KvBits};
use kvsim::replay::{LanePlan, NoObserver, Options, Tally, shared_caches_of};
use kvsim::trace::Source;

const SHAPE: Shape = Shape { heads: 4, kv_heads: 2, positions: 75, width: 20, value_width: 35 };

/// Layers with everything that may stand behind heads.
fn layers() -> Vec<Layer> {
    let mut random = Generator::seeded(7);
    let mut full = |number: u32| {
        let plain = layer(SHAPE, number + 1, Stored::F16);
        let mut of = |count: usize| numbers(&mut random, count, Stored::F16);
        let positive = |numbers: Vec<f32>| numbers.into_iter().map(|number| f64::from(number.abs() + 0.5)).collect();
        let gradients = (0..4).map(|_| Matrix::new(35, of(3 * 75 * 35))).collect();
        Layer {
            number,
            output: Some(Matrix::new(4 * 35, of(24 * 4 * 35))),
            residual_norm: Some(positive(of(75))),
            gradients: Some(gradients),
            ..plain
        }
    };
    let [plain, window, capped, sinks, normed] = [2, 3, 4, 5, 6].map(&mut full);
    let gain = (0..24).map(|index| f64::from(index as f32 / 8.0 + 0.5)).collect();
    vec![
        plain,
        Layer { window: Some(19), ..window },
        Layer { softcap: Some(1.5), scale: 3.0, ..capped },
        Layer { sinks: Some(vec![0.5, -20.0, 3.0, 0.0]), window: Some(40), ..sinks },
        Layer { output_norm: Some(OutputNorm { gain, epsilon: 0.25 }), ..normed },
    ]
}

const LANES: [(&str, usize); 12] = [
    ("sliding-window", 12),
    ("streaming-llm", 12),
    ("h2o", 24),
    ("tova", 12),
    ("knorm", 24),
    ("keydiff", 24),
    ("vatp/snapkv", 24),
    ("vatp/tova", 24),
    ("caote/scissorhands", 24),
    ("caote/tova", 12),
    ("criticalkv/h2o", 24),
    ("expected-attention", 24),
];

fn spec(name: &'static str, budget: usize) -> Spec {
    Spec { recent_window: 8, ..Spec::new(name, budget) }
}

/// A lane as the crate has it: `vatp/h2o` is vatp with that host.
pub fn lane_of(name: &str, budget: usize, recent_window: usize) -> LanePlan {
    let (policy, host) = name.split_once('/').map_or((name, None), |(policy, host)| (policy, Some(host)));
    let mut plan = lane(policy, budget, &[]);
    for (parameter, _) in plan.entry.parameters {
        match (parameter.name, host) {
            ("recent-window", _) => {
                plan.values.set(parameter, parameter.parse(&recent_window.to_string()).expect("a count"));
            }
            ("host", Some(host)) => plan.values.set(parameter, parameter.parse(host).expect("a host")),
            _ => {}
        }
    }
    plan
}

fn outcomes(source: &dyn Source, lanes: &[LanePlan], options: &Options) -> Vec<Vec<Tally>> {
    let kv_heads = source.info().facts.kv_heads.of(source.info().streams[0].label.layer).expect("they are counted");
    let caches = shared_caches_of(source.info(), kv_heads).expect("query heads share KV heads");
    let outcomes = kvsim::replay::replay(source, &caches, lanes, options, &NoObserver).expect("a sound replay");
    outcomes.into_iter().map(|outcome| outcome.tallies).collect()
}

fn merged(outcomes: &[Vec<Tally>], lane: usize) -> Tally {
    let mut all = Tally::default();
    outcomes.iter().for_each(|tallies| all.merge(&tallies[lane]));
    all
}

#[track_caller]
fn close(found: Option<f64>, wanted: Option<f64>, what: &str) {
    let (Some(found), Some(wanted)) = (found, wanted) else { return assert_eq!(found, wanted, "{what}") };
    assert!((found - wanted).abs() <= 2e-5 * wanted.abs() + 1e-9, "{what}: {found} is not {wanted}");
}

/// Holds the crate to what the reference says of a window of two on a layer, to the rounding of f32.
pub fn hold_to(layer: &Layer, figures: &Figures) {
    let folder = Folder::new();
    let source = open(folder.write("made.safetensors", File::of(std::slice::from_ref(layer), Stored::F32).bytes()));
    let tally = merged(&outcomes(&*source, &[lane_of("sliding-window", 2, 0)], &Options::default()), 0);
    assert_figures(&tally, figures, "a window of two");
}

fn assert_as_reference(tally: &Tally, figures: &Figures, changes: &Changes, what: &str) {
    assert_figures(tally, figures, what);
    let wanted = [
        ("predicted_loss", changes.joint()),
        ("predicted_loss_layers", changes.by_layer()),
        ("predicted_loss_heads", changes.by_head()),
    ];
    for (column, wanted) in wanted {
        close(tally.figure(column), wanted, &format!("{what}: {column}"));
    }
}

fn assert_figures(tally: &Tally, figures: &Figures, what: &str) {
    let wanted = [
        ("retained_mass", figures.retained_mass.value()),
        ("value_mass", figures.value_mass.value()),
        ("output_error", figures.output_error.value()),
        ("output_error_full", figures.output_error_full.value()),
        ("large_error_rate", figures.large_error_rate.value()),
        ("output_cosine", figures.output_cosine.value()),
        ("output_change", figures.squared_change.value()),
        ("layer_error", figures.layer_error.value()),
        ("update_error", figures.update_error.value()),
    ];
    for (column, wanted) in wanted {
        close(tally.figure(column), wanted, &format!("{what}: {column}"));
    }
    assert_eq!(tally.count("zero_output_rows"), figures.zero_output_rows, "{what}");
}

#[test]
fn figures_and_decisions_are_those_of_the_slow_replay() {
    let trace = Trace { layers: layers(), gradient_samples: 3, gradient_scale: 1.0 };
    let folder = Folder::new();
    let source = open(folder.write("made.safetensors", File::of(&trace.layers, Stored::F16).bytes()));
    let lanes: Vec<LanePlan> = LANES.iter().map(|(name, budget)| lane_of(name, *budget, 8)).collect();
    let found = outcomes(&*source, &lanes, &Options::default());
    for (index, (name, budget)) in LANES.iter().enumerate() {
        let run = |layer| -> (Exact<'_>, Vec<Step>) {
            let exact = Exact::new(layer);
            let steps = replay(&exact, &HeldLayer::new(layer, Bits::FULL), spec(name, *budget));
            (exact, steps)
        };
        let runs: Vec<_> = trace.layers.iter().map(run).collect();
        let mut figures = Figures::default();
        runs.iter().for_each(|(exact, steps)| figures.merge(&figures::of(exact, steps)));
        let what = format!("{name} @{budget}");
        assert_as_reference(&merged(&found, index), &figures, &Changes::new(&trace, &runs), &what);
    }
    let other = outcomes(&*source, &lanes, &Options { threads: 3, ..Options::default() });
    assert_eq!(found, other, "with another number of threads");
}

#[test]
fn what_is_held_in_few_bits_is_that_of_the_slow_replay() {
    let trace = Trace { layers: layers(), gradient_samples: 3, gradient_scale: 1.0 };
    let folder = Folder::new();
    let source = open(folder.write("made.safetensors", File::of(&trace.layers, Stored::F16).bytes()));
    for (keys, values, groups) in [(4, 4, false), (4, 8, true), (16, 2, false), (8, 16, true)] {
        let key_groups = if groups { KeyGroups::Channel } else { KeyGroups::Position };
        let with_bits = |plan: LanePlan| {
            let bits = Some(KvBits { keys, values, key_groups });
            LanePlan { keeping: Keeping { bits, ..plan.keeping }, ..plan }
        };
        let names = ["streaming-llm", "h2o", "keydiff", "vatp/tova", "expected-attention"];
        let lanes: Vec<LanePlan> = names.iter().map(|name| with_bits(lane_of(name, 24, 8))).collect();
        let found = outcomes(&*source, &lanes, &Options::default());
        for (index, name) in names.into_iter().enumerate() {
            let key_groups = if groups { quantise::KeyGroups::Channel } else { quantise::KeyGroups::Position };
            let bits = Bits { keys, values, key_groups };
            let run = |layer| {
                let exact = Exact::new(layer);
                let steps = replay(&exact, &HeldLayer::new(layer, bits), spec(name, 24));
                figures::of(&exact, &steps)
            };
            let mut figures = Figures::default();
            trace.layers.iter().for_each(|layer| figures.merge(&run(layer)));
            let tally = merged(&found, index);
            let what = format!("{name} in {bits:?}");
            close(tally.figure("retained_mass"), figures.retained_mass.value(), &what);
            close(tally.figure("value_mass"), figures.value_mass.value(), &what);
            close(tally.figure("output_error"), figures.output_error.value(), &what);
            close(tally.figure("layer_error"), figures.layer_error.value(), &what);
            assert_eq!(tally.count("predicted_loss_rows"), 3 * 75, "every row is another: {what}");
        }
    }
}

/// The joint loss of a window of 12 over layers of these gradients.
fn loss(layers: &[Layer], scale: &str) -> [Option<f64>; 3] {
    loss_of_window(layers, scale, 12)
}

/// The loss of a window, joint, by layers and by heads.
pub fn loss_of_window(layers: &[Layer], scale: &str, window: usize) -> [Option<f64>; 3] {
    let folder = Folder::new();
    let mut file = File::of(layers, Stored::F16);
    file.say("gradient_scale", scale);
    let source = open(folder.write("made.safetensors", file.bytes()));
    let tally = merged(&outcomes(&*source, &[lane_of("sliding-window", window, 0)], &Options::default()), 0);
    ["predicted_loss", "predicted_loss_layers", "predicted_loss_heads"].map(|column| tally.figure(column))
}

fn with_gradients(layers: &[Layer], change: impl Fn(usize, &Matrix) -> Matrix) -> Vec<Layer> {
    let of_layer = |layer: &Layer| {
        let gradients = layer.gradients.iter().flatten().enumerate();
        Layer { gradients: Some(gradients.map(|(head, matrix)| change(head, matrix)).collect()), ..layer.clone() }
    };
    layers.iter().map(of_layer).collect()
}

fn times(matrix: &Matrix, factor: f32) -> Matrix {
    Matrix::new(matrix.width, matrix.numbers.iter().map(|number| number * factor).collect())
}

#[test]
fn the_loss_is_a_square_of_gradients_and_knows_their_signs() {
    let layers = layers();
    let [plain, ..] = loss(&layers, "1");
    let plain = plain.expect("rows after an eviction");
    let is = |found: [Option<f64>; 3], wanted: f64| {
        let found = found[0].expect("rows after an eviction");
        assert!((found - wanted).abs() <= 1e-12 * wanted, "{found} is not {wanted}");
    };
    is(loss(&with_gradients(&layers, |_, matrix| times(matrix, 2.0)), "1"), 4.0 * plain);
    is(loss(&layers, "2"), plain / 4.0);
    is(loss(&with_gradients(&layers, |_, matrix| times(matrix, -1.0)), "1"), plain);
    let one = |head, matrix: &Matrix| times(matrix, if head == 1 { -1.0 } else { 1.0 });
    assert_ne!(loss(&with_gradients(&layers, one), "1")[0], Some(plain), "of one head");
    let copied = |_, matrix: &Matrix| Matrix::new(matrix.width, [&matrix.numbers[..], &matrix.numbers].concat());
    is(loss(&with_gradients(&layers, copied), "1"), plain);
    let [joint, by_layer, by_head] = loss(&layers[..1], "1");
    assert_eq!(joint, by_layer, "one layer");
    assert_ne!(joint, by_head);
}

#[test]
fn outputs_of_some_rows_are_measured_where_that_is_asked_for() {
    let folder = Folder::new();
    let source = open(folder.write("made.safetensors", File::of(&layers(), Stored::F16).bytes()));
    let options = Options { output_every: 10, ..Options::default() };
    let tally = merged(&outcomes(&*source, &[lane_of("tova", 12, 0)], &options), 0);
    assert_eq!((tally.count("output_rows"), tally.count("rows_measured")), (8 * 20, 75 * 20), "rows 0, 10, ..., 70");
    assert_eq!((tally.count("layer_error_rows"), tally.count("predicted_loss_rows")), (8 * 5, 3 * 6));
}

#[test]
fn what_a_trace_does_not_hold_is_refused_by_name() {
    let folder = Folder::new();
    let bare = [layer(SHAPE, 1, Stored::F16)];
    let source = open(folder.write("made.safetensors", File::of(&bare, Stored::F16).bytes()));
    let caches = shared_caches_of(source.info(), 2).expect("shared");
    let plan = lane_of("criticalkv", 24, 8);
    let refused = kvsim::replay::replay(&*source, &caches, &[plan], &Options::default(), &NoObserver);
    let problem = refused.expect_err("there is no projection").to_string();
    assert!(problem.contains("policy criticalkv: it needs the projections behind its heads"), "{problem}");
}
