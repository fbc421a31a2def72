//! What is reported of a lane: sums over rows and query heads, and over the rows of layers.

use super::file::Layer;
use super::replay::{Exact, Step};

/// A sum and what it is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    pub sum: f64,
    pub over: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.over += 1;
    }

    fn merge(&mut self, other: Mean) {
        self.sum += other.sum;
        self.over += other.over;
    }

    /// `None` where there is nothing under it.
    pub fn value(self) -> Option<f64> {
        (self.over > 0).then(|| self.sum / self.over as f64)
    }
}

/// The figures of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub retained_mass: Mean,
    pub retained_mass_full: Mean,
    pub peak_misses_full: Mean,
    pub row_mass: Mean,
    pub value_mass: Mean,
    pub output_error: Mean,
    pub output_error_full: Mean,
    pub large_error_rate: Mean,
    pub output_cosine: Mean,
    pub zero_output_rows: u64,
    pub layer_error: Mean,
    pub update_error: Mean,
    /// Mean of the squared length of what the output moved by, after the first eviction.
    pub squared_change: Mean,
}

impl Figures {
    pub fn merge(&mut self, other: &Figures) {
        self.retained_mass.merge(other.retained_mass);
        self.retained_mass_full.merge(other.retained_mass_full);
        self.peak_misses_full.merge(other.peak_misses_full);
        self.row_mass.merge(other.row_mass);
        self.value_mass.merge(other.value_mass);
        self.output_error.merge(other.output_error);
        self.output_error_full.merge(other.output_error_full);
        self.large_error_rate.merge(other.large_error_rate);
        self.output_cosine.merge(other.output_cosine);
        self.zero_output_rows += other.zero_output_rows;
        self.layer_error.merge(other.layer_error);
        self.update_error.merge(other.update_error);
        self.squared_change.merge(other.squared_change);
    }
}

pub fn norm(numbers: &[f64]) -> f64 {
    numbers.iter().map(|number| number * number).sum::<f64>().sqrt()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The figures of a layer's steps.
pub fn of(exact: &Exact<'_>, steps: &[Step]) -> Figures {
    let mut figures = Figures::default();
    for (t, step) in steps.iter().enumerate() {
        for head in 0..exact.layer.heads() {
            add_row(&mut figures, exact, step, t, head);
        }
        add_layer_row(&mut figures, exact, step, t);
    }
    figures
}

fn add_row(figures: &mut Figures, exact: &Exact<'_>, step: &Step, t: usize, head: usize) {
    let cache = head / exact.layer.heads_of_a_cache();
    let kept = &step.measured_with[head];
    let weights: Vec<f64> = exact.rows[head].weights[t].iter().map(|weight| f64::from(*weight)).collect();
    let full = step.after_eviction[cache];
    let mass = kept.iter().map(|j| weights[*j]).sum();
    figures.retained_mass.add(mass);
    figures.row_mass.add(weights.iter().sum());
    if full {
        figures.retained_mass_full.add(mass);
        let missed = (0..=t).any(|j| weights[j] > 0.1 && !kept.contains(&j));
        figures.peak_misses_full.add(f64::from(u8::from(missed)));
    }
    let values = &exact.layer.values[cache];
    let length = |j: usize| norm(&values.row(j).iter().map(|number| f64::from(*number)).collect::<Vec<_>>());
    let weighed = |j: usize| weights[j] * length(j);
    let all: f64 = (0..=t).map(weighed).sum();
    if all > 0.0 {
        figures.value_mass.add(kept.iter().map(|j| weighed(*j)).sum::<f64>() / all);
    }
    add_output(figures, &exact.outputs[t][head], &step.kept_outputs[head], full);
}

fn add_output(figures: &mut Figures, whole: &[f64], kept: &[f64], full: bool) {
    let change = norm(&difference(whole, kept));
    if full {
        figures.squared_change.add(change * change);
    }
    let length = norm(whole);
    if length == 0.0 {
        figures.zero_output_rows += 1;
        return;
    }
    let error = change / length;
    figures.output_error.add(error);
    if full {
        figures.output_error_full.add(error);
    }
    figures.large_error_rate.add(f64::from(u8::from(error > 0.5)));
    let product: f64 = whole.iter().zip(kept).map(|(a, b)| a * b).sum();
    let kept_length = norm(kept);
    figures.output_cosine.add(if kept_length == 0.0 { 0.0 } else { product / (length * kept_length) });
}

fn add_layer_row(figures: &mut Figures, exact: &Exact<'_>, step: &Step, t: usize) {
    if exact.layer.output.is_none() {
        return;
    }
    let whole = update(exact.layer, &exact.outputs[t].concat());
    let kept = update(exact.layer, &step.kept_outputs.concat());
    let change = norm(&difference(&whole, &kept));
    if norm(&whole) > 0.0 {
        figures.update_error.add(change / norm(&whole));
    }
    if let Some(residual) = exact.layer.residual_norm.as_ref().map(|norms| norms[t]).filter(|norm| *norm > 0.0) {
        figures.layer_error.add(change / residual);
    }
}

/// What the layer adds to the stream.
pub fn update(layer: &Layer, heads: &[f64]) -> Vec<f64> {
    let output = layer.output.as_ref().expect("asked for where there is one");
    let product = |row: usize| output.row(row).iter().zip(heads).map(|(w, o)| f64::from(*w) * o).sum::<f64>();
    let behind: Vec<f64> = (0..output.rows()).map(product).collect();
    let Some(norm) = &layer.output_norm else { return behind };
    let square = behind.iter().map(|number| number * number).sum::<f64>() / behind.len() as f64;
    let root = (square + norm.epsilon).sqrt();
    behind.iter().zip(&norm.gain).map(|(number, gain)| gain * number / root).collect()
}
