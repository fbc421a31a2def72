//! Whether the rows of a cache are on the scale of attention, where plans are made in fixed point.

use crate::error::{Error, Result};
use crate::position::Position;

/// A row may sum to this much: its weights still add up in fixed point, over as many rows as there can be.
const MOST: f64 = 1e6;

/// Rows that are not zero must on average sum to this much: what fixed point cuts off the weights then stays
/// below what sums in f64 tell apart.
const LEAST: f64 = 1e-6;

/// The sums of the rows seen so far.
#[derive(Default)]
pub(super) struct Scale {
    total: f64,
    /// Rows whose sum is not zero.
    rows: u64,
    /// The first row that sums to too much.
    too_large: Option<(Position, f64)>,
}

impl Scale {
    /// Counts a row.
    pub(super) fn add(&mut self, step: Position, total: f64) {
        self.total += total;
        self.rows += u64::from(total > 0.0);
        if total > MOST && self.too_large.is_none() {
            self.too_large = Some((step, total));
        }
    }

    /// Refuses rows off the scale; `place` names a row, `cache` the whole of them.
    pub(super) fn check(&self, policy: &str, place: impl Fn(Position) -> String, cache: &str) -> Result<()> {
        let refusal = |place: String, what: String| {
            let problem = format!("{what}: {policy} plans with sums between {LEAST:e} and {MOST:e} (--normalize rows)");
            Err(Error::data(place, problem))
        };
        let mean = self.total / self.rows.max(1) as f64;
        match self.too_large {
            Some((step, total)) => refusal(place(step), format!("the row sums to {total:.2e}")),
            None if self.rows > 0 && mean < LEAST => {
                refusal(cache.to_owned(), format!("rows sum to {mean:.2e} on average"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(totals: &[f64]) -> Result<()> {
        let mut scale = Scale::default();
        (0..).zip(totals).for_each(|(step, total)| scale.add(Position(step), *total));
        scale.check("optimal", |step| format!("row {step}"), "stream 0.0")
    }

    #[test]
    fn attention_and_rows_of_nothing_are_on_the_scale() {
        for totals in [&[][..], &[0.0, 0.0], &[1.0, 0.0, 1e-12], &[1e6, 1e-9], &[5e-6]] {
            assert!(checked(totals).is_ok(), "{totals:?}");
        }
    }

    #[test]
    fn what_is_too_large_or_too_small_is_refused_with_a_remedy() {
        let problem = checked(&[1.0, 2e19]).expect_err("too large").to_string();
        assert!(problem.starts_with("row 1: the row sums to 2.00e19: optimal plans"), "{problem}");
        let problem = checked(&[1e-20, 3e-20]).expect_err("too small").to_string();
        assert!(problem.starts_with("stream 0.0: rows sum to 2.00e-20 on average"), "{problem}");
        assert!(problem.ends_with("(--normalize rows)"), "{problem}");
    }
}
