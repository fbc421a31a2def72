//! `oracle` (a bound): the heaviest weights of each row, chosen anew for each.
//!
//! *Idea.* Reads the whole row and keeps the best set for it, taking back what it dropped before:
//! no policy with the same budget retains more.
//! *Paper.* None; the upper bound that papers compare with.
//! *Parameters.* None. It holds as many positions as a policy is measured on: the budget, and one
//! more where rows include the token itself.
//! *Cost.* One selection over the row and step, linear in the row's length.

use super::Bound;

/// Keeps the heaviest weights of each row.
#[derive(Default)]
pub struct Oracle {
    scratch: Vec<f32>,
}

impl Bound for Oracle {
    /// Weights above the smallest that is held are added in position order; what is left of the
    /// count holds that smallest weight.
    fn retained(&mut self, row: &[f32], held: usize) -> f64 {
        if held >= row.len() {
            return crate::kernels::sum(row);
        }
        if held == 0 {
            return 0.0;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(row);
        let (_, least, _) = self.scratch.select_nth_unstable_by(held - 1, |a, b| b.total_cmp(a));
        let least = *least;
        let (mut sum, mut above) = (0.0, 0_usize);
        for weight in row.iter().filter(|weight| **weight > least) {
            sum += f64::from(*weight);
            above += 1;
        }
        sum + (held - above) as f64 * f64::from(least)
    }
}
