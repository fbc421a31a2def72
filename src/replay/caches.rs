//! What a cache is: which streams of a trace it serves, where its layer stands, what it can lose by itself.
//!
//! A stream is a cache of its own unless query heads share a KV head, or layers share one cache. Knows the
//! facts of the model; what a user said is put into the facts before.

use crate::budgets::LayerPlace;
use crate::error::{Error, Result};
use crate::keeping::Scope;
use crate::trace::{Head, ModelFacts, StreamInfo, StreamLabel, TraceInfo};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A cache: one stream, or the streams that share a KV head or a layer's cache.
#[derive(Clone, Debug)]
pub struct CachePlan {
    /// How reports call it.
    pub label: StreamLabel,
    /// Indices of its streams in the trace, by layer, then head.
    pub streams: Vec<usize>,
    /// Where its layer stands among the layers that have a cache of their own.
    pub place: LayerPlace,
    /// Number of positions that its layer attends to, where it is fewer than all: a position that
    /// has left this window leaves the cache by itself.
    pub window: Option<usize>,
    /// Where it is the one kept set of a layer: the number of caches that share it.
    pub layer_set: Option<usize>,
}

impl CachePlan {
    /// The caches that it stands for: itself, or all that share it.
    pub fn stands_for(&self) -> usize {
        self.layer_set.unwrap_or(1)
    }
}

/// The head that a layer's kept set is called by.
pub(super) const LAYER: &str = "layer";

/// The caches of a layer as one.
#[derive(Clone, Debug)]
pub(super) struct LayerSet {
    /// As one cache: its streams are those of the caches, one cache after the other.
    pub whole: CachePlan,
    /// Their indices.
    pub caches: Vec<usize>,
}

/// The caches of each layer as one, in order of appearance.
pub(super) fn layer_sets(caches: &[CachePlan]) -> Vec<LayerSet> {
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let mut layers: Vec<LayerSet> = Vec::new();
    for (index, cache) in caches.iter().enumerate() {
        let place = *places.entry(cache.label.layer).or_insert(layers.len());
        if place == layers.len() {
            let label = StreamLabel { layer: cache.label.layer, head: Head::Word(LAYER.to_owned()) };
            let whole = CachePlan { label, streams: Vec::new(), layer_set: Some(0), ..cache.clone() };
            layers.push(LayerSet { whole, caches: Vec::new() });
        }
        let LayerSet { whole, caches } = &mut layers[place];
        whole.streams.extend(&cache.streams);
        caches.push(index);
        whole.layer_set = Some(caches.len());
    }
    layers
}

/// The kept sets of a scope on these caches.
pub(super) fn sets_of(caches: &[CachePlan], scope: Scope) -> Cow<'_, [CachePlan]> {
    match scope {
        Scope::Head => Cow::Borrowed(caches),
        Scope::Layer => layer_sets(caches).into_iter().map(|layer| layer.whole).collect(),
    }
}

/// One cache for each stream of a trace.
///
/// # Errors
/// When the facts count fewer layers than the streams name, or a layer with a stream has no cache.
pub fn caches_of(info: &TraceInfo) -> Result<Vec<CachePlan>> {
    caches_with(info, &info.facts)
}

/// One cache for each group of query heads that share a KV head: `kv_heads` of them in every layer.
///
/// # Errors
/// As [`caches_of`], or when a layer's streams are not all its single query heads, or `kv_heads` does
/// not divide their number.
pub fn shared_caches_of(info: &TraceInfo, kv_heads: usize) -> Result<Vec<CachePlan>> {
    let layers = by_layer(caches_of(info)?).into_iter();
    Ok(layers.map(|caches| share_heads(info, caches, kv_heads)).collect::<Result<Vec<_>>>()?.concat())
}

/// [`caches_of`] a trace of which these facts are known.
///
/// # Errors
/// As [`caches_of`].
pub(crate) fn caches_with(info: &TraceInfo, facts: &ModelFacts) -> Result<Vec<CachePlan>> {
    let layers = Layers::of(info, facts)?;
    let plan = |(stream, StreamInfo { label, .. }): (usize, &StreamInfo)| CachePlan {
        place: layers.place(facts.owner(label.layer)),
        label: label.clone(),
        streams: vec![stream],
        window: facts.window_of(label.layer),
        layer_set: None,
    };
    Ok(info.streams.iter().enumerate().map(plan).collect())
}

/// The layers over which budgets are dealt out: those that have a cache of their own.
enum Layers {
    /// Just these, ascending.
    Named(Vec<u32>),
    /// So many from 0 on, except for these, ascending.
    Counted { count: usize, without: Vec<u32> },
}

impl Layers {
    fn of(info: &TraceInfo, facts: &ModelFacts) -> Result<Layers> {
        let recorded: BTreeSet<u32> = info.streams.iter().map(|stream| stream.label.layer).collect();
        for layer in &recorded {
            check_layer(*layer, facts).map_err(|problem| Error::data(&info.name, problem))?;
        }
        let owners = recorded.into_iter().map(|layer| facts.owner(layer)).collect::<BTreeSet<u32>>();
        Ok(match (&facts.cache_layers, facts.num_layers) {
            (Some(layers), _) => {
                Layers::Named(layers.iter().copied().filter(|layer| facts.owns_cache(*layer)).collect())
            }
            (None, Some(count)) => {
                let without = facts.without_own_cache().into_iter().filter(|layer| (*layer as usize) < count);
                Layers::Counted { count, without: without.collect() }
            }
            (None, None) => Layers::Named(owners.into_iter().collect()),
        })
    }

