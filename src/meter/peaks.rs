//! Peak misses: rows in which a position with more than a tenth is not kept.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, RowCounts, Run};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("peaks", "rows in which a position with much weight is missing", SUMS, FIGURES, |_| {
        Box::new(Peaks::default())
    })
    .run(Run::ByDefault)
    .needs(Needs::HITS);

const SUMS: &[Sum] = &[Sum::count("peak_misses", "rows", "rows behind peak_miss_rate")];

const FIGURES: &[Figure] = &[Figure::new(
    "peak_miss_rate",
    "share of rows",
    Reading::Ratio("peak_misses", &["rows_measured"]),
    "rows in which a position with weight above 0.1 is not kept",
)
.lower_is_better()];

#[derive(Default)]
struct Peaks {
    misses: u64,
}

impl Meter for Peaks {
    fn rows(&mut self, rows: &[RowCounts]) {
        self.misses += rows.iter().map(|row| u64::from(row.hits.is_some_and(|hits| hits.peak_missed))).sum::<u64>();
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([Number::Count(self.misses)])
    }
}
