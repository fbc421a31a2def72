//! Reads what a model caches from its `config.json`, as the transformers library writes it.
//!
//! Only the keys that decide about the cache are read. Where a key is missing that a family of models
//! leaves to its code, the family's rule is applied and said; what cannot be told is refused.

use super::{LayerCache, ModelCaches, Rows};
use serde_json::{Map, Value};

/// Largest number that is believed of a configuration.
pub const MOST: u64 = 1 << 32;
/// Most layers, heads of a layer or numbers of a head that are believed.
pub const MOST_LAYERS: u64 = 1 << 16;

type Object = Map<String, Value>;

/// Reads a configuration.
///
/// # Errors
/// When it is not a JSON object, lacks what decides about the cache, or describes layers whose cache
/// is not known.
pub fn read(json: &[u8]) -> Result<ModelCaches, String> {
    let value: Value = serde_json::from_slice(json).map_err(|error| format!("not a model's config.json: {error}"))?;
    let root = value.as_object().ok_or("not a model's config.json: an object is needed")?;
    let config = Config(language_part(root));
    let layers = config.layers()?;
    let cache = config.layer_cache()?;
    let mut caches = ModelCaches { bits: config.bits(), ..ModelCaches::default() };
    for layer in 0..layers {
        caches.layers.push(config.on_layer(layer, layers, cache)?);
    }
    caches.notes = config.notes(&caches, layers);
    Ok(caches)
}

/// Models of several parts keep the language model's numbers in an object of their own.
fn language_part(root: &Object) -> &Object {
    let parts = ["text_config", "llm_config", "language_config"];
    let part = parts.iter().find_map(|name| root.get(*name)?.as_object());
    part.filter(|_| LAYERS.iter().all(|name| !root.contains_key(*name))).unwrap_or(root)
}

const LAYERS: [&str; 3] = ["num_hidden_layers", "n_layer", "n_layers"];
const HEADS: [&str; 3] = ["num_attention_heads", "n_head", "n_heads"];
const KV_HEADS: [&str; 3] = ["num_key_value_heads", "num_kv_heads", "n_head_kv"];
const WIDTHS: [&str; 3] = ["hidden_size", "n_embd", "d_model"];

struct Config<'a>(&'a Object);

