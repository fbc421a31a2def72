//! What a replay is asked to do: which caches a trace has, and which lanes run on each.

use crate::error::{Error, Result};
use crate::policy::parameter::Values;
use crate::policy::pyramidkv::LayerPlace;
use crate::policy::table::{PolicyEntry, Setting};
use crate::trace::{StreamLabel, TraceInfo};
use std::collections::BTreeSet;

/// A cache: one stream, or the streams of query heads that share one KV head.
#[derive(Clone, Debug)]
pub struct CachePlan {
    /// How reports call it.
    pub label: StreamLabel,
    /// Indices of its streams in the trace, in head order.
    pub streams: Vec<usize>,
    /// Where its layer stands among the trace's.
    pub place: LayerPlace,
}

/// One cache for each stream of a trace.
///
/// # Errors
/// When the metadata counts fewer layers than the streams name.
pub fn caches_of(info: &TraceInfo) -> Result<Vec<CachePlan>> {
    let layers: BTreeSet<u32> = info.streams.iter().map(|stream| stream.label.layer).collect();
    let place = |layer: u32| match info.metadata_count("num_layers") {
        Some(count) if (layer as usize) < count => Ok(LayerPlace { index: layer as usize, count }),
        Some(count) => {
            let problem = format!("num_layers is {count} in the metadata, but there is a stream of layer {layer}");
            Err(Error::data(&info.name, problem))
        }
        None => Ok(LayerPlace { index: layers.range(..layer).count(), count: layers.len() }),
    };
    let plan = |(stream, description): (usize, &crate::trace::StreamInfo)| {
        let label = description.label.clone();
        Ok(CachePlan { place: place(label.layer)?, label, streams: vec![stream] })
    };
    info.streams.iter().enumerate().map(plan).collect()
}

/// A policy with concrete parameters and budget, to be run on every cache.
#[derive(Clone)]
pub struct LanePlan {
    /// The policy's line in the table.
    pub entry: &'static PolicyEntry,
    /// Most positions held between steps; `None` for a policy that has no budget.
    pub budget: Option<usize>,
    /// One value for each parameter of the policy.
    pub values: Values,
}

impl LanePlan {
    /// A lane with default parameters.
    pub fn new(entry: &'static PolicyEntry, budget: usize) -> LanePlan {
        LanePlan { entry, budget: entry.budgeted.then_some(budget), values: entry.defaults() }
    }

    /// The setting for a cache that stands at `place`, before the policy's own share is taken.
    pub fn setting(&self, place: LayerPlace) -> Setting {
        Setting { budget: self.budget.unwrap_or(usize::MAX), values: self.values.clone(), place }
    }

    /// Says what is impossible about the lane.
    ///
    /// # Errors
    /// When the budget is 0 or the policy refuses the setting.
    pub fn check(&self) -> Result<(), String> {
        if self.budget == Some(0) {
            return Err("budget 0 keeps nothing: at least 1 is needed".to_owned());
        }
        (self.entry.check)(&self.setting(LayerPlace::ONLY))
    }
}

impl PartialEq for LanePlan {
    fn eq(&self, other: &LanePlan) -> bool {
        self.entry.name == other.entry.name && self.budget == other.budget && self.values == other.values
    }
}
