//! Bytes of a sequence's cache under a budget, and their share of what the model's own cache holds.

use super::field::OfCache;
use crate::experiment::OpenTrace;
use crate::keeping::{Keeping, PromptMode};
use crate::memory::LayerCache;
use crate::memory::count::Storage;
use std::collections::{BTreeMap, BTreeSet};

/// What a sequence takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Bytes; `None` where the trace does not say how wide a key is.
    pub bytes: Option<u64>,
    /// Share of what the model's own cache would take: layers with a sliding window hold no more than that.
    pub share: f64,
}

/// The caches of a trace's model, as far as the trace says it.
pub(super) struct ModelCost {
    /// Layers with a cache of their own, by their numbers.
    layers: BTreeMap<u32, LayerCache>,
    length: u64,
    storage: Storage,
    /// Whether the width of keys is known.
    is_known: bool,
}

impl ModelCost {
    /// Of all caches that were chosen of a trace.
    pub(super) fn of(trace: &OpenTrace) -> ModelCost {
        let facts = &trace.chosen.facts;
        let mut recorded: BTreeMap<u32, u64> = BTreeMap::new();
        trace.caches().iter().for_each(|cache| *recorded.entry(cache.label.layer).or_default() += 1);
        // A layer that was not recorded is like those that were, where the trace does not say more of it.
        let most = recorded.values().max().copied().unwrap_or(1);
        let cache = |layer: u32| {
            let known = facts.kv_heads.of(layer).map(|count| count as u64);
            let heads = known.or_else(|| recorded.get(&layer).copied()).unwrap_or(most);
            let window = facts.window_of(layer).map(|window| window as u64);
            LayerCache { window, ..LayerCache::of_heads(heads, facts.head_dim.unwrap_or(1) as u64) }
        };
        let counted = 0..facts.num_layers.unwrap_or(0) as u32;
        let layers: BTreeSet<u32> = counted.chain(recorded.keys().copied()).collect();
        let layers = layers.into_iter().filter(|layer| facts.owns_cache(*layer));
        ModelCost {
            layers: layers.map(|layer| (layer, cache(layer))).collect(),
            length: trace.chosen.positions as u64,
            storage: Storage::plain(if is_wide(facts.dtype.as_deref()) { 32 } else { 16 }),
            is_known: facts.head_dim.is_some(),
        }
    }

    /// What a lane takes at most once its prompt is cut. Layers of which no cache was replayed have the budget
    /// of all on average.
    pub(super) fn cost(&self, budget: usize, keeping: Keeping, caches: &[OfCache]) -> Cost {
        let mut budgets: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for cache in caches {
            budgets.entry(cache.label.layer).or_default().push(cache.budget);
        }
        let average = vec![budget];
        let (mut own, mut kept) = (0.0, 0.0);
        for (layer, cache) in &self.layers {
            let position = cache.position_bytes(self.storage) as f64;
            let budgets = budgets.get(layer).unwrap_or(&average);
            let held = |budget: &usize| cache.positions(self.length, Some(self.peak(*budget, keeping))) as f64;
            own += position * cache.positions(self.length, None) as f64;
            kept += position * budgets.iter().map(held).sum::<f64>() / budgets.len() as f64;
        }
        let bytes = self.is_known.then_some(kept.round() as u64);
        Cost { bytes, share: if own > 0.0 { kept / own } else { 1.0 } }
    }

    /// Positions that a cache with this budget grows to.
    fn peak(&self, budget: usize, keeping: Keeping) -> u64 {
        let (budget, length) = (budget as u64, self.length);
        let prompt = keeping.prompt.len as u64;
        match keeping.prompt.mode {
            PromptMode::Once => budget.min(prompt) + length.saturating_sub(prompt),
            PromptMode::Stream | PromptMode::Block => budget.saturating_add(keeping.evict_every as u64 - 1),
        }
    }
}

fn is_wide(dtype: Option<&str>) -> bool {
    matches!(dtype, Some("float32" | "f32" | "F32"))
}
