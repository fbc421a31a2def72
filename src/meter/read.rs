//! What selectors read: how many positions of each row, and the law that their thresholds follow.
//!
//! A selector holds everything and reads a part, chosen for each row anew. A policy is measured on what
//! it holds, so that `mean_read` stands where a policy has `mean_kept`.

use super::column::{Figure, Merge, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, Run};
use crate::needs::Needs;
use crate::policy::selector::Law;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("read", "how many positions selectors read of each row", SUMS, FIGURES, |_| Box::new(Read))
        .run(Run::ByDefault)
        .needs(Needs::READS)
        .of_lanes();

const SUMS: &[Sum] = &[
    Sum::count("read_sum", "positions", "sum behind mean_read"),
    Sum::count("peak_read", "positions", "most positions read of a row").merged_by(Merge::Most),
    Sum::count("fits", "query heads", "query heads whose thresholds follow a fitted law"),
    Sum::real("fit_log_scale_sum", "", "sum behind fit_log_scale, over fits"),
    Sum::real("fit_exponent_sum", "", "sum behind fit_exponent, over fits"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "mean_read",
        "positions",
        Reading::Ratio("read_sum", &["rows_measured"]),
        "mean over rows of the positions that a selector reads",
    ),
    Figure::new(
        "fit_log_scale",
        "",
        Reading::Ratio("fit_log_scale_sum", &["fits"]),
        "ln a of a selector's thresholds a x length^-b: mean over query heads",
    ),
    Figure::new(
        "fit_exponent",
        "",
        Reading::Ratio("fit_exponent_sum", &["fits"]),
        "b of a selector's thresholds a x length^-b: mean over query heads",
    ),
];

struct Read;

impl Meter for Read {
    fn finish(self: Box<Self>, end: &LaneEnd) -> Counted {
        let sum_of = |number: fn(&Law) -> f64| end.laws.iter().map(number).sum();
        Counted::all([
            Number::Count(end.reads.sum),
            Number::Count(end.reads.most),
            Number::Count(end.laws.len() as u64),
            Number::Real(sum_of(|law| law.log_scale)),
            Number::Real(sum_of(|law| law.exponent)),
        ])
    }
}
