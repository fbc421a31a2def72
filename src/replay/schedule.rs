//! When a lane's cache is cut, and down to how many positions.

use crate::keeping::{Keeping, PromptMode, PromptPlan};
use crate::policy::entry::BlockCuts;
use crate::position::Position;
use crate::trace::SelfAttention;

/// When the budget of a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    /// Most positions held after a cut; `None` where there is no budget.
    pub budget: Option<usize>,
    /// Positions by which the budget is outgrown before it is cut back to.
    pub every: usize,
    /// Positions of a block, where whole blocks go; 1 where single positions do.
    pub page: usize,
    /// Its rows are observed, not measured.
    pub prompt: PromptPlan,
    /// The policy's own rule, in place of the others.
    pub own: Option<BlockCuts>,
}

impl Schedule {
    /// The schedule of a lane with this budget.
    pub(super) fn new(budget: Option<usize>, keeping: Keeping, own: Option<BlockCuts>) -> Schedule {
        let Keeping { evict_every: every, page, prompt, .. } = keeping;
        Schedule { budget, every, page, prompt, own }
    }

    /// Whether a step belongs to the prompt.
    #[inline]
    pub(super) fn is_in_prompt(&self, step: Position) -> bool {
        step < self.prompt.end()
    }

    /// Down to how many positions a cache that holds `kept` is cut at the end of a step; `None` where it is
    /// not.
    #[inline]
    pub(super) fn cut_after(&self, step: Position, kept: usize) -> Option<usize> {
        let budget = self.budget?;
        if self.own.is_some() || self.prompt.len > 0 {
            return self.cut_of_prompt(step, kept, budget);
        }
        (kept >= budget.saturating_add(self.every)).then_some(budget)
    }

    /// As [`Schedule::cut_after`], where there is a prompt or the policy has its own rule.
    fn cut_of_prompt(&self, step: Position, kept: usize, budget: usize) -> Option<usize> {
        if let Some(BlockCuts { most, block }) = self.own {
            // Neither within a prompt nor at its end: the first cut comes after the row that follows.
            let due = !self.is_in_prompt(step) && kept >= most + block;
            return due.then_some(most + kept % block);
        }
        let read = step.index() + 1;
        let due = if read > self.prompt.len {
            self.prompt.mode != PromptMode::Once && kept >= budget.saturating_add(self.every)
        } else {
            read == self.prompt.len || self.prompt.chunk.is_some_and(|chunk| read.is_multiple_of(chunk))
        };
        due.then_some(budget)
    }

    /// Positions that a policy is measured on in a step, at most.
    pub(super) fn most_measured(&self, step: Position, kind: SelfAttention) -> usize {
        let Some(budget) = self.budget else { return usize::MAX };
        let beyond = match self.prompt.mode {
            PromptMode::Once => (step.index() + 1).saturating_sub(self.prompt.len),
            PromptMode::Stream | PromptMode::Block => self.every,
        };
        let held = budget.saturating_add(beyond);
        if kind == SelfAttention::Included { held } else { held - usize::from(beyond > 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(every: usize, prompt: PromptPlan) -> Schedule {
        Schedule::new(Some(4), Keeping { evict_every: every, prompt, ..Keeping::default() }, None)
    }

    /// What is held after each of so many steps of a cache that is cut where it is due.
    fn held(schedule: Schedule, steps: u32) -> Vec<usize> {
        let mut kept = 0;
        let step = |step| {
            kept += 1;
            kept = schedule.cut_after(Position(step), kept).map_or(kept, |most| kept.min(most));
            kept
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn a_stream_is_cut_where_it_has_outgrown_the_budget_by_so_many() {
        assert_eq!(held(schedule(1, PromptPlan::default()), 7), [1, 2, 3, 4, 4, 4, 4]);
        assert_eq!(held(schedule(3, PromptPlan::default()), 11), [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5]);
    }

    #[test]
    fn a_prompt_is_cut_at_its_end_whatever_n_is() {
        assert_eq!(held(schedule(3, PromptPlan::block(6)), 10), [1, 2, 3, 4, 5, 4, 5, 6, 4, 5]);
        assert_eq!(held(schedule(1, PromptPlan::once(6)), 10), [1, 2, 3, 4, 5, 4, 5, 6, 7, 8]);
        assert_eq!(held(schedule(1, PromptPlan::once(3)), 6), [1, 2, 3, 4, 5, 6], "it fits");
    }

    #[test]
    fn a_prompt_in_chunks_is_cut_after_each_and_at_its_end() {
        let prompt = PromptPlan { chunk: Some(3), ..PromptPlan::block(8) };
        assert_eq!(held(schedule(1, prompt), 10), [1, 2, 3, 4, 5, 4, 5, 4, 4, 4]);
    }

    #[test]
    fn blocks_of_a_policy_go_after_the_row_that_follows_the_prompt() {
        let own = |prompt| {
            let keeping = Keeping { prompt, ..Keeping::default() };
            Schedule::new(Some(7), keeping, Some(BlockCuts { most: 4, block: 2 }))
        };
        assert_eq!(held(own(PromptPlan::default()), 8), [1, 2, 3, 4, 5, 4, 5, 4]);
        assert_eq!(held(own(PromptPlan::block(8)), 10), [1, 2, 3, 4, 5, 6, 7, 8, 5, 4]);
    }

    #[test]
    fn what_is_measured_is_what_was_held_and_the_token_itself() {
        let most = |schedule: Schedule, step| {
            [SelfAttention::Included, SelfAttention::Excluded].map(|kind| schedule.most_measured(Position(step), kind))
        };
        assert_eq!(most(schedule(1, PromptPlan::default()), 9), [5, 4]);
        assert_eq!(most(schedule(3, PromptPlan::default()), 9), [7, 6]);
        assert_eq!(most(schedule(1, PromptPlan::once(8)), 8), [5, 4]);
        assert_eq!(most(schedule(1, PromptPlan::once(8)), 10), [7, 6]);
    }
}
