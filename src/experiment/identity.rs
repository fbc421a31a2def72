//! What a job replays and how, as its results will say it.

use super::Experiment;
use super::caches::{KvHeads, Selection};
use super::open::OpenTrace;
use crate::needs::Needs;
use crate::replay::Options;
use crate::report::identity::Identity;
use crate::trace::StreamLabel;
use crate::word::Word;

/// The identity of the results of a trace; its content is hashed when they are made.
pub(super) fn identity(experiment: &Experiment, trace: &OpenTrace, options: &Options) -> Identity {
    let (info, chosen) = (trace.info(), &trace.chosen);
    Identity {
        positions: chosen.positions,
        start: experiment.read.start.unwrap_or(0),
        normalize: if experiment.read.normalize.is_some() { "rows" } else { "off" },
        rows: trace.rows().max().unwrap_or(0),
        rows_total: rows_there_are(trace),
        available: available(&experiment.streams, trace),
        kv_heads: chosen.kv_heads.clone(),
        view: options.view.word(),
        expiry: !experiment.streams.keep_expired,
        heavy_hitters: options.heavy_hitters,
        output_every: measures_outputs(trace, options).then_some(options.output_every),
        layer_shape: experiment.shape.name.clone(),
        ..Identity::of_trace(info)
    }
}

/// Whether a meter looks at outputs, on a trace that has them.
fn measures_outputs(trace: &OpenTrace, options: &Options) -> bool {
    let looks = options.meters.iter().any(|plan| plan.entry.needs.has(Needs::VALUES));
    looks && trace.source.offers().has(Needs::VALUES)
}

/// Rows of the longest stream that was chosen.
fn rows_there_are(trace: &OpenTrace) -> usize {
    let streams = trace.caches().iter().flat_map(|cache| &cache.streams);
    streams.map(|stream| trace.info().streams[*stream].rows).max().unwrap_or(0)
}

/// The caches that the whole trace makes, shared as those that were chosen.
fn available(streams: &Selection, trace: &OpenTrace) -> Vec<StreamLabel> {
    let kv_heads = if trace.chosen.kv_heads == "off" { Some(KvHeads::Off) } else { streams.kv_heads.clone() };
    let whole = Selection { layers: Vec::new(), heads: Vec::new(), kv_heads, ..streams.clone() };
    match whole.choose(trace.info(), trace.steps) {
        Ok(whole) => whole.caches.into_iter().map(|cache| cache.label).collect(),
        // A layer that was not chosen may have streams that cannot be replayed so: then it counts as it is.
        Err(_) => trace.info().streams.iter().map(|stream| stream.label.clone()).collect(),
    }
}
