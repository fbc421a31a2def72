//! `pyramidkv`: snapkv with a budget that shrinks from the first layer to the last.
//!
//! *Idea.* Early layers spread their attention, late ones funnel it; give early layers more.
//! *Paper.* Cai et al.: PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information
//! Funneling, 2024, arXiv 2406.02069.
//! *How this differs from the paper.* As snapkv, cut at every step instead of once after the
//! prompt; the shape is set by one ratio instead of by a top-layer budget. Budgets of layers are
//! rounded down, as published, and never below the recent window and one.
//! *Parameters.* snapkv's and `pyramid-ratio` (4). It is snapkv with `--layer-budget
//! pyramid:4:down`.
//! *Cost.* As snapkv.

use super::entry::{Make, PolicyEntry, Setting};
use super::parameter::{OBS_WINDOW, POOL_KERNEL, PYRAMID_RATIO, RECENT_WINDOW, Value, Values};
use super::snapkv;
use crate::budgets::{CacheBudgets, Rounding, parse_ratio};
use crate::decimal::Decimal;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "pyramidkv",
    "snapkv with more budget for early layers than for late ones",
    Make::Policy(snapkv::make),
)
.paper("Cai et al.: PyramidKV, 2024, arXiv 2406.02069")
.parameters(&[
    (&RECENT_WINDOW, Value::Count(32)),
    (&OBS_WINDOW, Value::Count(16)),
    (&POOL_KERNEL, Value::Count(7)),
    (&PYRAMID_RATIO, Value::Real(4.0)),
])
.check(is_possible)
.deals(|values| CacheBudgets::pyramid(ratio(values).expect("checked before"), Rounding::Down))
.ranked()
.probe("windowScoreOf");

fn is_possible(setting: &Setting) -> Result<(), String> {
    snapkv::ring_is_possible(setting)?;
    ratio(&setting.values).map(drop).map_err(|problem| format!("{}: {problem}", PYRAMID_RATIO.name))
}

fn ratio(values: &Values) -> Result<Decimal, String> {
    parse_ratio(&values.real(&PYRAMID_RATIO).to_string())
}
