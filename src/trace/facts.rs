//! What a trace says of the model that it was recorded from: parsed once, typed, layer by layer.
//!
//! A format reads text; this file is the one place that gives the text of model facts a meaning. Knows
//! no flags and no streams: whether a fact fits the streams is asked where streams become caches.

use super::limits::quoted;
use super::options::PerLayer;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Text about a trace, as its file has it.
pub type Metadata = BTreeMap<String, String>;

/// The facts of a model, as far as its trace says them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelFacts {
    /// Name of the model.
    pub model: Option<String>,
    /// What a stream is: `none` (a single query head), `kv` or `layer` (the mean over such a group),
    /// `mixed`.
    pub group: Option<String>,
    /// How the model's caches store a number.
    pub dtype: Option<String>,
    /// Layers of the model, those counted that were not recorded or have no cache.
    pub num_layers: Option<usize>,
    /// Positions of the prompt; `None` where there is no prompt.
    pub prompt_len: Option<usize>,
    /// Numbers in the key or value of one position and KV head.
    pub head_dim: Option<usize>,
    /// Query heads of a layer.
    pub query_heads: PerLayer,
    /// KV heads of a layer; 0 where it has no cache.
    pub kv_heads: PerLayer,
    /// Positions that a layer attends to, the token itself included; 0 where it sees all.
    pub sliding_window: PerLayer,
    /// For layers that use the cache of another layer: which.
    pub cache_of: BTreeMap<u32, u32>,
    /// The layers that have a cache, where only some do.
    pub cache_layers: Option<BTreeSet<u32>>,
}

impl ModelFacts {
    /// Reads the facts from metadata; a key may be followed by a dot and the layer that it is about.
    ///
    /// # Errors
    /// Names the key whose text means nothing, or which contradicts another.
    pub fn parse(metadata: &Metadata) -> Result<ModelFacts, String> {
        let text = |key: &str| metadata.get(key).cloned();
        let facts = ModelFacts {
            model: text("model"),
            group: text("group"),
            dtype: text("dtype"),
            num_layers: count(metadata, "num_layers")?,
            prompt_len: count(metadata, "prompt_len")?.filter(|len| *len > 0),
            head_dim: count(metadata, "head_dim")?,
            query_heads: per_layer(metadata, "query_heads")?,
            kv_heads: per_layer(metadata, "kv_heads")?,
            sliding_window: per_layer(metadata, "sliding_window")?,
            cache_of: by_layer(metadata, "cache_of")?,
            cache_layers: text("cache_layers").map(|text| layers(&text)).transpose()?,
        };
        // Read by square arrays alone; elsewhere it must not be passed over where it means nothing.
        by_layer::<usize>(metadata, "column_offset")?;
        facts.check().map(|()| facts)
    }

    /// Refuses facts that contradict each other.
    ///
    /// # Errors
    /// Names the facts.
    pub fn check(&self) -> Result<(), String> {
        for (layer, owner) in &self.cache_of {
            let end = self.owner(*owner);
            if end != *owner {
                return Err(format!("cache_of.{layer} is {owner}, a layer that uses the cache of layer {end} itself"));
            }
            if !self.has_cache(*layer) {
                return Err(format!("cache_of.{layer} is {owner}, a layer without a cache"));
            }
        }
        Ok(())
    }

    /// The layer whose cache a layer uses: its own number where nothing else is said.
    pub fn owner(&self, layer: u32) -> u32 {
        self.cache_of.get(&layer).copied().unwrap_or(layer)
    }

    /// Whether a layer has a cache, its own or that of another layer.
    pub fn has_cache(&self, layer: u32) -> bool {
        let owner = self.owner(layer);
        let listed = self.cache_layers.as_ref().is_none_or(|layers| layers.contains(&owner));
        listed && self.kv_heads.of(owner) != Some(0) && self.kv_heads.of(layer) != Some(0)
    }

    /// Whether a layer has a cache that is its own.
    pub fn owns_cache(&self, layer: u32) -> bool {
        self.owner(layer) == layer && self.has_cache(layer)
    }

    /// Layers that are said to have no cache of their own, ascending.
    pub fn without_own_cache(&self) -> BTreeSet<u32> {
        let named = self.cache_of.keys().chain(self.kv_heads.layers.keys()).copied();
        named.filter(|layer| !self.owns_cache(*layer)).collect()
    }

    /// The sliding window of a layer; `None` where it sees all positions, or nothing is said.
    pub fn window_of(&self, layer: u32) -> Option<usize> {
        self.sliding_window.of(layer).filter(|window| *window > 0)
    }
}

