//! Decisions that were made elsewhere, to be replayed: when each position leaves each cache.

use super::caches::{CachePlan, LAYER};
use crate::keeping::Scope;
use crate::policy::future::Departures;
use crate::trace::{Head, StreamLabel};
use std::collections::BTreeMap;
use std::sync::Arc;

/// When each position leaves each cache. Cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub struct Playback {
    name: String,
    of: Arc<BTreeMap<StreamLabel, Departures>>,
}

impl Playback {
    /// Decisions for the caches with these labels; `name` is for messages.
    pub fn new(name: &str, of: BTreeMap<StreamLabel, Departures>) -> Playback {
        Playback { name: name.to_owned(), of: Arc::new(of) }
    }

    /// When each position of a cache goes; `None` where nothing is said of it.
    pub fn of(&self, cache: &StreamLabel) -> Option<&Departures> {
        self.of.get(cache)
    }

    /// Who shares a kept set: the caches of a layer where the decisions are about layers.
    pub(super) fn scope(&self) -> Scope {
        let of_layer = |label: &StreamLabel| label.head == Head::Word(LAYER.to_owned());
        if !self.of.is_empty() && self.of.keys().all(of_layer) { Scope::Layer } else { Scope::Head }
    }

    /// Refuses caches of which nothing is said.
    pub(super) fn check(&self, caches: &[CachePlan]) -> Result<(), String> {
        let Some(missing) = caches.iter().find(|cache| self.of(&cache.label).is_none()) else { return Ok(()) };
        let known: Vec<String> = self.of.keys().take(8).map(StreamLabel::to_string).collect();
        let more = if self.of.len() > known.len() { ", ..." } else { "" };
        Err(format!(
            "{} says nothing of cache {}; it has {}{more} (--layers and --heads choose caches, --kv-heads says which \
             query heads share one)",
            self.name,
            missing.label,
            known.join(", ")
        ))
    }
}