impl Config<'_> {
    /// The first of these keys that is set.
    fn number(&self, names: &[&str], most: u64) -> Result<Option<u64>, String> {
        let Some((name, value)) = names.iter().find_map(|name| Some((name, self.0.get(*name)?))) else {
            return Ok(None);
        };
        if value.is_null() {
            return Ok(None);
        }
        let number = value.as_u64().filter(|number| (1..=most).contains(number));
        number.map(Some).ok_or_else(|| format!("{name} is {value}, not a whole number from 1 to {most}"))
    }

    fn required(&self, names: &[&str]) -> Result<u64, String> {
        self.number(names, MOST_LAYERS)?.ok_or_else(|| {
            format!("there is no {}: give the numbers by flags (--layers, --kv-heads, --head-dim)", names.join(" or "))
        })
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or("")
    }

    fn layers(&self) -> Result<u64, String> {
        self.required(&LAYERS)
    }

    /// What a layer with full attention caches.
    fn layer_cache(&self) -> Result<LayerCache, String> {
        if let Some(latent) = self.number(&["kv_lora_rank"], MOST_LAYERS)? {
            let rope = self.number(&["qk_rope_head_dim"], MOST_LAYERS)?.unwrap_or(0);
            let none = Rows { count: 0, width: 0 };
            return Ok(LayerCache { rows: [Rows { count: 1, width: latent + rope }, none], window: None });
        }
        let heads = self.required(&HEADS)?;
        let kv_heads = match self.flag("multi_query") {
            Some(true) if self.flag("new_decoder_architecture") != Some(true) => 1,
            _ => self.number(&KV_HEADS, MOST_LAYERS)?.unwrap_or(heads),
        };
        let head_dim = match self.number(&["head_dim"], MOST_LAYERS)? {
            Some(head_dim) => head_dim,
            None => self.required(&WIDTHS)? / heads,
        };
        Ok(LayerCache::of_heads(kv_heads, head_dim))
    }

    /// What one layer caches: all, a window, or nothing.
    fn on_layer(&self, layer: u64, layers: u64, cache: LayerCache) -> Result<Option<LayerCache>, String> {
        let shared = self.0.get("num_kv_shared_layers").and_then(Value::as_u64).unwrap_or(0);
        if layer + shared >= layers {
            return Ok(None);
        }
        match self.kind_of(layer)? {
            LayerKind::Full => Ok(Some(cache)),
            LayerKind::None => Ok(None),
            LayerKind::Window => Ok(Some(LayerCache { window: self.number(&["sliding_window"], MOST)?, ..cache })),
            LayerKind::Chunk => Ok(Some(LayerCache { window: self.number(&["attention_chunk_size"], MOST)?, ..cache })),
        }
    }

    fn kind_of(&self, layer: u64) -> Result<LayerKind, String> {
        for name in ["layer_types", "layers_block_type"] {
            if let Some(kinds) = self.0.get(name).and_then(Value::as_array) {
                let kind = kinds.get(layer as usize).and_then(Value::as_str);
                return LayerKind::named(kind.ok_or_else(|| format!("{name} says nothing of layer {layer}"))?);
            }
        }
        if let Some(name) =
            ["hybrid_override_pattern", "linear_attn_config"].iter().find(|name| self.0.contains_key(**name))
        {
            return Err(format!(
                "{name} says which layers have a cache in a way that is not known here: count the attention layers and \
                 give --layers"
            ));
        }
        Ok(if self.in_mixture_without_cache(layer) {
            LayerKind::None
        } else if self.is_windowed(layer) {
            LayerKind::Window
        } else {
            LayerKind::Full
        })
    }

    /// Layers between the attention layers of a model that counts them by period and offset.
    fn in_mixture_without_cache(&self, layer: u64) -> bool {
        let number = |name| self.0.get(name).and_then(Value::as_u64);
        match (number("attn_layer_period"), number("attn_layer_offset")) {
            (Some(period), Some(offset)) if period > 0 => layer % period != offset,
            _ => false,
        }
    }

    /// Whether a layer is windowed in a model that does not list its layers.
    fn is_windowed(&self, layer: u64) -> bool {
        let number = |name| self.0.get(name).and_then(Value::as_u64);
        if number("sliding_window").is_none() || self.flag("use_sliding_window") == Some(false) {
            return false;
        }
        if let Some(pattern) = number("sliding_window_pattern").filter(|pattern| *pattern > 0) {
            return !(layer + 1).is_multiple_of(pattern);
        }
        match self.text("model_type") {
            "gemma2" => layer.is_multiple_of(2),
            "gemma3_text" | "gemma3" => !(layer + 1).is_multiple_of(6),
            kind if kind.starts_with("qwen2") || kind.starts_with("qwen3") => {
                self.flag("use_sliding_window") == Some(true) && layer >= number("max_window_layers").unwrap_or(0)
            }
            _ => true,
        }
    }

    fn bits(&self) -> Option<u32> {
        let names = ["dtype", "torch_dtype"].map(|name| self.text(name));
        match names.into_iter().find(|name| !name.is_empty())? {
            "float32" => Some(32),
            "float16" | "bfloat16" => Some(16),
            _ => None,
        }
    }

    fn notes(&self, caches: &ModelCaches, layers: u64) -> Vec<String> {
        let windowed = caches.layers.iter().flatten().filter(|cache| cache.window.is_some()).count();
        let without = caches.layers.iter().filter(|cache| cache.is_none()).count();
        let mut notes = Vec::new();
        if windowed > 0 {
            let how =
                if self.0.contains_key("layer_types") { "as layer_types says" } else { "by the rule of its family" };
            notes.push(format!("{windowed} of {layers} layers attend through a sliding window, {how}"));
        }
        if without > 0 {
            notes.push(format!("{without} of {layers} layers have no KV cache of their own"));
        }
        if self.0.contains_key("kv_lora_rank") {
            notes.push(
                "latent attention: one latent row a position and layer, as its absorbed form caches it".to_owned(),
            );
        }
        notes
    }
}

/// What a layer does with its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LayerKind {
    Full,
    Window,
    Chunk,
    None,
}

