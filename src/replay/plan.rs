//! What a replay is asked to do: which caches a trace has, and which lanes run on each.

use super::layer_budgets::{LayerBudget, LayerBudgets};
use crate::error::{Error, Result};
use crate::policy::parameter::Values;
use crate::policy::pyramidkv::LayerPlace;
use crate::policy::table::{PolicyEntry, Setting};
use crate::trace::{Head, StreamLabel, TraceInfo};
use std::collections::{BTreeMap, BTreeSet};

/// A cache: one stream, or the streams of query heads that share one KV head.
#[derive(Clone, Debug)]
pub struct CachePlan {
    /// How reports call it.
    pub label: StreamLabel,
    /// Indices of its streams in the trace, in head order.
    pub streams: Vec<usize>,
    /// Where its layer stands among the trace's.
    pub place: LayerPlace,
    /// Number of positions that its layer attends to, where it is fewer than all: a position that
    /// has left this window leaves the cache by itself.
    pub window: Option<usize>,
}

/// One cache for each stream of a trace.
///
/// # Errors
/// When the metadata counts fewer layers than the streams name.
pub fn caches_of(info: &TraceInfo) -> Result<Vec<CachePlan>> {
    let layers: BTreeSet<u32> = info.streams.iter().map(|stream| stream.label.layer).collect();
    let place = |layer: u32| match info.metadata_count("num_layers") {
        Some(count) if (layer as usize) < count => Ok(LayerPlace { index: layer as usize, count }),
        Some(count) => {
            let problem = format!("num_layers is {count} in the metadata, but there is a stream of layer {layer}");
            Err(Error::data(&info.name, problem))
        }
        None => Ok(LayerPlace { index: layers.range(..layer).count(), count: layers.len() }),
    };
    let plan = |(stream, description): (usize, &crate::trace::StreamInfo)| {
        let label = description.label.clone();
        let window = info.metadata_count(&format!("sliding_window.{}", label.layer)).filter(|window| *window > 0);
        Ok(CachePlan { place: place(label.layer)?, label, streams: vec![stream], window })
    };
    info.streams.iter().enumerate().map(plan).collect()
}

/// One cache for each group of query heads that share a KV head: `kv_heads` of them in every layer.
///
/// # Errors
/// As [`caches_of`], or when a layer's streams are not all its single query heads, or `kv_heads` does
/// not divide their number.
pub fn shared_caches_of(info: &TraceInfo, kv_heads: usize) -> Result<Vec<CachePlan>> {
    share_caches(info, caches_of(info)?, kv_heads)
}

/// [`shared_caches_of`] some layers: those of these single-stream caches.
///
/// # Errors
/// As [`shared_caches_of`].
pub fn share_caches(info: &TraceInfo, caches: Vec<CachePlan>, kv_heads: usize) -> Result<Vec<CachePlan>> {
    let mut layers: BTreeMap<u32, Vec<CachePlan>> = BTreeMap::new();
    for cache in caches {
        layers.entry(cache.label.layer).or_default().push(cache);
    }
    let shared = layers.into_iter().map(|(layer, caches)| share(info, layer, caches, kv_heads));
    Ok(shared.collect::<Result<Vec<_>>>()?.concat())
}

/// Puts contiguous query heads of a layer behind one cache each.
fn share(info: &TraceInfo, layer: u32, caches: Vec<CachePlan>, kv_heads: usize) -> Result<Vec<CachePlan>> {
    let heads = caches.len();
    let single = (0..).zip(&caches).all(|(head, cache)| cache.label.head == Head::Number(head));
    let missing = info.metadata_count("query_heads").filter(|all| *all != heads);
    let problem = match missing {
        _ if !single => "its streams are not the single query heads 0, 1, 2, ... that can share KV heads".to_owned(),
        Some(all) => format!("it holds {heads} of the {all} query heads, all are needed to share KV heads"),
        None if kv_heads == 0 || !heads.is_multiple_of(kv_heads) => {
            format!("{heads} query heads cannot share {kv_heads} KV heads evenly")
        }
        None => {
            let group = |(head, caches): (usize, &[CachePlan])| CachePlan {
                label: StreamLabel { layer, head: Head::Word(format!("kv{head}")) },
                streams: caches.iter().flat_map(|cache| cache.streams.iter().copied()).collect(),
                ..caches[0].clone()
            };
            return Ok(caches.chunks(heads / kv_heads).enumerate().map(group).collect());
        }
    };
    Err(Error::usage(format!("--kv-heads {kv_heads}: {}: layer {layer}: {problem}", info.name)))
}

