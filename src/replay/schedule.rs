//! When a lane's cache is cut, and down to how many positions.

use crate::position::Position;

/// When the budget of a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    /// Most positions held between steps; `None` where there is no budget.
    pub budget: Option<usize>,
    /// Rows before this step belong to a prompt: observed, not measured, and cut down at once at the end
    /// of its last row.
    pub prompt_end: Position,
}

impl Schedule {
    /// Whether a step belongs to the prompt.
    #[inline]
    pub(super) fn is_in_prompt(&self, step: Position) -> bool {
        step < self.prompt_end
    }

    /// Down to how many positions the cache is cut at the end of a step; `None` where it is not.
    #[inline]
    pub(super) fn cut_after(&self, step: Position) -> Option<usize> {
        self.budget.filter(|_| step.0 + 1 >= self.prompt_end.0)
    }
}
