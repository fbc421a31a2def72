//! How many bytes a KV cache takes: from numbers or from a model's `config.json`.
//!
//! A calculator beside the replay: it reads no traces. Everything is counted in whole bytes.

pub mod config;
pub mod count;
pub mod size;

/// What one layer caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerCache {
    /// Rows that are cached for each position: one key row and one value row for each KV head, or a
    /// single latent row.
    pub rows: [Rows; 2],
    /// Positions that the layer attends to, where they are fewer than all.
    pub window: Option<u64>,
}

/// Rows of the same width that are cached for each position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// How many.
    pub count: u64,
    /// Numbers in each.
    pub width: u64,
}

impl LayerCache {
    /// Keys and values of `kv_heads` heads, `head_dim` numbers each.
    pub fn of_heads(kv_heads: u64, head_dim: u64) -> LayerCache {
        let rows = Rows { count: kv_heads, width: head_dim };
        LayerCache { rows: [rows, rows], window: None }
    }
}

/// The caches of a model, layer by layer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelCaches {
    /// One entry for each layer, `None` where it holds no cache of its own.
    pub layers: Vec<Option<LayerCache>>,
    /// Bits of a stored number, where the model says it.
    pub bits: Option<u32>,
    /// How the description was understood, where it leaves room.
    pub notes: Vec<String>,
}