/// A policy with concrete parameters and budget, to be run on every cache.
#[derive(Clone)]
pub struct LanePlan {
    /// The policy's line in the table.
    pub entry: &'static PolicyEntry,
    /// Most positions held between steps; `None` for a policy that has no budget.
    pub budget: Option<usize>,
    /// One value for each parameter of the policy.
    pub values: Values,
}

impl LanePlan {
    /// A lane with default parameters.
    pub fn new(entry: &'static PolicyEntry, budget: usize) -> LanePlan {
        LanePlan { entry, budget: entry.budgeted.then_some(budget), values: entry.defaults() }
    }

    /// The setting for a cache that stands at `place`, before the policy's own share is taken.
    pub fn setting(&self, place: LayerPlace) -> Setting {
        Setting { budget: self.budget.unwrap_or(usize::MAX), values: self.values.clone(), place }
    }

    /// The budget of a cache before the policy's own share is taken; `None` where there is no budget.
    ///
    /// # Errors
    /// When the shape does not cover the cache's layer.
    pub fn layer_budget(&self, cache: &CachePlan, layers: &LayerBudgets) -> Result<Option<LayerBudget>, String> {
        let least = self.entry.least_budget(&self.values);
        self.budget.map(|budget| layers.of(cache, budget, least)).transpose()
    }

    /// The setting in force on a cache: the layer's budget, and the policy's own share of it.
    ///
    /// # Errors
    /// When the shape does not cover the cache's layer, or the policy refuses the budget there.
    pub fn setting_on(&self, cache: &CachePlan, layers: &LayerBudgets) -> Result<Setting, String> {
        let mut setting = self.setting(cache.place);
        if let Some(LayerBudget { budget, .. }) = self.layer_budget(cache, layers)? {
            setting.budget = budget;
            setting.budget = (self.entry.cache_budget)(&setting);
        }
        (self.entry.check)(&setting).map_err(|problem| format!("layer {}: {problem}", cache.label.layer))?;
        Ok(setting)
    }

    /// Says what is impossible about the lane on these caches.
    ///
    /// # Errors
    /// As [`LanePlan::check`] and [`LanePlan::setting_on`], or when the policy and the shape both deal
    /// out the budget.
    pub fn check_on(&self, caches: &[CachePlan], layers: &LayerBudgets) -> Result<(), String> {
        self.check()?;
        if self.entry.deals_layers() && *layers != LayerBudgets::Uniform {
            return Err("it deals the budget out to layers by its own rule: leave the layer budget uniform".to_owned());
        }
        caches.iter().try_for_each(|cache| self.setting_on(cache, layers).map(drop))
    }

    /// Says what is impossible about the lane.
    ///
    /// # Errors
    /// When the budget is 0 or the policy refuses the setting.
    pub fn check(&self) -> Result<(), String> {
        if self.budget == Some(0) {
            return Err("budget 0 keeps nothing: at least 1 is needed".to_owned());
        }
        (self.entry.check)(&self.setting(LayerPlace::ONLY))
    }
}

impl PartialEq for LanePlan {
    fn eq(&self, other: &LanePlan) -> bool {
        self.entry.name == other.entry.name && self.budget == other.budget && self.values == other.values
    }
}
