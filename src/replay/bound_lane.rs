//! A lane of a bound: no kept set, only what could have been retained of each row.

use super::block::StepBlock;
use super::policy_lane::LaneSetup;
use super::tally::{RowKept, Tally};
use crate::policy::Bound;
use crate::position::Position;
use crate::trace::SelfAttention;

pub(super) struct BoundLane {
    bound: Box<dyn Bound>,
    /// Positions that a policy with the same budget is measured on, at most.
    held: usize,
    block_prompt: Position,
    tally: Tally,
}

impl BoundLane {
    pub(super) fn new(setup: &LaneSetup, bound: Box<dyn Bound>) -> BoundLane {
        let budget = setup.budget.unwrap_or(usize::MAX);
        let held = match setup.kind {
            SelfAttention::Excluded => budget,
            SelfAttention::Included => budget.saturating_add(1),
        };
        let tally = Tally { caches: 1, budget_sum: budget as u64, ..Tally::default() };
        BoundLane { bound, held, block_prompt: setup.block_prompt, tally }
    }

    pub(super) fn run(&mut self, block: &StepBlock) {
        for step in 0..block.len() {
            if block.position(step) < self.block_prompt {
                self.tally.prompt_steps += 1;
                continue;
            }
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
