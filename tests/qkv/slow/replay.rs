//! A layer's caches through one lane, step by step.

use super::attention::{HeadRows, output, rows_of};
use super::cache::{Cache, Sight, Spec};
use super::file::{Layer, Matrix};
use super::quantise::{self, Bits, Held};

/// What every lane on a layer is measured against: computed once.
pub struct Exact<'a> {
    pub layer: &'a Layer,
    pub rows: Vec<HeadRows>,
    /// `outputs[t][head]`.
    pub outputs: Vec<Vec<Vec<f64>>>,
}

impl<'a> Exact<'a> {
    pub fn new(layer: &'a Layer) -> Exact<'a> {
        let rows = rows_of(layer, &Held::keys(&layer.keys, Bits::FULL));
        let share = layer.heads_of_a_cache();
        let whole = |t: usize, head: usize| {
            let all: Vec<usize> = (0..=t).collect();
            output(&rows[head].logits[t], rows[head].sink, &all, &layer.values[head / share])
        };
        let step = |t: usize| (0..layer.heads()).map(|head| whole(t, head)).collect();
        let outputs = (0..layer.positions()).map(step).collect();
        Exact { layer, outputs, rows }
    }
}

/// What happened to the caches of a layer in one row.
#[derive(Clone, Debug)]
pub struct Step {
    /// For each query head the positions that its row is measured with.
    pub measured_with: Vec<Vec<usize>>,
    /// For each cache the positions held after the step.
    pub kept: Vec<Vec<usize>>,
    /// For each cache whether something had been evicted before this row.
    pub after_eviction: Vec<bool>,
    /// For each cache the number of positions that left its window.
    pub expired: Vec<usize>,
    /// What each query head hands on with what is kept.
    pub kept_outputs: Vec<Vec<f64>>,
}

/// The keys and values of a layer as a cache of few bits holds them, and the rows they make.
pub struct HeldLayer {
    keys: Vec<Held>,
    values: Vec<Matrix>,
    /// `None` where they are the exact rows.
    rows: Option<Vec<HeadRows>>,
}

impl HeldLayer {
    pub fn new(layer: &Layer, bits: Bits) -> HeldLayer {
        let keys = Held::keys(&layer.keys, bits);
        let rows = (bits.keys != 16).then(|| rows_of(layer, &keys));
        HeldLayer { values: quantise::values(&layer.values, bits), rows, keys }
    }
}

/// Replays a layer through one lane.
pub fn replay(exact: &Exact<'_>, held: &HeldLayer, spec: Spec) -> Vec<Step> {
    let layer = exact.layer;
    let rows = held.rows.as_ref().unwrap_or(&exact.rows);
    if spec.policy == "oracle" {
        return (0..layer.positions()).map(|t| oracle_step(exact, spec.budget, t)).collect();
    }
    let mut caches: Vec<Cache> = layer.keys.iter().map(|_| Cache::new(spec)).collect();
    let mut evicted = vec![false; caches.len()];
    let mut steps = Vec::new();
    for t in 0..layer.positions() {
        caches.iter_mut().for_each(|cache| cache.admit(t));
        let share = layer.heads_of_a_cache();
        let measured_with: Vec<Vec<usize>> = (0..layer.heads()).map(|head| caches[head / share].kept.clone()).collect();
        let kept_output = |head: usize| {
            output(&rows[head].logits[t], rows[head].sink, &measured_with[head], &held.values[head / share])
        };
        let kept_outputs = (0..layer.heads()).map(kept_output).collect();
        let after_eviction = evicted.clone();
        let mut expired = Vec::new();
        for (index, cache) in caches.iter_mut().enumerate() {
            cache.observe(&mean_weights(&rows[layer.readers(index)], &cache.kept, t));
            let gone: Vec<usize> =
                cache.kept.iter().copied().filter(|j| layer.window.is_some_and(|window| j + window < t + 2)).collect();
            gone.iter().for_each(|j| cache.forget(*j));
            expired.push(gone.len());
            let sight = Sight { layer, cache: index, keys: &held.keys[index], values: &held.values[index], t };
            evicted[index] |= !cache.evict(&sight).is_empty();
        }
        let kept = caches.iter().map(|cache| cache.kept.clone()).collect();
        steps.push(Step { measured_with, kept, after_eviction, expired, kept_outputs });
    }
    steps
}

/// What a policy sees: the mean over the cache's query heads, in head order.
fn mean_weights(heads: &[HeadRows], kept: &[usize], t: usize) -> Vec<f32> {
    let mean = |j: &usize| {
        let sum: f64 = heads.iter().map(|head| f64::from(head.weights[t][*j])).sum();
        (sum / heads.len() as f64) as f32
    };
    kept.iter().map(mean).collect()
}

/// Each query head reads its own heaviest positions.
fn oracle_step(exact: &Exact<'_>, budget: usize, t: usize) -> Step {
    let layer = exact.layer;
    let share = layer.heads_of_a_cache();
    let heaviest = |head: &HeadRows| {
        let mut order: Vec<usize> = (0..=t).collect();
        order.sort_by(|a, b| head.weights[t][*b].partial_cmp(&head.weights[t][*a]).expect("no weight is NaN"));
        order.truncate(budget + 1);
        order.sort_unstable();
        order
    };
    let measured_with: Vec<Vec<usize>> = exact.rows.iter().map(heaviest).collect();
    let of_head = |(head, kept): (usize, &Vec<usize>)| {
        let rows = &exact.rows[head];
        output(&rows.logits[t], rows.sink, kept, &layer.values[head / share])
    };
    let kept_outputs = measured_with.iter().enumerate().map(of_head).collect();
    let caches = layer.keys.len();
    let after_eviction = vec![t > budget; caches];
    Step { measured_with, kept: vec![Vec::new(); caches], after_eviction, expired: vec![0; caches], kept_outputs }
}
