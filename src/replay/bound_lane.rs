//! A lane of a bound: no kept set, only what could have been retained of each row.

use super::block::StepBlock;
use super::tally::{RowKept, Tally};
use crate::policy::Bound;
use crate::trace::SelfAttention;

pub(super) struct BoundLane {
    bound: Box<dyn Bound>,
    /// Positions that a policy with the same budget is measured on, at most.
    held: usize,
    tally: Tally,
}

impl BoundLane {
    pub(super) fn new(bound: Box<dyn Bound>, budget: usize, kind: SelfAttention) -> BoundLane {
        let held = match kind {
            SelfAttention::Excluded => budget,
            SelfAttention::Included => budget.saturating_add(1),
        };
        let tally = Tally { caches: 1, budget_sum: budget as u64, ..Tally::default() };
        BoundLane { bound, held, tally }
    }

    pub(super) fn run(&mut self, block: &StepBlock) {
        for step in 0..block.len() {
            if !block.is_known(step) {
                self.tally.skipped_rows += 1;
                continue;
            }
            self.tally.steps += 1;
            for head in 0..block.heads() {
                let row = block.row(step, head);
                let retained = self.bound.retained(row.weights, self.held);
                // A policy with this budget has evicted before every row longer than what it holds.
                let after_eviction = row.weights.len() > self.held;
                self.tally.add_row(RowKept { retained, total: row.facts.total, after_eviction });
            }
        }
    }

    pub(super) fn finish(self) -> Tally {
        self.tally
    }
}
