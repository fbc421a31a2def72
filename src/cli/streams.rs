//! The flags that choose streams and say which of them share a cache.

use super::list::expand_all;
use clap::Args;
use kvsim::error::Error;
use kvsim::experiment::caches::{KvHeads, Selection};
use std::collections::{BTreeMap, BTreeSet};

/// Which streams are worked on, and as which caches.
#[derive(Args, Clone, Debug)]
pub struct StreamArgs {
    /// Only these layers
    #[arg(long, value_name = "LIST")]
    layers: Vec<String>,

    /// Only these heads (kv0, kv1, ... where query heads share KV heads)
    #[arg(long, value_name = "LIST")]
    heads: Vec<String>,

    /// Contiguous query heads of a layer share N caches, as grouped-query models do: 4 for every layer, 0:4,1:8
    /// for these; off: each head has its own [default: as the trace says, else off]
    #[arg(long, value_name = "N|LIST|off")]
    kv_heads: Option<KvHeads>,

    /// Layers that use the cache of another layer: 1:0,3:2 for layer 1 that of layer 0, layer 3 that of layer 2
    #[arg(long, value_name = "LIST", value_parser = parse_pairs)]
    share_cache: Option<BTreeMap<u32, u32>>,

    /// Layers that have a cache at all, where others keep a state of fixed size: budgets are dealt out to these
    #[arg(long, value_name = "LIST")]
    cache_layers: Vec<String>,

    /// Take what is said of caches even where the trace says something else
    #[arg(long)]
    force: bool,

    /// Keep positions that have left a layer's sliding window until a policy evicts them
    #[arg(long)]
    keep_expired: bool,
}

fn parse_pairs(text: &str) -> Result<BTreeMap<u32, u32>, String> {
    let mut pairs = BTreeMap::new();
    for part in text.split(',') {
        let pair = part
            .split_once(':')
            .and_then(|(layer, owner)| Some((layer.trim().parse::<u32>().ok()?, owner.trim().parse::<u32>().ok()?)));
        match pair.map(|(layer, owner)| pairs.insert(layer, owner)) {
            Some(None) => {}
            _ => {
                return Err(format!(
                    "{part:?} is not a layer and the layer whose cache it uses, such as 1:0, given once"
                ));
            }
        }
    }
    Ok(pairs)
}

impl StreamArgs {
    /// What the library is told.
    pub fn selection(&self) -> Result<Selection, Error> {
        Ok(Selection {
            layers: expand_all("layers", &self.layers)?,
            heads: expand_all("heads", &self.heads)?,
            kv_heads: self.kv_heads.clone(),
            share_cache: self.share_cache.clone().unwrap_or_default(),
            cache_layers: self.cache_layers()?,
            force: self.force,
            keep_expired: self.keep_expired,
        })
    }

    fn cache_layers(&self) -> Result<Option<BTreeSet<u32>>, Error> {
        if self.cache_layers.is_empty() {
            return Ok(None);
        }
        let layer = |text: &String| {
            text.parse().map_err(|_| Error::usage(format!("--cache-layers: {text:?} is not the number of a layer")))
        };
        expand_all("cache-layers", &self.cache_layers)?.iter().map(layer).collect::<Result<_, _>>().map(Some)
    }
}
