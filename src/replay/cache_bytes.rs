//! Bytes of a position in a cache, as far as the facts of the model tell them.

use super::caches::CachePlan;
use crate::meter::Bytes;
use crate::trace::TraceInfo;
use std::collections::BTreeSet;

/// Keys and values of a position in a kept set, beside what the model's own cache has for the same query
/// heads; `None` where the trace does not say the model's sizes.
pub(super) fn bytes_of(info: &TraceInfo, cache: &CachePlan) -> Option<Bytes> {
    let facts = &info.facts;
    let head = 2 * facts.head_dim? as u64 * number_bytes(facts.dtype.as_deref()?)?;
    let layer = cache.label.layer;
    let kv_heads = facts.kv_heads.of(layer)? as u64;
    let (held, own) = match facts.group.as_deref() {
        Some("layer") => (kv_heads, kv_heads as f64),
        Some("kv") => (cache.stands_for() as u64, cache.stands_for() as f64),
        _ => {
            let layers: BTreeSet<u32> = cache.streams.iter().map(|stream| info.streams[*stream].label.layer).collect();
            let heads = cache.streams.len() as f64 / layers.len().max(1) as f64;
            (cache.stands_for() as u64, heads * kv_heads as f64 / facts.query_heads.of(layer)? as f64)
        }
    };
    Some(Bytes { held: held * head, own: own * head as f64 })
}

/// Bytes of a stored number, by its usual names.
fn number_bytes(dtype: &str) -> Option<u64> {
    match dtype.to_ascii_lowercase().trim_start_matches("torch.") {
        "f16" | "fp16" | "float16" | "half" | "bf16" | "bfloat16" => Some(2),
        "f32" | "fp32" | "float32" | "float" => Some(4),
        "f8" | "fp8" | "float8" | "float8_e4m3fn" | "float8_e5m2" | "int8" => Some(1),
        _ => None,
    }
}
