//! Heavy-hitter recall: how many of each row's heaviest positions are kept.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, RowCounts, Run};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("heavy", "the heaviest positions of each row", SUMS, FIGURES, |_| Box::new(Heavy::default()))
        .run(Run::ByDefault)
        .needs(Needs::HITS);

const SUMS: &[Sum] = &[
    Sum::count("heavy_hits", "positions", "heavy positions kept"),
    Sum::count("heavy_possible", "positions", "heavy positions"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "heavy_recall",
    "share",
    Reading::Ratio("heavy_hits", &["heavy_possible"]),
    "share of each row's k heaviest positions that are kept",
)
.higher_is_better()];

#[derive(Default)]
struct Heavy {
    hits: u64,
    possible: u64,
}

impl Meter for Heavy {
    fn rows(&mut self, rows: &[RowCounts]) {
        for hits in rows.iter().filter_map(|row| row.hits) {
            self.hits += u64::from(hits.heavy);
            self.possible += u64::from(hits.heavy_possible);
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([self.hits, self.possible].map(Number::Count))
    }
}
