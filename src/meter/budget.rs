//! The budget in force, which differs from the one asked for where budgets are dealt out to caches.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, MeterSite, Run};

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("budget", "the budget in force", SUMS, FIGURES, |setting| Box::new(Budget(setting.site)))
        .run(Run::Always)
        .of_lanes();

const SUMS: &[Sum] = &[
    Sum::count("budget_sum", "positions", "sum behind layer_budget"),
    Sum::count("budgeted_caches", "caches", "caches with a budget"),
    Sum::count("window_sum", "positions", "sum behind layer_window"),
    Sum::count("windowed_caches", "caches", "caches whose policy has a recent window"),
    Sum::count("sinks_sum", "positions", "sum behind layer_sinks"),
    Sum::count("caches_with_sinks", "caches", "caches whose policy has sinks"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "layer_budget",
        "positions",
        Reading::Ratio("budget_sum", &["budgeted_caches"]),
        "mean over caches of the budget in force, which differs where budgets are dealt out",
    ),
    Figure::new(
        "layer_window",
        "positions",
        Reading::Ratio("window_sum", &["windowed_caches"]),
        "mean over caches of the recent window in force, where it is a share of the budget",
    ),
    Figure::new(
        "layer_sinks",
        "positions",
        Reading::Ratio("sinks_sum", &["caches_with_sinks"]),
        "mean over caches of the sinks in force, where they are a share of the budget",
    ),
];

struct Budget(MeterSite);

impl Meter for Budget {
    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        // Positions are 32 bits wide: more budget than that is no more, and sums of it must not wrap.
        let counts = [self.0.budget, self.0.recent_window, self.0.sinks].map(|count| {
            let count = count.map(|count| Number::Count(count.min(u32::MAX as usize) as u64));
            [count, count.map(|_| Number::Count(1))]
        });
        Counted::Sums(counts.concat())
    }
}
