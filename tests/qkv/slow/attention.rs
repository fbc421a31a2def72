//! Logits, rows and outputs, in f64.

use super::file::{Layer, Matrix};
use super::quantise::Held;

/// The sum of products, channels ascending.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// The logits of row `t` of a query head, one for each position; minus infinity outside its window.
pub fn logits(layer: &Layer, head: usize, keys: &Held, t: usize) -> Vec<f64> {
    let query = layer.queries[head].row(t);
    let logit = |j: usize| {
        if layer.window.is_some_and(|window| j + window < t + 1) {
            return f64::NEG_INFINITY;
        }
        let scaled = layer.scale * dot(query, keys.row(j, t));
        layer.softcap.map_or(scaled, |cap| cap * (scaled / cap).tanh())
    };
    (0..=t).map(logit).collect()
}

/// Softmax over these logits, with a learned sink in its denominator.
pub fn softmax(logits: &[f64], sink: Option<f64>) -> Vec<f64> {
    let most = logits.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    let raised: Vec<f64> = logits.iter().map(|logit| (logit - most).exp()).collect();
    let total = raised.iter().sum::<f64>() + sink.map_or(0.0, |sink| (sink - most).exp());
    raised.into_iter().map(|raised| raised / total).collect()
}

/// What a head hands on that holds these positions only: a softmax over them alone, and their values. With all
/// positions it is the output, and nothing is computed otherwise.
pub fn output(logits: &[f64], sink: Option<f64>, positions: &[usize], values: &Matrix) -> Vec<f64> {
    let attended: Vec<usize> = positions.iter().copied().filter(|j| logits[*j] > f64::NEG_INFINITY).collect();
    let weights = softmax(&attended.iter().map(|j| logits[*j]).collect::<Vec<_>>(), sink);
    let mut output = vec![0.0; values.width];
    for (j, weight) in attended.iter().zip(weights) {
        for (sum, value) in output.iter_mut().zip(values.row(*j)) {
            *sum += weight * f64::from(*value);
        }
    }
    output
}

/// The rows of a query head.
pub struct HeadRows {
    /// `logits[t][j]`.
    pub logits: Vec<Vec<f64>>,
    /// `weights[t][j]`: what figures and policies see.
    pub weights: Vec<Vec<f32>>,
    pub sink: Option<f64>,
}

impl HeadRows {
    pub fn new(layer: &Layer, head: usize, keys: &Held) -> HeadRows {
        let sink = layer.sinks.as_ref().map(|sinks| sinks[head]);
        let logits: Vec<Vec<f64>> = (0..layer.positions()).map(|t| logits(layer, head, keys, t)).collect();
        let weights = |row: &Vec<f64>| softmax(row, sink).into_iter().map(|weight| weight as f32).collect();
        HeadRows { weights: logits.iter().map(weights).collect(), logits, sink }
    }
}

/// The rows of every query head of a layer.
pub fn rows_of(layer: &Layer, keys: &[Held]) -> Vec<HeadRows> {
    let share = layer.heads_of_a_cache();
    (0..layer.heads()).map(|head| HeadRows::new(layer, head, &keys[head / share])).collect()
}
