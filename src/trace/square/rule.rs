//! The one rule by which a stored row becomes a row of the trace: which columns are positions.
//!
//! What lies after the row's own token is no position: it must be empty, or a mark that stands for nothing (NaN,
//! an infinity, the lowest number of a type). What lies before the start is padding; positions before the first
//! column hold nothing.

use super::frame::Frame;
use crate::trace::SelfAttention;

/// The most of a row that may lie where there is no position: what rounding leaves there.
const STRAY: f64 = 1e-3;

/// Numbers from here down are marks of a mask, not weights: the lowest of f16 and of any wider type.
const LOWEST: f32 = -65504.0;

/// Whether a number says that there is no weight here.
pub(super) fn is_mark(weight: f32) -> bool {
    !weight.is_finite() || weight <= LOWEST
}

/// A stored row, cut.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    /// The position, counted from the start, of the first weight kept.
    pub lead: usize,
    /// The weights on positions that exist, ascending.
    pub weights: &'a [f32],
    /// What was left out before the start, as a share of the row.
    pub before_start: f64,
    /// What was left out on the token itself, as a share of the row.
    pub on_self: f64,
}

/// Cuts the stored row of the token at `position` down to the positions that it may attend to.
///
/// # Errors
/// When more than a thousandth of the row lies after its token.
pub(super) fn cut<'a>(row: &'a [f32], position: usize, frame: &Frame, kind: SelfAttention) -> Result<Cut<'a>, String> {
    let zero = frame.column_zero(position);
    let column = |position: usize| position.saturating_sub(zero).min(row.len());
    let (padding, rest) = row.split_at(column(frame.start));
    let (known, after) = rest.split_at(column(position + 1) - padding.len());
    let own = usize::from(kind == SelfAttention::Excluded && !known.is_empty());
    let (weights, own) = known.split_at(known.len() - own);
    let [padding, kept, own] = [padding, weights, own].map(sum);
    // Negative numbers must not cancel out where nothing may be.
    let after = after.iter().filter(|weight| !is_mark(**weight)).map(|weight| f64::from(weight.abs())).sum();
    let total = padding + kept + own + after;
    check_after(after, total)?;
    let share = |part: f64| if total > 0.0 { part / total } else { 0.0 };
    let lead = zero.max(frame.start) - frame.start;
    Ok(Cut { lead, weights, before_start: share(padding), on_self: share(own) })
}

/// In an order that depends on the row alone, four sums at a time.
fn sum(weights: &[f32]) -> f64 {
    let (groups, rest) = weights.as_chunks::<4>();
    let mut sums = [0.0_f64; 4];
    for group in groups {
        for (sum, weight) in sums.iter_mut().zip(group) {
            *sum += f64::from(*weight);
        }
    }
    let rest: f64 = rest.iter().map(|weight| f64::from(*weight)).sum();
    sums[0] + sums[1] + sums[2] + sums[3] + rest
}

fn check_after(after: f64, total: f64) -> Result<(), String> {
    // A row that is not a number at all is named, with its column, by whoever uses it.
    if after == 0.0 || total.is_nan() {
        return Ok(());
    }
    let share = after / total;
    if share.abs() <= STRAY {
        return Ok(());
    }
    Err(format!(
        "{share:.4} of the row lies after its own token, where there is no position yet: left padding is skipped \
         with --start N, rows that begin later in the sequence need --first-position P"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::frame::Columns;
    use super::*;
    use SelfAttention::{Excluded, Included};

    fn frame(first: usize, zero: usize, start: usize) -> Frame {
        Frame { first, columns: Columns::From(zero), start }
    }

    fn kept(row: &[f32], position: usize, frame: Frame, kind: SelfAttention) -> (usize, Vec<f32>) {
        let cut = cut(row, position, &frame, kind).expect("sound");
        (cut.lead, cut.weights.to_vec())
    }

    #[test]
    fn a_row_ends_with_its_token_or_just_before() {
        let row = [0.5, 0.25, 0.25, 0.0];
        assert_eq!(kept(&row, 2, frame(0, 0, 0), Included), (0, vec![0.5, 0.25, 0.25]));
        assert_eq!(kept(&row, 2, frame(0, 0, 0), Excluded), (0, vec![0.5, 0.25]));
        assert_eq!(kept(&[0.0], 0, frame(0, 0, 0), Excluded), (0, vec![]));
    }

    #[test]
    fn columns_may_start_late_and_padding_is_left_out() {
        let row = [0.5, 0.25, 0.25];
        assert_eq!(kept(&row, 7, frame(5, 5, 0), Included), (5, row.to_vec()));
        assert_eq!(kept(&row, 7, frame(5, 5, 3), Included), (2, row.to_vec()));
        assert_eq!(kept(&[0.0, 0.5, 0.5], 7, frame(5, 5, 6), Included), (0, vec![0.5, 0.5]));
    }

    #[test]
    fn what_is_left_out_is_measured() {
        let found = cut(&[0.25, 0.25, 0.5], 2, &frame(0, 0, 1), Excluded).expect("sound");
        assert_eq!((found.before_start, found.on_self), (0.25, 0.5));
    }

    #[test]
    fn more_than_a_thousandth_after_the_token_is_refused() {
        let after = |weight: f32| cut(&[0.5, 0.5, weight], 1, &frame(0, 0, 0), Included).map(|cut| cut.weights.len());
        assert_eq!(after(0.000_9), Ok(2));
        let problem = after(0.002).expect_err("too much");
        assert!(problem.contains("--start"), "{problem}");
        assert!(after(-1.0).is_err());
        assert!(cut(&[0.0, 0.0, 0.1], 1, &frame(0, 0, 0), Included).is_err());
    }

    #[test]
    fn marks_after_the_token_are_no_weight() {
        for mark in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -65504.0, f32::MIN] {
            let row = [0.5, 0.5, mark];
            let cut = cut(&row, 1, &frame(0, 0, 0), Included).expect("sound");
            assert_eq!(cut.weights, [0.5, 0.5], "{mark}");
        }
    }

    #[test]
    fn a_row_of_no_numbers_is_left_to_whoever_uses_it() {
        assert!(cut(&[f32::NAN, 0.5, 0.1], 1, &frame(0, 0, 0), Included).is_ok());
    }

    #[test]
    fn sums_do_not_lose_the_tail() {
        for len in 0..20 {
            assert_eq!(sum(&vec![0.25; len]), len as f64 * 0.25);
        }
    }
}
