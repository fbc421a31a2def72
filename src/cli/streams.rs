//! The flags that choose streams and say which of them share a cache.

use super::list::expand_all;
use clap::Args;
use kvsim::error::Error;
use kvsim::replay::{CachePlan, caches_of, share_caches};
use kvsim::trace::{StreamLabel, TraceInfo};

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

/// What was said of KV heads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KvHeads {
    Off,
    Count(usize),
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
    /// The caches that were asked for.
    pub fn select(&self, info: &TraceInfo) -> Result<Vec<CachePlan>, Error> {
        let layers = expand_all("layers", &self.layers)?;
        let heads = expand_all("heads", &self.heads)?;
        let wanted = |names: &[String], name: String| names.is_empty() || names.contains(&name);
        let all = caches_of(info)?;
        check_known("layer", &layers, &all, layer_of)?;
        let mut caches = all.clone();
        caches.retain(|cache| wanted(&layers, layer_of(&cache.label)));
        match self.kv_heads {
            Some(KvHeads::Count(count)) => {
                caches = share_caches(info, caches, count)?;
                check_known("head", &heads, &caches, head_of)?;
            }
            _ => check_known("head", &heads, &all, head_of)?,
        }
        caches.retain(|cache| wanted(&heads, head_of(&cache.label)));
        if caches.is_empty() && !all.is_empty() {
            return Err(Error::usage("no stream has both a chosen layer and a chosen head"));
        }
        if self.keep_expired {
            caches.iter_mut().for_each(|cache| cache.window = None);
        }
        Ok(caches)
    }

    /// The caches that the whole trace would make, by label.
    pub fn available(&self, info: &TraceInfo) -> Vec<StreamLabel> {
        let whole = StreamArgs { layers: Vec::new(), heads: Vec::new(), ..self.clone() };
        match whole.select(info) {
            Ok(caches) => caches.into_iter().map(|cache| cache.label).collect(),
            // A layer that was not chosen may have heads that cannot share caches: then it counts as it is.
            Err(_) => info.streams.iter().map(|stream| stream.label.clone()).collect(),
        }
    }

    /// How query heads share caches, as reports say it.
    pub fn kv_heads(&self) -> String {
        match self.kv_heads {
            Some(KvHeads::Count(count)) => count.to_string(),
            Some(KvHeads::Off) | None => "off".to_owned(),
        }
    }

    /// Whether positions that have left their layer's window leave the cache.
    pub fn expiry(&self) -> bool {
        !self.keep_expired
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

fn check_known(
    what: &str,
    names: &[String],
    caches: &[CachePlan],
    name_of: fn(&StreamLabel) -> String,
) -> Result<(), Error> {
    let mut known: Vec<String> = Vec::new();
    for name in caches.iter().map(|cache| name_of(&cache.label)) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Error::usage(format!("--{what}s: no {what} {name:?}; there are {}", known.join(", ")))),
    }
}
