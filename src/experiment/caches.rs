//! Which streams of a trace are worked on, and as which caches: what the trace says, and what a user says.
//!
//! What is said against the facts of the trace is refused unless it is forced. Nothing is shared or left out
//! without a note.

use crate::error::{Error, Result};
use crate::replay::CachePlan;
use crate::replay::caches::{are_single_heads, by_layer, caches_with, share_heads, share_layers};
use crate::trace::options::PerLayer;
use crate::trace::{ModelFacts, StreamLabel, TraceInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// A choice of streams, and what is said of their caches. The default takes every stream, and shares caches
/// as the trace says.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Layers by their numbers; none: all.
    pub layers: Vec<String>,
    /// Heads by their names; none: all.
    pub heads: Vec<String>,
    /// Which query heads share a cache, where it is said.
    pub kv_heads: Option<KvHeads>,
    /// For layers that use the cache of another: which.
    pub share_cache: BTreeMap<u32, u32>,
    /// The layers that have a cache, where it is said.
    pub cache_layers: Option<BTreeSet<u32>>,
    /// Whether what is said counts even against the facts of the trace.
    pub force: bool,
    /// Whether positions that have left a layer's sliding window stay until a policy evicts them.
    pub keep_expired: bool,
}

/// Which query heads of a layer share a cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KvHeads {
    /// Each has its own.
    Off,
    /// Contiguous ones share so many caches.
    Count(PerLayer),
}

impl FromStr for KvHeads {
    type Err = String;

    /// Reads `off`, `4` (every layer) or `0:4,1:8` (these layers).
    fn from_str(text: &str) -> Result<KvHeads, String> {
        if text == "off" {
            return Ok(KvHeads::Off);
        }
        let counts = text.parse::<PerLayer>().ok();
        let sound =
            counts.filter(|counts| counts.others != Some(0) && !counts.layers.values().any(|count| *count == 0));
        let problem = "write the number of KV heads in a layer, such as 4 or 0:4,1:8, or off";
        sound.map(KvHeads::Count).ok_or_else(|| problem.to_owned())
    }
}

/// The caches chosen of a trace.
#[derive(Clone, Debug)]
pub struct ChosenCaches {
    /// The caches, by layer, then head.
    pub caches: Vec<CachePlan>,
    /// How many caches the query heads of a layer share: `off` where each has its own, else as `--kv-heads`
    /// takes it.
    pub kv_heads: String,
    /// The facts of the model with what was said of its caches.
    pub facts: ModelFacts,
    /// Positions of the longest stream chosen, or of the whole trace where that is as long as any.
    pub positions: usize,
    /// What a user should know of the choice, one line each.
    pub notes: Vec<String>,
}

impl Selection {
    /// The caches chosen of a trace of which the first `steps` rows are used.
    ///
    /// # Errors
    /// When the trace has no such layer or head, its streams cannot share caches in this way, what is said
    /// contradicts the trace, or the streams chosen are not equally long.
    pub fn choose(&self, info: &TraceInfo, steps: Option<usize>) -> Result<ChosenCaches> {
        if info.rows_are_rebuilt() {
            self.refuse_other_groups(info)?;
        }
        let facts = self.facts_of(info)?;
        let mut caches = caches_with(info, &facts)?;
        let labels = || info.streams.iter().map(|stream| &stream.label);
        check_known("layer", &self.layers, labels(), layer_name)?;
        caches.retain(|cache| is_named(&self.layers, &cache.label, layer_name));
        let mut sharing =
            Sharing { info, facts: &facts, selection: self, kv_heads: PerLayer::default(), notes: Vec::new() };
        let mut caches = sharing.share(caches)?;
        let Sharing { kv_heads, notes, .. } = sharing;
        // A head of a layer that was not chosen is known too, where heads keep their names.
        match kv_heads.is_empty() {
            true => check_known("head", &self.heads, labels(), head_name)?,
            false => check_known("head", &self.heads, caches.iter().map(|cache| &cache.label), head_name)?,
        }
        caches.retain(|cache| is_named(&self.heads, &cache.label, head_name));
        if caches.is_empty() && !info.streams.is_empty() {
            return Err(Error::usage("no stream has both a chosen layer and a chosen head"));
        }
        check_lengths(info, &caches, steps)?;
        if self.keep_expired {
            caches.iter_mut().for_each(|cache| cache.window = None);
        }
        let kv_heads = if kv_heads.is_empty() { "off".to_owned() } else { in_short(kv_heads) };
        Ok(ChosenCaches { positions: positions(info, &caches), caches, kv_heads, facts, notes })
    }

