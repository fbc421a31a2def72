//! Pivotal hit rate: how many of the positions above the even share of their row are kept.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, RowCounts, Run};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("pivotal", "the positions above the even share of their row", SUMS, FIGURES, |_| {
        Box::new(Pivotal::default())
    })
    .run(Run::ByDefault)
    .needs(Needs::HITS);

const SUMS: &[Sum] = &[
    Sum::count("pivotal_hits", "positions", "pivotal positions kept"),
    Sum::count("pivotal_possible", "positions", "pivotal positions"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "pivotal_hit_rate",
    "share",
    Reading::Ratio("pivotal_hits", &["pivotal_possible"]),
    "share of positions with more than 1 / row length that are kept",
)
.higher_is_better()];

#[derive(Default)]
struct Pivotal {
    hits: u64,
    possible: u64,
}

impl Meter for Pivotal {
    fn rows(&mut self, rows: &[RowCounts]) {
        for hits in rows.iter().filter_map(|row| row.hits) {
            self.hits += u64::from(hits.pivotal);
            self.possible += u64::from(hits.pivotal_possible);
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([self.hits, self.possible].map(Number::Count))
    }
}
