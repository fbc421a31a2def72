//! What the attention of a trace looks like, and what that means for a cache.
//!
//! Each analysis is one file. [`persistence`], [`agreement`] and [`locality`] read the rows of a stream
//! once, side by side, and hold one number or a few for each position; they know no policies.
//! [`advice`] replays the trace through a sweep, and [`theory`] holds the fitted laws against what it retained. Nothing here knows how figures are printed.
//!
//! `T` is the number of positions that the rows of the trace reach, the same for each of its streams; rows are known by
//! their step. Steps without information count nowhere.

pub mod advice;
pub mod agreement;
pub mod locality;
pub mod persistence;
pub mod power_law;
pub mod theory;

use crate::error::Result;
use crate::replay::{BadRows, CachePlan};
use crate::trace::{Row, RowBlock, RowSums, Source, StreamLabel, TraceInfo, refuse_weights};
use advice::Advice;
use agreement::{Agreement, LateAttention};
use locality::{Locality, LocalityFigures};
use persistence::{LayerPersistence, Overlap, Persistence};
use power_law::{PowerLaw, PowerLawFit};
use rayon::prelude::*;
use serde::Serialize;
use theory::Theory;

/// Everything that is known of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    /// One entry for each stream, in the trace's order.
    pub streams: Vec<StreamAnalysis>,
    /// Persistence of the layers of which there are several streams.
    pub layers: Vec<LayerPersistence>,
    /// One entry for each head and pair of adjacent layers.
    pub agreement: Vec<Agreement>,
    /// What a [sweep](advice::advise) says, where one was asked for.
    pub advice: Option<Advice>,
    /// What the [theory](theory::theory) says at the budgets of the sweep, where there was one.
    pub theory: Option<Theory>,
}

/// What the rows of one stream say.
#[derive(Debug, Clone, Serialize)]
pub struct StreamAnalysis {
    /// Layer and head.
    #[serde(rename = "stream")]
    pub label: StreamLabel,
    /// Persistence of importance, one entry for each reading.
    pub persistence: Vec<Overlap>,
    /// Where the attention goes.
    pub locality: LocalityFigures,
    /// The power law fitted to its weights, where there are any to fit it to.
    pub power_law: Option<PowerLaw>,
    /// What each early position gets from late rows, for the agreement between layers.
    #[serde(skip)]
    pub late_attention: Vec<f64>,
}

/// Analyses the streams of these caches; there is no advice yet. `progress` is told of weights as they are
/// read.
///
/// # Errors
/// When the trace cannot be read, or a row is no attention and `bad_rows` does not skip it.
pub fn analyze(
    source: &dyn Source,
    caches: &[CachePlan],
    bad_rows: BadRows,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Analysis> {
    let streams: Vec<usize> = caches.iter().flat_map(|cache| cache.streams.iter().copied()).collect();
    let one = |stream: &usize| analyze_stream(source, *stream, bad_rows, progress);
    // Collected first, so that the error reported is the first of the trace, not the first found.
    let results: Vec<Result<StreamAnalysis>> = streams.par_iter().map(one).collect();
    let streams: Vec<StreamAnalysis> = results.into_iter().collect::<Result<_>>()?;
    Ok(Analysis {
        layers: persistence::of_layers(&streams),
        agreement: agreement::between_layers(&streams),
        streams,
        advice: None,
        theory: None,
    })
}

/// Analyses one stream in one pass.
///
/// # Errors
/// When the trace cannot be read, or a row is no attention and `bad_rows` does not skip it.
pub fn analyze_stream(
    source: &dyn Source,
    stream: usize,
    bad_rows: BadRows,
    progress: &dyn Fn(u64),
) -> Result<StreamAnalysis> {
    let mut analyses = Analyses::new(source.info());
    let mut block = RowBlock::default();
    let mut reader = source.open(stream)?;
    let mut sums = RowSums::of(source, stream);
    while reader.read(&mut block, 16)? > 0 {
        for row in block.rows().filter(|row| !row.weights.is_empty()) {
            match refuse_weights(source, stream, row) {
                Ok(()) => {
                    sums.add(row.step, row.sum());
                    analyses.add(row);
                }
                Err(refusal) if bad_rows == BadRows::Error => return Err(refusal),
                Err(_) => (),
            }
        }
        progress(block.weights() as u64);
        block.clear();
    }
    source.keep_sums(stream, &sums);
    Ok(analyses.finish(source.info().streams[stream].label.clone()))
}

struct Analyses {
    persistence: Persistence,
    late: LateAttention,
    locality: Locality,
    power_law: PowerLawFit,
}

impl Analyses {
    fn new(info: &TraceInfo) -> Analyses {
        let positions = info.reached();
        Analyses {
            persistence: Persistence::new(positions),
            late: LateAttention::new(positions),
            locality: Locality::new(info),
            power_law: PowerLawFit::new(positions),
        }
    }

    fn add(&mut self, row: Row<'_>) {
        self.persistence.add(row);
        self.late.add(row);
        self.locality.add(row);
        self.power_law.add(row);
    }

    fn finish(self, label: StreamLabel) -> StreamAnalysis {
        StreamAnalysis {
            label,
            persistence: self.persistence.finish(),
            locality: self.locality.finish(),
            power_law: self.power_law.finish(),
            late_attention: self.late.finish(),
        }
    }
}
