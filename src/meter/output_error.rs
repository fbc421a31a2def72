//! Output error: how far what a query head hands on is from what it would with every position.
//!
//! The error of a row is the length of the difference over the length of the whole output, so that heads with small
//! outputs, which rest on a sink, weigh as much as others: `layer_error` weighs them by what they add.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, KeptRow, LaneEnd, Meter, MeterEntry, OutputRow, Run};
use crate::needs::Needs;

/// What every meter of outputs needs.
pub(super) const NEEDS: Needs = Needs::KEPT_WEIGHTS.and(Needs::VALUES);

/// An error above this is large.
const LARGE: f64 = 0.5;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("output_error", "how far the outputs of query heads are off", SUMS, FIGURES, |_| {
        Box::new(OutputError::default())
    })
    .run(Run::WhereOffered)
    .needs(NEEDS);

const SUMS: &[Sum] = &[
    Sum::real("output_error_sum", "of outputs", "sum behind output_error"),
    Sum::count("output_rows", "rows", "rows with an output, behind output_error"),
    Sum::real("output_error_full_sum", "of outputs", "sum behind output_error_full"),
    Sum::count("output_rows_full", "rows", "of these the rows after the first eviction"),
    Sum::count("large_errors", "rows", "rows whose output is off by more than half"),
    Sum::real("output_cosine_sum", "cosines", "sum behind output_cosine"),
    Sum::count("zero_output_rows", "rows", "rows whose output is 0, which no error is taken of"),
    Sum::real("output_change_sum", "squares", "sum behind output_change"),
    Sum::count("output_change_rows", "rows", "rows after the first eviction, behind output_change"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "output_error",
        "of the output",
        Reading::Ratio("output_error_sum", &["output_rows"]),
        "mean over rows of the length of what the output is off by, over that of the output",
    )
    .lower_is_better(),
    Figure::new(
        "output_error_full",
        "of the output",
        Reading::Ratio("output_error_full_sum", &["output_rows_full"]),
        "output_error of the rows after the first eviction",
    )
    .lower_is_better(),
    Figure::new(
        "large_error_rate",
        "of rows",
        Reading::Ratio("large_errors", &["output_rows"]),
        "share of rows whose output is off by more than half of its length",
    )
    .lower_is_better(),
    Figure::new(
        "output_cosine",
        "cosine",
        Reading::Ratio("output_cosine_sum", &["output_rows"]),
        "mean over rows of the cosine between the output and what is left of it",
    )
    .higher_is_better(),
    Figure::new(
        "output_change",
        "squares",
        Reading::Ratio("output_change_sum", &["output_change_rows"]),
        "mean over the rows after the first eviction of the squared length of what the output is off by",
    )
    .lower_is_better(),
];

#[derive(Default)]
struct OutputError {
    error: f64,
    rows: u64,
    error_full: f64,
    rows_full: u64,
    large: u64,
    cosine: f64,
    zero: u64,
    change: f64,
    changed_rows: u64,
}

impl Meter for OutputError {
    fn row(&mut self, row: &KeptRow<'_>) {
        let Some(OutputRow { whole, kept, .. }) = row.output else { return };
        let full = row.counts.after_eviction;
        let change: f64 = kept.iter().zip(whole).map(|(kept, whole)| (kept - whole) * (kept - whole)).sum();
        if full {
            self.change += change;
            self.changed_rows += 1;
        }
        let length = length(whole);
        if length == 0.0 {
            self.zero += 1;
            return;
        }
        self.add(change.sqrt() / length, full);
        let product: f64 = whole.iter().zip(kept).map(|(whole, kept)| whole * kept).sum();
        let kept = self::length(kept);
        self.cosine += if kept == 0.0 { 0.0 } else { product / (length * kept) };
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([
            Number::Real(self.error),
            Number::Count(self.rows),
            Number::Real(self.error_full),
            Number::Count(self.rows_full),
            Number::Count(self.large),
            Number::Real(self.cosine),
            Number::Count(self.zero),
            Number::Real(self.change),
            Number::Count(self.changed_rows),
        ])
    }
}

impl OutputError {
    fn add(&mut self, error: f64, full: bool) {
        self.error += error;
        self.rows += 1;
        self.large += u64::from(error > LARGE);
        if full {
            self.error_full += error;
            self.rows_full += 1;
        }
    }
}

fn length(numbers: &[f64]) -> f64 {
    numbers.iter().map(|number| number * number).sum::<f64>().sqrt()
}