fn count(metadata: &Metadata, key: &str) -> Result<Option<usize>, String> {
    metadata.get(key).map(|text| number(key, text)).transpose()
}

fn per_layer(metadata: &Metadata, key: &str) -> Result<PerLayer, String> {
    Ok(PerLayer { others: count(metadata, key)?, layers: by_layer(metadata, key)? })
}

/// What `key.0`, `key.1`, ... say of these layers.
fn by_layer<T: FromStr>(metadata: &Metadata, key: &str) -> Result<BTreeMap<u32, T>, String> {
    let prefix = format!("{key}.");
    let entries = metadata.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
    let entry = |(name, text): (&String, &String)| {
        let layer = name[prefix.len()..]
            .parse()
            .map_err(|_| format!("{} in the metadata does not end in a layer", quoted(name)))?;
        Ok((layer, number(name, text)?))
    };
    entries.map(entry).collect()
}

fn number<T: FromStr>(key: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{key} is {} in the metadata, must be a whole number", quoted(text)))
}

fn layers(text: &str) -> Result<BTreeSet<u32>, String> {
    let layer = |part: &str| part.trim().parse();
    text.split(',').map(layer).collect::<Result<_, _>>().map_err(|_| {
        let text = quoted(text);
        format!("cache_layers is {text} in the metadata, must be the numbers of layers, such as \"3,7,11\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[(&str, &str)]) -> Result<ModelFacts, String> {
        ModelFacts::parse(&entries.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect())
    }

    fn facts(entries: &[(&str, &str)]) -> ModelFacts {
        parse(entries).expect("sound")
    }

    #[test]
    fn a_fact_may_be_for_all_layers_and_for_some() {
        let facts = facts(&[("kv_heads", "3"), ("kv_heads.4", "1"), ("query_heads.4", "8"), ("sliding_window.4", "0")]);
        assert_eq!([3, 4].map(|layer| facts.kv_heads.of(layer)), [Some(3), Some(1)]);
        assert_eq!([3, 4].map(|layer| facts.query_heads.of(layer)), [None, Some(8)]);
        assert_eq!(facts.window_of(4), None, "0 is all positions");
    }

    #[test]
    fn a_prompt_of_no_positions_is_none() {
        assert_eq!(facts(&[("prompt_len", "0")]).prompt_len, None);
        assert_eq!(facts(&[("prompt_len", "7")]).prompt_len, Some(7));
    }

    #[test]
    fn a_layer_may_use_the_cache_of_another() {
        let facts = facts(&[("cache_of.2", "0"), ("cache_of.1", "0"), ("cache_of.5", "5")]);
        assert_eq!([0, 1, 2, 5, 6].map(|layer| facts.owner(layer)), [0, 0, 0, 5, 6]);
        assert_eq!(facts.without_own_cache().into_iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_layer_may_have_no_cache() {
        let by_heads = facts(&[("kv_heads", "2"), ("kv_heads.1", "0")]);
        assert_eq!([0, 1, 2].map(|layer| by_heads.has_cache(layer)), [true, false, true]);
        let listed = facts(&[("cache_layers", "3, 7"), ("cache_of.9", "7")]);
        assert_eq!([3, 4, 7, 9].map(|layer| listed.has_cache(layer)), [true, false, true, true]);
        assert_eq!([3, 4, 7, 9].map(|layer| listed.owns_cache(layer)), [true, false, true, false]);
    }

    #[test]
    fn text_that_means_nothing_and_contradictions_are_refused_by_name() {
        let cases: [(&[(&str, &str)], &str); 9] = [
            (&[("kv_heads", "x")], "kv_heads is \"x\" in the metadata, must be a whole number"),
            (&[("kv_heads.3", "-1")], "kv_heads.3 is \"-1\""),
            (&[("head_dim", "6.5")], "head_dim is \"6.5\""),
            (&[("column_offset.0", "x")], "column_offset.0 is \"x\""),
            (&[("sliding_window.all", "4")], "\"sliding_window.all\" in the metadata does not end in a layer"),
            (&[("cache_layers", "3;7")], "cache_layers is \"3;7\""),
            (
                &[("cache_of.1", "2"), ("cache_of.2", "1")],
                "cache_of.1 is 2, a layer that uses the cache of layer 1 itself",
            ),
            (&[("cache_of.1", "0"), ("kv_heads.0", "0")], "a layer without a cache"),
            (&[("cache_of.1", "0"), ("cache_layers", "1")], "a layer without a cache"),
        ];
        for (entries, problem) in cases {
            let found = parse(entries).expect_err("refused");
            assert!(found.contains(problem), "{found}");
        }
    }
}
