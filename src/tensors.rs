//! What a query head has besides its rows: queries, keys, values, gradients, and what stands behind the heads of a
//! layer, as numbers in memory.
//!
//! A trace hands these out, the replay measures outputs with them and shows them to policies; neither knows how the
//! other does it.

use crate::kernels::{KeyPanel, Logits};
use crate::position::Position;
use std::sync::Arc;

/// Rows of equal width, one for each position.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    width: usize,
    numbers: Vec<f32>,
}

impl Matrix {
    /// Of numbers, row after row.
    pub fn new(width: usize, numbers: Vec<f32>) -> Matrix {
        assert!(width > 0 && numbers.len().is_multiple_of(width), "whole rows of {width} numbers");
        Matrix { width, numbers }
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.numbers.len() / self.width
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// One row.
    #[inline]
    pub fn row(&self, index: usize) -> &[f32] {
        &self.numbers[index * self.width..(index + 1) * self.width]
    }

    /// All numbers, row after row.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }
}

/// The values of a KV head, and how long each is.
#[derive(Clone, PartialEq, Debug)]
pub struct Values {
    /// One row for each position.
    pub rows: Matrix,
    /// The l2 norm of each.
    pub lengths: Vec<f64>,
}

impl Values {
    /// With the length of each.
    pub fn new(rows: Matrix) -> Values {
        let square = |number: &f32| f64::from(*number) * f64::from(*number);
        let length = |row: usize| rows.row(row).iter().map(square).sum::<f64>().sqrt();
        Values { lengths: (0..rows.len()).map(length).collect(), rows }
    }
}

/// Gradients of the log-likelihood of sampled labels at the outputs of a head.
#[derive(Clone, PartialEq, Debug)]
pub struct Gradients {
    /// The positions of the first sample, of the second, ...
    rows: Matrix,
    positions: usize,
    /// What the true gradients were multiplied by.
    scale: f64,
}

impl Gradients {
    /// Of numbers as stored, `positions` rows for each sample.
    pub fn new(rows: Matrix, positions: usize, scale: f64) -> Gradients {
        Gradients { rows, positions, scale }
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.rows.len() / self.positions
    }

    /// The product of a change of the output at a position with one sample's gradient there, channels ascending.
    pub fn along(&self, sample: usize, position: Position, change: impl Iterator<Item = f64>) -> f64 {
        let row = self.rows.row(sample * self.positions + position.index());
        row.iter().zip(change).map(|(gradient, change)| f64::from(*gradient) / self.scale * change).sum()
    }
}

/// What a query head has. Heads that share a KV head share its keys and values.
#[derive(Clone, Debug)]
pub struct HeadTensors {
    /// The layer that it is in.
    pub layer: u32,
    /// Its place among the query heads of the layer.
    pub index: usize,
    /// What is done to products of queries and keys.
    pub logits: Logits,
    /// Number of positions that it attends to, where it is fewer than all.
    pub window: Option<usize>,
    /// As they enter the product.
    pub queries: Arc<Matrix>,
    /// As they enter the product.
    pub keys: Arc<Matrix>,
    /// As they are weighed.
    pub values: Arc<Values>,
    /// Where they were asked for and the trace has them.
    pub gradients: Option<Arc<Gradients>>,
}

impl HeadTensors {
    /// The first position that a row attends to.
    pub fn first_attended(&self, step: Position) -> usize {
        self.window.map_or(0, |window| (step.index() + 1).saturating_sub(window))
    }
}

/// What stands behind the heads of a layer.
#[derive(Clone, Debug)]
pub struct LayerTensors {
    /// The projection of the outputs of all heads, side by side: one row for each channel of the stream.
    pub projection: Arc<KeyPanel>,
    /// The norm behind it, where there is one.
    pub output_norm: Option<OutputNorm>,
    /// Length of the residual stream at each position, where it is known.
    pub residual_norm: Option<Vec<f32>>,
}

/// A norm behind the projection: its result over the root of its mean square, times a gain.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputNorm {
    /// One factor for each channel.
    pub gain: Vec<f32>,
    /// Added to the mean square.
    pub epsilon: f64,
}

impl OutputNorm {
    /// Applies it.
    pub fn apply(&self, numbers: &mut [f64]) {
        let square = numbers.iter().map(|number| number * number).sum::<f64>() / numbers.len() as f64;
        let root = (square + self.epsilon).sqrt();
        numbers.iter_mut().zip(&self.gain).for_each(|(number, gain)| *number = f64::from(*gain) * *number / root);
    }
}
