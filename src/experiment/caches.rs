//! Which streams of a trace are worked on, and as which caches.

use crate::error::{Error, Result};
use crate::replay::{CachePlan, caches_of, share_caches};
use crate::trace::{StreamLabel, TraceInfo};
use std::collections::BTreeSet;

/// A choice of streams. The default takes every stream as a cache of its own.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Layers by their numbers; none: all.
    pub layers: Vec<String>,
    /// Heads by their names; none: all.
    pub heads: Vec<String>,
    /// Which query heads share a cache, where it is said.
    pub kv_heads: Option<KvHeads>,
    /// Whether positions that have left a layer's sliding window stay until a policy evicts them.
    pub keep_expired: bool,
}

/// Which query heads of a layer share a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KvHeads {
    /// Each has its own.
    Off,
    /// Contiguous ones share so many caches.
    Count(usize),
}

impl Selection {
    /// The caches chosen of a trace.
    ///
    /// # Errors
    /// When the trace has no such layer or head, or its heads cannot share caches in this way.
    pub fn caches(&self, info: &TraceInfo) -> Result<Vec<CachePlan>> {
        let wanted = |names: &[String], name: String| names.is_empty() || names.contains(&name);
        let all = caches_of(info)?;
        check_known("layer", &self.layers, &all, layer_of)?;
        let mut caches = all.clone();
        caches.retain(|cache| wanted(&self.layers, layer_of(&cache.label)));
        match self.kv_heads {
            Some(KvHeads::Count(count)) => {
                caches = share_caches(info, caches, count)?;
                check_known("head", &self.heads, &caches, head_of)?;
            }
            _ => check_known("head", &self.heads, &all, head_of)?,
        }
        caches.retain(|cache| wanted(&self.heads, head_of(&cache.label)));
        if caches.is_empty() && !all.is_empty() {
            return Err(Error::usage("no stream has both a chosen layer and a chosen head"));
        }
        if self.keep_expired {
            caches.iter_mut().for_each(|cache| cache.window = None);
        }
        Ok(caches)
    }

    /// What a user may have meant to say.
    pub fn hints(&self, info: &TraceInfo) -> Vec<String> {
        let single = info.metadata.get("group").is_some_and(|group| group == "none");
        let heads = (info.metadata_count("query_heads"), info.metadata_count("kv_heads"));
        match heads {
            (Some(query), Some(kv)) if single && kv < query && self.kv_heads.is_none() => vec![format!(
                "its {query} query heads share {kv} KV heads: --kv-heads {kv} gives each group one cache, as a server \
                 does; here each head has its own (--kv-heads off says so)"
            )],
            _ => Vec::new(),
        }
    }
}

fn layer_of(label: &StreamLabel) -> String {
    label.layer.to_string()
}

fn head_of(label: &StreamLabel) -> String {
    label.head.to_string()
}

fn check_known(what: &str, names: &[String], caches: &[CachePlan], name_of: fn(&StreamLabel) -> String) -> Result<()> {
    let known: BTreeSet<String> = caches.iter().map(|cache| name_of(&cache.label)).collect();
    let Some(name) = names.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let mut seen = BTreeSet::new();
    let in_order = caches.iter().map(|cache| name_of(&cache.label)).filter(|name| seen.insert(name.clone()));
    let known = in_order.collect::<Vec<_>>().join(", ");
    Err(Error::usage(format!("--{what}s: no {what} {name:?}; there are {known}")))
}
