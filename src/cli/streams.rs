//! The flags that choose streams and say which of them share a cache.

use super::list::expand_all;
use clap::Args;
use kvsim::error::Error;
use kvsim::experiment::caches::{KvHeads, Selection};

/// Which streams are worked on, and as which caches.
#[derive(Args, Clone, Debug)]
pub struct StreamArgs {
    /// Only these layers
    #[arg(long, value_name = "LIST")]
    layers: Vec<String>,

    /// Only these heads (kv0, kv1, ... where query heads share KV heads)
    #[arg(long, value_name = "LIST")]
    heads: Vec<String>,

    /// Contiguous query heads of a layer share N caches, as grouped-query models do; off: each head
    /// has its own
    #[arg(long, value_name = "N|off", value_parser = parse_kv_heads)]
    kv_heads: Option<KvHeads>,

    /// Keep positions that have left a layer's sliding window until a policy evicts them
    #[arg(long)]
    keep_expired: bool,
}

fn parse_kv_heads(text: &str) -> Result<KvHeads, String> {
    match text {
        "off" => Ok(KvHeads::Off),
        _ => match text.parse() {
            Ok(count) if count > 0 => Ok(KvHeads::Count(count)),
            _ => Err("write the number of KV heads in a layer, or off".to_owned()),
        },
    }
}

impl StreamArgs {
    /// What the library is told.
    pub fn selection(&self) -> Result<Selection, Error> {
        Ok(Selection {
            layers: expand_all("layers", &self.layers)?,
            heads: expand_all("heads", &self.heads)?,
            kv_heads: self.kv_heads,
            keep_expired: self.keep_expired,
        })
    }
}
