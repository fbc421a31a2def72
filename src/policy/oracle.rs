//! `oracle` (a bound): the heaviest weights of each row, chosen anew for each.
//!
//! *Idea.* Reads the whole row and keeps the best set for it, taking back what it dropped before:
//! no policy with the same budget retains more.
//! *Paper.* None; the upper bound that papers compare with.
//! *Parameters.* None. It holds as many positions as a policy is measured on: the budget, and one
//! more where rows include the token itself.
//! *Cost.* One selection over the row and step, linear in the row's length.

use super::entry::{Make, PolicyEntry};
use super::{Bound, BoundRow};
use crate::kernels;
use crate::position::Position;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "oracle",
    "bound: the heaviest weights of each row, chosen anew every time",
    Make::Bound(|_| Box::new(Oracle)),
);

/// Keeps the heaviest weights of each row.
pub struct Oracle;

impl Bound for Oracle {
    /// Weights above the smallest that is held are added; what is left of the count holds that
    /// smallest weight.
    fn retained(&mut self, BoundRow { weights: row, held, .. }: BoundRow<'_>) -> f64 {
        if held >= row.len() {
            return kernels::sum(row);
        }
        if held == 0 {
            return 0.0;
        }
        let least = kernels::nth_largest(row, held);
        let above = kernels::count_over(row, least) as usize;
        kernels::sum_over(row, least) + (held - above) as f64 * f64::from(least)
    }

    fn chooses(&self) -> bool {
        true
    }

    /// Of weights that tie at the smallest that is held, those at lower positions.
    fn choose(
        &mut self,
        BoundRow { weights: row, held, .. }: BoundRow<'_>,
        positions: &mut Vec<Position>,
        weights: &mut Vec<f32>,
    ) {
        let (least, mut ties) = match held {
            0 => return,
            held if held >= row.len() => (f32::NEG_INFINITY, 0),
            held => {
                let least = kernels::nth_largest(row, held);
                (least, held - kernels::count_over(row, least) as usize)
            }
        };
        for (position, weight) in (0..).map(Position).zip(row) {
            let tie = *weight == least && ties > 0;
            if *weight > least || tie {
                ties -= usize::from(tie);
                positions.push(position);
                weights.push(*weight);
            }
        }
    }
}
