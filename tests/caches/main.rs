//! What a cache is beyond one stream from its first token to its last: shared KV heads, prompts,
//! sliding windows, traces that begin late, budgets across layers; and what is reported of many.
//!
//! [`slow`] replays all of that the obvious way; [`made`] draws traces and lanes, and [`agree`] holds
//! the engine to the slow replay.

mod agree;
#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/as_meters.rs"]
mod as_meters;
#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/as_reference.rs"]
mod as_reference;
#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/common/mod.rs"]
mod common;
mod convert;
mod engines;
mod grouping;
mod keeping;
mod kv_heads;
mod late_start;
mod layer_budgets;
mod made;
mod prompts;
mod recovery;
#[path = "../reference/mod.rs"]
mod reference;
mod shared_layers;
mod slow;
mod threads;
mod windows;