    /// Of queries and keys a cache is a KV head, whatever is forced: its keys are those that rows are made of.
    fn refuse_other_groups(&self, info: &TraceInfo) -> Result<()> {
        let other = |layer: u32| match &self.kv_heads {
            None => false,
            Some(KvHeads::Off) => info.facts.kv_heads.of(layer) != info.facts.query_heads.of(layer),
            Some(KvHeads::Count(counts)) => {
                counts.of(layer).is_some_and(|count| info.facts.kv_heads.of(layer) != Some(count))
            }
        };
        let flag = match () {
            () if info.streams.iter().any(|stream| other(stream.label.layer)) => "--kv-heads",
            () if !self.share_cache.is_empty() => "--share-cache",
            () => return Ok(()),
        };
        let problem =
            "a cache is a KV head of its queries, keys and values: leave it out, or convert the trace to rows";
        Err(Error::usage(format!("{flag}: {}: {problem}", info.name)))
    }

    /// The facts of a trace with what is said of its caches.
    fn facts_of(&self, info: &TraceInfo) -> Result<ModelFacts> {
        let mut facts = info.facts.clone();
        let refuse = |flag: String, fact: String| {
            let problem = format!("{flag} contradicts the metadata of {}: {fact} (--force takes the flag)", info.name);
            if self.force { Ok(()) } else { Err(Error::usage(problem)) }
        };
        if let (Some(said), Some(known)) = (&self.cache_layers, &facts.cache_layers)
            && said != known
        {
            refuse(format!("--cache-layers {}", list(said)), format!("cache_layers is {}", list(known)))?;
        }
        for (layer, owner) in &self.share_cache {
            if let Some(known) = facts.cache_of.get(layer).filter(|known| *known != owner) {
                refuse(format!("--share-cache {layer}:{owner}"), format!("cache_of.{layer} is {known}"))?;
            }
        }
        if let Some(KvHeads::Count(said)) = &self.kv_heads {
            for layer in info.streams.iter().map(|stream| stream.label.layer).collect::<BTreeSet<u32>>() {
                if let (Some(said), Some(known)) = (said.of(layer), facts.kv_heads.of(layer))
                    && said != known
                {
                    refuse(format!("--kv-heads {said}"), format!("layer {layer} has {known} KV heads"))?;
                }
            }
        }
        facts.cache_layers = self.cache_layers.clone().or(facts.cache_layers);
        facts.cache_of.extend(&self.share_cache);
        facts.check().map_err(Error::Usage)?;
        Ok(facts)
    }
}

/// Has streams share caches, layer by layer.
struct Sharing<'a> {
    info: &'a TraceInfo,
    facts: &'a ModelFacts,
    selection: &'a Selection,
    /// The KV heads of layers whose query heads share them.
    kv_heads: PerLayer,
    notes: Vec<String>,
}

