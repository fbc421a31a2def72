//! Which caches a trace has.

use crate::budgets::LayerPlace;
use crate::error::{Error, Result};
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