    fn place(&self, layer: u32) -> LayerPlace {
        match self {
            Layers::Named(layers) => {
                LayerPlace { index: layers.partition_point(|other| *other < layer), count: layers.len() }
            }
            Layers::Counted { count, without } => LayerPlace {
                index: layer as usize - without.partition_point(|other| *other < layer),
                count: count - without.len(),
            },
        }
    }
}

fn check_layer(layer: u32, facts: &ModelFacts) -> Result<(), String> {
    if let Some(count) = facts.num_layers.filter(|count| layer as usize >= *count) {
        return Err(format!("num_layers is {count} in the metadata, but there is a stream of layer {layer}"));
    }
    if !facts.has_cache(layer) {
        return Err(format!("there is a stream of layer {layer}, which is said to have no cache"));
    }
    match facts.num_layers.filter(|count| facts.owner(layer) as usize >= *count) {
        None => Ok(()),
        Some(count) => Err(format!("layer {layer} uses the cache of layer {}, of {count} layers", facts.owner(layer))),
    }
}

/// The caches of each layer, ascending.
pub(crate) fn by_layer(caches: Vec<CachePlan>) -> Vec<Vec<CachePlan>> {
    let mut layers: BTreeMap<u32, Vec<CachePlan>> = BTreeMap::new();
    for cache in caches {
        layers.entry(cache.label.layer).or_default().push(cache);
    }
    layers.into_values().collect()
}

/// Puts contiguous query heads of a layer behind one cache each.
///
/// # Errors
/// When these are not all single query heads of the layer, or `kv_heads` does not divide their number.
pub(crate) fn share_heads(info: &TraceInfo, caches: Vec<CachePlan>, kv_heads: usize) -> Result<Vec<CachePlan>> {
    let layer = caches[0].label.layer;
    let problem = match info.facts.query_heads.of(layer).filter(|all| *all != caches.len()) {
        _ if !are_single_heads(&caches) => {
            "its streams are not the single query heads 0, 1, 2, ... that can share KV heads".to_owned()
        }
        Some(all) => {
            format!("it holds {} of the {all} query heads, all are needed to share KV heads", caches.len())
        }
        None if kv_heads == 0 || !caches.len().is_multiple_of(kv_heads) => {
            format!("{} query heads cannot share {kv_heads} KV heads evenly", caches.len())
        }
        None => return Ok(groups(&caches, caches.len() / kv_heads)),
    };
    Err(Error::usage(format!("--kv-heads {kv_heads}: {}: layer {layer}: {problem}", info.name)))
}

/// Whether the streams of a layer are its query heads 0, 1, 2, ...
pub(crate) fn are_single_heads(caches: &[CachePlan]) -> bool {
    (0..).zip(caches).all(|(head, cache)| cache.label.head == Head::Number(head))
}

fn groups(caches: &[CachePlan], heads: usize) -> Vec<CachePlan> {
    let group = |(head, caches): (usize, &[CachePlan])| CachePlan {
        label: StreamLabel { layer: caches[0].label.layer, head: Head::Word(format!("kv{head}")) },
        streams: caches.iter().flat_map(|cache| cache.streams.iter().copied()).collect(),
        ..caches[0].clone()
    };
    caches.chunks(heads).enumerate().map(group).collect()
}

/// Puts layers that use the cache of another layer behind that cache, head by head.
///
/// A cache is called by the layer that owns it, or by the first of its layers that is there.
///
/// # Errors
/// When layers that share caches do not have the same heads.
pub(crate) fn share_layers(info: &TraceInfo, facts: &ModelFacts, caches: Vec<CachePlan>) -> Result<Vec<CachePlan>> {
    let mut shared: BTreeMap<u32, Vec<CachePlan>> = BTreeMap::new();
    for layer in by_layer(caches) {
        let number = layer[0].label.layer;
        let owner = facts.owner(number);
        match shared.get_mut(&owner) {
            None => drop(shared.insert(owner, layer)),
            Some(owned) => merge(owned, layer, owner).map_err(|problem| {
                Error::usage(format!("{}: layer {number} uses the cache of layer {owner}: {problem}", info.name))
            })?,
        }
    }
    Ok(shared.into_values().flatten().collect())
}

fn merge(owned: &mut [CachePlan], layer: Vec<CachePlan>, owner: u32) -> Result<(), String> {
    let heads = |caches: &[CachePlan]| caches.iter().map(|cache| cache.label.head.to_string()).collect::<Vec<_>>();
    let (ours, theirs) = (heads(owned), heads(&layer));
    if ours != theirs {
        return Err(format!("its heads are {}, those of layer {owner} are {}", theirs.join(", "), ours.join(", ")));
    }
    for (cache, other) in owned.iter_mut().zip(layer) {
        // A position that one of the layers can still attend to stays.
        cache.window = cache.window.zip(other.window).map(|(one, other)| one.max(other));
        if other.label.layer == owner {
            cache.label.layer = owner;
        }
        cache.streams.extend(other.streams);
        cache.streams.sort_unstable();
    }
    Ok(())
}
