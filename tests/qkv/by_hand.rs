//! The slow replay against cases with exact answers.

use crate::agree;
use crate::slow::cache::Spec;
use crate::slow::figures::{self, Figures};
use crate::slow::file::{Layer, Matrix, OutputNorm, Trace};
use crate::slow::loss::Changes;
use crate::slow::quantise::{Bits, group, token_bytes};
use crate::slow::replay::{Exact, HeldLayer, Step, replay};

fn column(numbers: &[f32]) -> Matrix {
    Matrix::new(1, numbers.to_vec())
}

/// One query head, one channel.
fn layer(q: &[f32], k: &[f32], v: &[f32]) -> Layer {
    Layer::plain(vec![column(q)], column(k), column(v))
}

fn zeros(count: usize) -> Vec<f32> {
    vec![0.0; count]
}

fn run(layer: &Layer, spec: Spec) -> (Figures, Vec<Step>) {
    let exact = Exact::new(layer);
    let steps = replay(&exact, &HeldLayer::new(layer, Bits::FULL), spec);
    (figures::of(&exact, &steps), steps)
}

/// The figures of a window of two, which are those of the crate.
fn window(layer: &Layer) -> Figures {
    let figures = run(layer, Spec::new("sliding-window", 2)).0;
    agree::hold_to(layer, &figures);
    figures
}

#[track_caller]
fn is(found: Option<f64>, wanted: f64) {
    let found = found.expect("something is under it");
    assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
}

#[track_caller]
fn is_nearly(found: Option<f64>, wanted: f64) {
    let found = found.expect("something is under it");
    assert!((found - wanted).abs() < 5e-7, "{found} is not {wanted}");
}

#[test]
fn a_uniform_row_loses_the_value_that_left_the_window() {
    let figures = window(&layer(&zeros(4), &zeros(4), &[1.0, 2.0, 3.0, 4.0]));
    is_nearly(figures.retained_mass.value(), 15.0 / 16.0);
    is(figures.output_error.value(), 1.0 / 20.0);
    is(figures.output_error_full.value(), 1.0 / 5.0);
    is_nearly(figures.value_mass.value(), 39.0 / 40.0);
}

#[test]
fn a_learned_sink_takes_part_in_both_softmaxes() {
    let mut layer = layer(&zeros(4), &zeros(4), &[1.0, 2.0, 3.0, 4.0]);
    layer.sinks = Some(vec![0.0]);
    let (figures, steps) = (window(&layer), run(&layer, Spec::new("sliding-window", 2)).1);
    assert_eq!(Exact::new(&layer).outputs[3][0], [2.0]);
    assert_eq!(steps[3].kept_outputs[0], [2.25]);
    is(figures.output_error.value(), 1.0 / 32.0);
    is_nearly(figures.row_mass.value(), (1.0 / 2.0 + 2.0 / 3.0 + 3.0 / 4.0 + 4.0 / 5.0) / 4.0);
}

#[test]
fn rows_without_an_output_have_no_error() {
    let figures = window(&layer(&zeros(4), &zeros(4), &[1.0, -1.0, 0.0, 3.0]));
    is(figures.output_error.value(), 1.0 / 18.0);
    assert_eq!(figures.zero_output_rows, 2);
    let figures = window(&layer(&zeros(4), &zeros(4), &zeros(4)));
    assert_eq!(
        (figures.output_error.value(), figures.output_cosine.value(), figures.value_mass.value()),
        (None, None, None)
    );
    assert_eq!((figures.large_error_rate.value(), figures.zero_output_rows), (None, 4));
}

#[test]
fn a_kept_output_is_defined_where_nothing_of_the_row_is_kept() {
    let layer = layer(&[1.0; 4], &[1000.0, 0.0, 0.0, 0.0], &[1.0, 2.0, 3.0, 4.0]);
    let (figures, steps) = (window(&layer), run(&layer, Spec::new("sliding-window", 2)).1);
    is(figures.retained_mass.value(), 3.0 / 4.0);
    assert_eq!(steps[3].kept_outputs[0], [3.0]);
    is(figures.output_error.value(), 1.0 / 2.0);
}

#[test]
fn a_soft_cap_bends_logits() {
    let mut layer = layer(&[1.0; 4], &[4.0, 0.0, 0.0, 0.0], &[1.0, 2.0, 3.0, 4.0]);
    is_nearly(window(&layer).output_error.value(), 0.429243);
    layer.softcap = Some(2.0);
    is_nearly(window(&layer).output_error.value(), 0.216556);
}

#[test]
fn what_expires_is_no_loss() {
    let mut layer = layer(&zeros(5), &zeros(5), &[1.0; 5]);
    layer.window = Some(2);
    let (figures, steps) = run(&layer, Spec { recent_window: 1, ..Spec::new("h2o", 4) });
    assert_eq!(figures.output_error.value(), Some(0.0));
    assert_eq!(steps.iter().map(|step| step.expired[0]).sum::<usize>(), 4);
    assert!(steps.iter().all(|step| !step.after_eviction[0]));
}

fn two_heads() -> Layer {
    let mut layer = layer(&zeros(4), &zeros(4), &[1.0, 2.0, 3.0, 4.0]);
    layer.queries.push(column(&zeros(4)));
    layer.output = Some(Matrix::new(2, vec![1.0, 1.0, 0.0, 2.0]));
    layer.residual_norm = Some(vec![1.0, 2.0, 4.0, 8.0]);
    layer
}

