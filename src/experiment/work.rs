//! How much work a replay is, so that the time left can be told from what has been done.

use super::open::OpenTrace;
use crate::budgets::CacheBudget;
use crate::replay::{LanePlan, Options, evictions_planned};
use std::collections::BTreeMap;

/// The work of replaying a trace.
pub struct Work {
    /// Evictions that bounds which know the future plan ahead of the replay.
    pub planning: u64,
    /// Work of the replay, which [`Work::of_rows`] adds up to.
    pub replay: u64,
    gathers: Gathers,
}

impl Work {
    /// The work of these lanes on the caches of a trace.
    pub fn of(trace: &OpenTrace, lanes: &[LanePlan], options: &Options) -> Work {
        let planning = lanes.iter().map(|lane| planned(trace, lane, options)).sum();
        let mut work = Work { planning, replay: 0, gathers: Gathers::new(lanes) };
        // Most streams are of one length.
        let mut streams: BTreeMap<usize, u64> = BTreeMap::new();
        trace.rows().for_each(|rows| *streams.entry(rows).or_default() += 1);
        let first = trace.info().self_attention.row_len(trace.info().first_position);
        let of_stream = |rows: usize| (first..first + rows).map(|len| work.of_rows(1, len as u64)).sum::<u64>();
        work.replay = streams.iter().map(|(rows, streams)| of_stream(*rows) * streams).sum();
        work
    }

    /// The work of rows with so many weights in all: each weight is read once, and each lane gathers those
    /// of the positions that it holds.
    pub fn of_rows(&self, rows: u64, weights: u64) -> u64 {
        weights + self.gathers.of_rows(rows, weights)
    }
}

/// Evictions that a lane plans ahead.
fn planned(trace: &OpenTrace, lane: &LanePlan, options: &Options) -> u64 {
    let budgets = lane.budgets_on(trace.caches(), &options.budgets).unwrap_or_default();
    let sets = lane.sets_on(trace.caches());
    let sets = sets.iter().zip(budgets);
    sets.map(|(cache, CacheBudget { budget, .. })| evictions_planned(&*trace.source, cache, lane, budget, options))
        .sum()
}

/// The budgets of all lanes.
struct Gathers {
    /// Ascending, those without a budget last.
    budgets: Vec<u64>,
    /// The sum of the budgets before each.
    before: Vec<u64>,
}

impl Gathers {
    fn new(lanes: &[LanePlan]) -> Gathers {
        let most = u64::from(u32::MAX);
        let mut budgets: Vec<u64> =
            lanes.iter().map(|lane| lane.budget.map_or(most, |budget| most.min(budget as u64))).collect();
        budgets.sort_unstable();
        let before = budgets.iter().scan(0, |sum, budget| Some(std::mem::replace(sum, *sum + budget))).collect();
        Gathers { budgets, before }
    }

    /// Weights that are gathered from rows with so many weights in all: of each row, as many as the budget.
    fn of_rows(&self, rows: u64, weights: u64) -> u64 {
        let full = self.budgets.partition_point(|budget| budget * rows <= weights);
        let held = self.before.get(full).copied().unwrap_or_else(|| self.budgets.iter().sum());
        held * rows + (self.budgets.len() - full) as u64 * weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::table::find;

    #[test]
    fn a_lane_gathers_what_it_holds_of_each_row() {
        let lanes = [("tova", 4), ("full", 1), ("h2o", 2), ("tova", 4)];
        let lanes = lanes.map(|(name, budget)| LanePlan::new(find(name).expect("there is one"), budget));
        let gathers = Gathers::new(&lanes);
        for (rows, len) in [(1, 1), (1, 3), (1, 4), (10, 3), (10, 7)] {
            let each = |budget: u64| rows * len.min(budget);
            let wanted = 2 * each(4) + each(2) + rows * len;
            assert_eq!(gathers.of_rows(rows, rows * len), wanted, "{rows} rows of {len}");
        }
        assert_eq!(Gathers::new(&[]).of_rows(3, 9), 0);
    }
}