impl Sharing<'_> {
    fn share(&mut self, caches: Vec<CachePlan>) -> Result<Vec<CachePlan>> {
        let mut shared = Vec::new();
        let mut unsaid = BTreeMap::new();
        for layer in by_layer(caches) {
            let number = layer[0].label.layer;
            let said = self.said(number);
            let Some(count) = said.or_else(|| self.known(&layer)) else {
                shared.extend(layer);
                continue;
            };
            if said.is_none() {
                unsaid.insert(number, (layer.len(), count));
            }
            self.kv_heads.layers.insert(number, count);
            shared.extend(share_heads(self.info, layer, count)?);
        }
        self.note_default(&unsaid);
        self.note_layers(&shared);
        share_layers(self.info, self.facts, shared)
    }

    /// The KV heads of a layer, as the user has it.
    fn said(&self, layer: u32) -> Option<usize> {
        match &self.selection.kv_heads {
            Some(KvHeads::Count(counts)) => counts.of(layer),
            _ => None,
        }
    }

    /// The KV heads of a layer, as the trace has it; `None` where that does not make its streams share.
    fn known(&mut self, layer: &[CachePlan]) -> Option<usize> {
        let (number, facts) = (layer[0].label.layer, self.facts);
        let count = facts.kv_heads.of(number).filter(|_| self.selection.kv_heads != Some(KvHeads::Off))?;
        let heads = facts.query_heads.of(number);
        let single = match facts.group.as_deref() {
            Some("none") => true,
            None | Some("mixed") => heads.is_some(),
            Some(_) => false,
        };
        if !single || !are_single_heads(layer) || count >= heads.unwrap_or(layer.len()) {
            return None;
        }
        if heads.is_some_and(|heads| heads != layer.len()) {
            let note = format!(
                "layer {number} holds {} of its {} query heads: each has a cache of its own, as all are needed to share \
                 KV heads",
                layer.len(),
                heads.unwrap_or_default()
            );
            self.notes.push(note);
            return None;
        }
        let named = &self.selection.heads;
        if !named.is_empty() && named.iter().all(|head| head.parse::<u32>().is_ok()) {
            self.notes.push(format!(
                "single query heads of layer {number} are chosen: each has a cache of its own, although they share KV heads"
            ));
            return None;
        }
        Some(count)
    }

    /// Says what the trace decided.
    fn note_default(&mut self, layers: &BTreeMap<u32, (usize, usize)>) {
        let kinds: BTreeSet<(usize, usize)> = layers.values().copied().collect();
        for (heads, count) in kinds {
            let caches = if count == 1 { "one cache" } else { "a cache for each group" };
            self.notes.push(format!(
                "its {heads} query heads share {count} KV heads: {caches}, as the model has it (--kv-heads off gives each \
                 query head its own)"
            ));
        }
    }

    /// Says which layers would share a cache with one that is not there.
    fn note_layers(&mut self, caches: &[CachePlan]) {
        let layers: BTreeSet<u32> = caches.iter().map(|cache| cache.label.layer).collect();
        for layer in &layers {
            let owner = self.facts.owner(*layer);
            if !layers.contains(&owner) {
                self.notes.push(format!(
                    "layer {layer} uses the cache of layer {owner}, whose rows are not replayed: what that cache keeps is \
                     decided without them"
                ));
            }
        }
    }
}

/// One number where all layers have the same.
fn in_short(counts: PerLayer) -> String {
    let kinds: BTreeSet<usize> = counts.layers.values().copied().collect();
    match kinds.first() {
        Some(only) if kinds.len() == 1 => only.to_string(),
        _ => counts.to_string(),
    }
}

fn list(layers: &BTreeSet<u32>) -> String {
    layers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Refuses streams of unequal length, unless they are as long as they are used.
fn check_lengths(info: &TraceInfo, caches: &[CachePlan], steps: Option<usize>) -> Result<()> {
    let streams = || caches.iter().flat_map(|cache| &cache.streams).map(|stream| &info.streams[*stream]);
    let used = |rows: usize| steps.map_or(rows, |steps| rows.min(steps));
    let (Some(least), Some(most)) = (streams().min_by_key(|a| a.rows), streams().max_by_key(|a| a.rows)) else {
        return Ok(());
    };
    if used(least.rows) == used(most.rows) {
        return Ok(());
    }
    let (short, rows, long) = (&least.label, least.rows, &most.label);
    Err(Error::data(
        &info.name,
        format!(
            "streams are not equally long: the shortest, {short}, has {rows} rows, {long} has {} (--steps {rows} replays \
             the first {rows} of each; --layers and --heads choose others)",
            most.rows
        ),
    ))
}

fn positions(info: &TraceInfo, caches: &[CachePlan]) -> usize {
    let longest = info.streams.iter().map(|stream| stream.rows).max().unwrap_or(0);
    let streams = caches.iter().flat_map(|cache| &cache.streams);
    let rows = streams.map(|stream| info.streams[*stream].rows).max().unwrap_or(0);
    if rows == longest { info.positions } else { info.first_position.index() + rows }
}

fn layer_name(label: &StreamLabel) -> String {
    label.layer.to_string()
}

fn head_name(label: &StreamLabel) -> String {
    label.head.to_string()
}

/// Whether a label is among the names; without any, all are.
fn is_named(names: &[String], label: &StreamLabel, name_of: fn(&StreamLabel) -> String) -> bool {
    names.is_empty() || names.contains(&name_of(label))
}

fn check_known<'a>(
    what: &str,
    names: &[String],
    labels: impl Iterator<Item = &'a StreamLabel>,
    name_of: fn(&StreamLabel) -> String,
) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    let in_order: Vec<String> = labels.map(name_of).filter(|name| known.insert(name.clone())).collect();
    match names.iter().find(|name| !known.contains(*name)) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("--{what}s: no {what} {name:?}; there are {}", in_order.join(", "));
            Err(Error::usage(problem))
        }
    }
}
