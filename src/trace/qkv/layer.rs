//! The tensors of one layer.

use super::matrix::Matrix;
use super::settings::Settings;

/// One layer of a trace: its heads, and what stands behind them.
#[derive(Clone)]
pub(super) struct Layer {
    pub number: u32,
    /// `[T, d]` for each query head.
    pub queries: Vec<Matrix>,
    /// `[T, d]` for each KV head.
    pub keys: Vec<Matrix>,
    /// `[T, dv]` for each KV head.
    pub values: Vec<Matrix>,
    /// The projection behind the heads, `[d_model, H * dv]`.
    pub output: Option<Matrix>,
    /// The gain of a norm behind that, one row of d_model numbers.
    pub output_norm: Option<Matrix>,
    /// Lengths of the residual stream, one row of T numbers.
    pub residual_norm: Option<Matrix>,
    /// Logits of learned sinks, one row of H numbers.
    pub sink: Option<Matrix>,
    /// `[S * T, dv]` for each query head; empty where there are none.
    pub gradients: Vec<Matrix>,
    /// What is done to scores.
    pub settings: Settings,
}

impl Layer {
    /// Query heads that read one KV head.
    pub fn heads_of_a_cache(&self) -> usize {
        self.queries.len() / self.keys.len()
    }

    /// Every matrix of the layer.
    pub fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let of_heads = [&self.queries, &self.keys, &self.values, &self.gradients];
        let of_layer = [&self.output, &self.output_norm, &self.residual_norm, &self.sink];
        of_heads.into_iter().flatten().chain(of_layer.into_iter().flatten())
    }
}
