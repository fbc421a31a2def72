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
    /// Positions of a row that have not left the layer's window.
    alive: usize,
    setup: LaneSetup,
    tally: Tally,
}

impl BoundLane {
    pub(super) fn new(setup: &LaneSetup, bound: Box<dyn Bound>) -> BoundLane {
        let (budget, window) = (setup.budget.unwrap_or(usize::MAX), setup.window.unwrap_or(usize::MAX));
        let (held, alive) = match setup.kind {
            SelfAttention::Excluded => (budget, window.saturating_sub(1)),
            SelfAttention::Included => (budget.saturating_add(1), window),
        };
        let tally = Tally { caches: 1, budget_sum: setup.budget.unwrap_or(0) as u64, ..Tally::default() };
        BoundLane { bound, held, alive, setup: *setup, tally }
    }

    /// Positions that a policy with the same budget is measured on, at most: whatever came before the
    /// first row is there when it comes.
    fn held_at(&self, step: Position) -> usize {
        if step == self.setup.first { usize::MAX } else { self.held }
    }

    pub(super) fn run(&mut self, block: &StepBlock) {
        for step in 0..block.len() {
            let position = block.position(step);
            if position < self.setup.block_prompt {
                self.tally.prompt_steps += 1;
                continue;
            }
            if !block.is_known(step) {
                self.tally.skipped_rows += 1;
                continue;
            }
            self.tally.steps += 1;
            let held = self.held_at(position);
            for head in 0..block.heads() {
                let row = block.row(step, head);
                let retained = self.bound.retained(row.weights, held);
                // A policy with this budget has evicted before every row with more to hold than it may.
                let after_eviction = row.weights.len().min(self.alive) > held;
                self.tally.add_row(RowKept { retained, total: row.facts.total, after_eviction });
            }
        }
    }

    pub(super) fn finish(self) -> Tally {
        self.tally
    }
}