impl LayerKind {
    fn named(name: &str) -> Result<LayerKind, String> {
        match name {
            "full_attention" | "attention" => Ok(LayerKind::Full),
            "sliding_attention" => Ok(LayerKind::Window),
            "chunked_attention" => Ok(LayerKind::Chunk),
            "linear_attention" | "mamba" | "mamba2" | "recurrent" | "conv" | "moe" | "mlp" => Ok(LayerKind::None),
            other => Err(format!(
                "layers of kind {other:?} are not known here: count the attention layers and give --layers"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::count::Storage;
    use serde_json::json;

    fn caches(config: &Value) -> ModelCaches {
        read(config.to_string().as_bytes()).expect("a configuration")
    }

    fn windows(config: &Value) -> Vec<Option<u64>> {
        caches(config).layers.iter().flatten().map(|cache| cache.window).collect()
    }

    #[test]
    fn a_llama_is_its_layers_of_kv_heads() {
        let config = json!({"model_type": "llama", "num_hidden_layers": 30, "num_attention_heads": 9,
            "num_key_value_heads": 3, "hidden_size": 576, "torch_dtype": "bfloat16"});
        let caches = caches(&config);
        assert_eq!(caches.layers, vec![Some(LayerCache::of_heads(3, 64)); 30]);
        assert_eq!(caches.position_bytes(Storage::plain(16)), 30 * 768);
        assert_eq!((caches.bits, caches.notes), (Some(16), vec![]));
    }

    #[test]
    fn older_names_and_multi_query_are_read() {
        let gpt2 = json!({"n_layer": 12, "n_head": 12, "n_embd": 768});
        assert_eq!(caches(&gpt2).layers[0], Some(LayerCache::of_heads(12, 64)));
        let falcon =
            json!({"num_hidden_layers": 2, "num_attention_heads": 71, "hidden_size": 4544, "multi_query": true});
        assert_eq!(caches(&falcon).layers[0], Some(LayerCache::of_heads(1, 64)));
    }

    #[test]
    fn windows_follow_the_list_of_layers_or_the_family() {
        let base = json!({"num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 8, "sliding_window": 512});
        let with = |extra: Value| {
            let mut config = base.clone();
            config.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
            config
        };
        let window = Some(512);
        assert_eq!(windows(&with(json!({"model_type": "mistral"}))), [window; 4]);
        assert_eq!(windows(&with(json!({"model_type": "gemma2"}))), [window, None, window, None]);
        assert_eq!(windows(&with(json!({"sliding_window_pattern": 2}))), [window, None, window, None]);
        assert_eq!(windows(&with(json!({"model_type": "qwen2", "use_sliding_window": false}))), [None; 4]);
        let qwen = json!({"model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 3});
        assert_eq!(windows(&with(qwen)), [None, None, None, window]);
        let listed =
            json!({"layer_types": ["full_attention", "sliding_attention", "linear_attention", "full_attention"]});
        assert_eq!(windows(&with(listed)), [None, window, None]);
    }

    #[test]
    fn layers_without_a_cache_of_their_own_count_nothing() {
        let shared =
            json!({"num_hidden_layers": 6, "num_attention_heads": 4, "head_dim": 8, "num_kv_shared_layers": 2});
        assert_eq!(caches(&shared).layers.iter().flatten().count(), 4);
        let jamba = json!({"num_hidden_layers": 8, "num_attention_heads": 4, "head_dim": 8, "attn_layer_period": 8,
            "attn_layer_offset": 4});
        let held: Vec<bool> = caches(&jamba).layers.iter().map(Option::is_some).collect();
        assert_eq!(held, [false, false, false, false, true, false, false, false]);
    }

    #[test]
    fn latent_attention_caches_one_row() {
        let config = json!({"num_hidden_layers": 61, "num_attention_heads": 128, "kv_lora_rank": 512,
            "qk_rope_head_dim": 64});
        assert_eq!(caches(&config).layers[0].expect("a cache").position_bytes(Storage::plain(16)), 2 * 576);
    }

    #[test]
    fn the_language_part_of_a_larger_model_is_found() {
        let config = json!({"vision_config": {}, "text_config": {"num_hidden_layers": 1, "num_attention_heads": 2,
            "head_dim": 4}});
        assert_eq!(caches(&config).layers.len(), 1);
    }

    #[test]
    fn what_cannot_be_told_is_refused_by_name() {
        let refused = |config: Value| read(config.to_string().as_bytes()).expect_err("refused");
        assert!(refused(json!([])).contains("an object is needed"));
        assert!(refused(json!({})).contains("there is no num_hidden_layers or n_layer or n_layers"));
        assert!(refused(json!({"num_hidden_layers": -1})).contains("num_hidden_layers is -1, not a whole number"));
        assert!(refused(json!({"num_hidden_layers": 1e9})).contains("not a whole number from 1 to 65536"));
        let odd = json!({"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 1, "layer_types": ["rwkv"]});
        assert!(refused(odd).contains("layers of kind \"rwkv\""));
        let short = json!({"num_hidden_layers": 2, "num_attention_heads": 1, "head_dim": 1, "layer_types": ["mamba"]});
        assert!(refused(short).contains("layer_types says nothing of layer 1"));
        assert!(read(b"not json").is_err());
    }
}
