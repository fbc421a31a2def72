//! What is in a trace: per stream sums, zeros, and where the mass lies. Reads rows; knows no
//! policies.

use crate::error::Result;
use crate::trace::{Row, RowBlock, RowSums, SelfAttention, Source, StreamInfo, TraceInfo};
use serde::Serialize;

/// Positions from the start that count as first, and newest positions that count as local.
const FIRST: usize = 4;
const LAST: usize = 64;

/// The figures of one stream.
#[derive(Debug, Clone, Serialize)]
pub struct StreamFigures {
    /// Layer and head.
    pub stream: String,
    /// Number of rows.
    pub rows: usize,
    /// How weights are stored.
    pub dtype: &'static str,
    /// Steps without information.
    pub null_rows: usize,
    /// Rows with a negative weight or no number; left out of the figures below.
    pub bad_rows: usize,
    /// Smallest row sum; absent where there is no row.
    pub row_sum_min: Option<f64>,
    /// Mean row sum.
    pub row_sum_mean: Option<f64>,
    /// Largest row sum.
    pub row_sum_max: Option<f64>,
    /// Share of weights that are zero.
    pub zeros: Option<f64>,
    /// Share of all mass on the first four positions.
    pub first_4: Option<f64>,
    /// Share of all mass on the newest 64 positions in view.
    pub last_64: Option<f64>,
    /// Share of all mass on the token itself; absent where rows exclude it.
    pub on_self: Option<f64>,
    /// What a user should know before trusting figures made from this.
    pub warnings: Vec<String>,
}

/// Reads a stream, or a sample of its rows where they have to be made, and takes its figures; `progress` is told of
/// weights as they are read.
///
/// # Errors
/// When the trace cannot be read.
pub fn inspect_stream(source: &dyn Source, stream: usize, progress: &dyn Fn(u64)) -> Result<StreamFigures> {
    let (mut sums, mut row_sums) = (Sums::default(), RowSums::of(source, stream));
    let mut block = RowBlock::default();
    let mut reader = match source.sample(stream)? {
        Some(sample) => sample,
        None => source.open(stream)?,
    };
    while reader.read(&mut block, 16)? > 0 {
        block.rows().for_each(|row| sums.add(row, &mut row_sums));
        progress(block.weights() as u64);
        block.clear();
    }
    source.keep_sums(stream, &row_sums);
    Ok(sums.figures(source.info(), &source.info().streams[stream]))
}

#[derive(Default)]
struct Sums {
    rows: usize,
    null_rows: usize,
    bad_rows: usize,
    weights: usize,
    zeros: usize,
    total: f64,
    first: f64,
    last: f64,
    on_self: f64,
    least: Option<f64>,
    most: Option<f64>,
}

impl Sums {
    fn add(&mut self, row: Row<'_>, row_sums: &mut RowSums) {
        if row.weights.is_empty() {
            self.null_rows += 1;
        } else if row.first_unsound().is_none() {
            row_sums.add(row.step, self.add_sound(row));
        } else {
            self.bad_rows += 1;
        }
    }

    /// Counts a sound row, and returns its sum.
    fn add_sound(&mut self, Row { step, weights }: Row<'_>) -> f64 {
        let sum = |weights: &[f32]| weights.iter().map(|weight| f64::from(*weight)).sum::<f64>();
        let total = sum(weights);
        self.rows += 1;
        self.weights += weights.len();
        self.zeros += weights.iter().filter(|weight| **weight == 0.0).count();
        self.total += total;
        self.first += sum(&weights[..weights.len().min(FIRST)]);
        self.last += sum(&weights[weights.len().saturating_sub(LAST)..]);
        self.on_self += sum(weights.get(step.index()..).unwrap_or(&[]));
        if self.least.is_none_or(|least| total < least) {
            self.least = Some(total);
        }
        if self.most.is_none_or(|most| total > most) {
            self.most = Some(total);
        }
        total
    }

    fn figures(&self, info: &TraceInfo, stream: &StreamInfo) -> StreamFigures {
        let share = |part: f64| (self.total > 0.0).then(|| part / self.total);
        let included = info.self_attention == SelfAttention::Included;
        StreamFigures {
            stream: stream.label.to_string(),
            rows: stream.rows,
            dtype: stream.dtype,
            null_rows: self.null_rows,
            bad_rows: self.bad_rows,
            row_sum_min: self.least,
            row_sum_mean: (self.rows > 0).then(|| self.total / self.rows as f64),
            row_sum_max: self.most,
            zeros: (self.weights > 0).then(|| self.zeros as f64 / self.weights as f64),
            first_4: share(self.first),
            last_64: share(self.last),
            on_self: share(self.on_self).filter(|_| included),
            warnings: self.warnings(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.rows == 0 {
            warnings.push("no row to measure".to_owned());
        }
        if self.bad_rows > 0 {
            let rows = self.bad_rows;
            warnings.push(format!("{rows} rows hold a negative weight or no number (replay needs --on-bad-row skip)"));
        }
        warnings
    }
}
