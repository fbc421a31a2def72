//! The budget in force, which differs from the one asked for where budgets are dealt out to caches.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, Run};

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("budget", "the budget in force", SUMS, FIGURES, |setting| Box::new(Budget(setting.budget)))
        .run(Run::Always)
        .of_lanes();

const SUMS: &[Sum] = &[
    Sum::count("budget_sum", "positions", "sum behind layer_budget"),
    Sum::count("budgeted_caches", "caches", "caches with a budget"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "layer_budget",
    "positions",
    Reading::Ratio("budget_sum", &["budgeted_caches"]),
    "mean over caches of the budget in force, which differs where budgets are dealt out",
)];

struct Budget(Option<usize>);

impl Meter for Budget {
    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        // Positions are 32 bits wide: more budget than that is no more, and sums of it must not wrap.
        let budget = self.0.map(|budget| Number::Count(budget.min(u32::MAX as usize) as u64));
        Counted::Sums(vec![budget, budget.map(|_| Number::Count(1))])
    }
}