#[test]
fn the_heads_of_a_layer_are_taken_together() {
    let figures = window(&two_heads());
    is(figures.layer_error.value(), 2.0_f64.sqrt() / 32.0);
    is(figures.update_error.value(), 1.0 / 20.0);
}

#[test]
fn an_output_norm_stands_behind_the_projection() {
    let mut layer = two_heads();
    layer.output_norm = Some(OutputNorm { gain: vec![2.0, 3.0], epsilon: 11.0 });
    let figures = window(&layer);
    let root = 47.0_f64.sqrt();
    is(figures.layer_error.value(), 13.0_f64.sqrt() * (6.0 / root - 5.0 / 6.0) / 32.0);
    is(figures.update_error.value(), (36.0 / (5.0 * root) - 1.0) / 4.0);
}

#[test]
fn codes_tie_to_even() {
    assert_eq!(group(&[0.0, 0.5, 1.5, 2.5, 15.0], 4).expect("in range"), [0.0, 0.0, 2.0, 2.0, 15.0]);
}

#[test]
fn scales_are_rounded_to_sixteen_bits() {
    let numbers: Vec<f32> = (0..32).map(|number| number as f32).collect();
    assert_eq!(group(&numbers, 4).expect("in range")[31], 31.0 - 1.0 / 256.0);
    assert_eq!(group(&numbers, 2).expect("in range")[31], 31.0 + 1.0 / 128.0);
    assert_eq!(group(&[0.1; 32], 4).expect("in range"), [1638.0 / 16384.0; 32]);
    assert!(group(&[0.0, 1e6], 2).is_err());
}

#[test]
fn a_kept_position_has_its_bytes() {
    assert_eq!([16, 8, 4, 2].map(|bits| token_bytes(64, 64, Bits::both(bits))), [256, 144, 80, 48]);
}

/// The kept sets after rows 3 and 4 of five, budget 3.
fn kept(layer: &Layer, spec: Spec) -> [Vec<usize>; 2] {
    let steps = run(layer, Spec { budget: 3, ..spec }).1;
    [steps[3].kept[0].clone(), steps[4].kept[0].clone()]
}

fn with_window(policy: &'static str, recent_window: usize) -> Spec {
    Spec { recent_window, sinks: 0, ..Spec::new(policy, 3) }
}

#[test]
fn the_longest_key_goes_first() {
    let layer = layer(&zeros(5), &[3.0, 1.0, -2.0, 5.0, 4.0], &zeros(5));
    assert_eq!(kept(&layer, with_window("knorm", 1)), [[1, 2, 3], [1, 2, 4]]);
    assert_eq!(kept(&layer, with_window("knorm", 0)), [[0, 1, 2], [0, 1, 2]]);
}

#[test]
fn the_key_most_like_the_others_goes_first() {
    let keys = Matrix::new(2, vec![1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, -1.0, 0.0]);
    let layer = Layer::plain(vec![Matrix::new(2, zeros(10))], keys, column(&zeros(5)));
    assert_eq!(kept(&layer, with_window("keydiff", 1)), [[1, 2, 3], [2, 3, 4]]);
}

fn with_values() -> Layer {
    let values = Matrix::new(2, vec![3.0, -1.0, 1.0, 0.0, 0.0, 2.0, 1.0, 1.0, 9.0, 9.0]);
    Layer::plain(vec![column(&zeros(5))], column(&zeros(5)), values)
}

#[test]
fn values_change_whom_a_host_gives_up() {
    let layer = with_values();
    assert_eq!(kept(&layer, with_window("h2o", 1)), [[0, 1, 3], [0, 1, 4]]);
    assert_eq!(kept(&layer, with_window("vatp/h2o", 1)), [[0, 2, 3], [0, 2, 4]]);
    assert_eq!(kept(&layer, with_window("tova", 1)), [[1, 2, 3], [2, 3, 4]]);
    assert_eq!(kept(&layer, with_window("caote/tova", 1)), [[0, 2, 3], [0, 2, 4]]);
}

#[test]
fn half_of_those_who_may_stay_are_the_hosts_choice() {
    let mut layer = with_values();
    layer.output = Some(Matrix::new(2, vec![1.0, 0.0, 0.0, 3.0]));
    assert_eq!(kept(&layer, with_window("criticalkv/h2o", 1)), [[0, 2, 3], [0, 2, 4]]);
}

#[test]
fn changes_are_summed_over_heads_and_layers_before_they_are_squared() {
    let of_layer = |number: u32, gradients: [f32; 2]| Layer {
        number,
        gradients: Some(gradients.map(|gradient| column(&[gradient; 4])).to_vec()),
        ..two_heads()
    };
    let layers = vec![of_layer(0, [1.0, 2.0]), of_layer(1, [-1.0, -1.0])];
    let trace = Trace { layers, gradient_samples: 1, gradient_scale: 1.0 };
    let run = |layer| {
        let exact = Exact::new(layer);
        let steps = replay(&exact, &HeldLayer::new(layer, Bits::FULL), Spec::new("sliding-window", 2));
        (exact, steps)
    };
    let runs: Vec<_> = trace.layers.iter().map(run).collect();
    let changes = Changes::new(&trace, &runs);
    assert_eq!(changes.rows(), 1);
    is(changes.joint(), 0.25);
    is(changes.by_layer(), 3.25);
    is(changes.by_head(), 1.75);
    assert_eq!(agree::loss_of_window(&trace.layers, "1", 2), [0.25, 3.25, 1.75].map(Some), "in the crate");
    is(figures::of(&runs[0].0, &runs[0].1).squared_change.value(), 0.25);
}
