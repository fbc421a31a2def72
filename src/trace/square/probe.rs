//! A look at a few rows before any is used: log-probabilities and scaled weights are no attention, and
//! would give numbers that look like an answer.

use super::source::Stream;
use crate::error::Result;

/// Rows looked at, spread over the stream.
const ROWS: usize = 8;
/// The share of negative numbers from which rows are taken for logarithms.
const NEARLY_ALL: f64 = 0.9;
/// From this common sum on, rows are scaled and not just unsound.
const SCALED: f64 = 1.5;
/// By how much the sums of scaled rows may differ: they may have been rounded to whole numbers.
const SPREAD: f64 = 0.05;

/// What the rows looked at have in common.
#[derive(Default)]
struct Look {
    weights: usize,
    negative: usize,
    sums: Vec<f64>,
}

/// Says what a stream is if it is no attention; `scaled` says whether scaled weights are welcome.
pub(super) fn look(stream: &Stream, scaled: bool) -> Result<Option<String>> {
    let look = look_at_rows(stream)?;
    Ok(look.logarithms().or_else(|| if scaled { None } else { look.factor() }))
}

fn look_at_rows(stream: &Stream) -> Result<Look> {
    let mut rows = stream.open_sparse()?;
    let mut look = Look::default();
    let (first, end) = (stream.frame.first_row(), stream.rows);
    let step = (end - first).div_ceil(ROWS).max(1);
    // From the last row backwards: the first ones have little to say.
    for row in (first..end).rev().step_by(step) {
        let own = stream.own_column(row);
        look.add(&rows.row(row)?[..=own]);
    }
    Ok(look)
}

impl Look {
    fn add(&mut self, weights: &[f32]) {
        if weights.len() > 1 {
            self.weights += weights.len();
            self.negative += weights.iter().filter(|weight| **weight < 0.0).count();
            self.sums.push(weights.iter().map(|weight| f64::from(*weight)).sum());
        }
    }

    fn logarithms(&self) -> Option<String> {
        let most = self.weights > 0 && self.negative as f64 >= NEARLY_ALL * self.weights as f64;
        most.then(|| "nearly all weights are negative: log-probabilities (save their exp)".to_owned())
    }

    fn factor(&self) -> Option<String> {
        let factor = self.sums.iter().sum::<f64>() / self.sums.len() as f64;
        let near = self.sums.iter().all(|sum| (sum - factor).abs() <= SPREAD * factor);
        // No sums make no factor: the comparison with what is no number is false.
        (near && factor >= SCALED && factor.is_finite()).then(|| {
            format!("rows sum to about {factor:.4}, not to one: scaled weights (divide them, or use --normalize rows)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rows: &[&[f32]]) -> Look {
        let mut look = Look::default();
        rows.iter().for_each(|row| look.add(row));
        look
    }

    #[test]
    fn logarithms_are_recognised() {
        let inf = f32::NEG_INFINITY;
        assert!(look(&[&[0.0], &[-0.7, -0.7], &[-3.0, inf, -0.1]]).logarithms().is_some());
        assert!(look(&[&[1.0], &[0.5, 0.5], &[-0.1, 0.6, 0.5]]).logarithms().is_none());
        assert!(look(&[]).logarithms().is_none());
    }

    #[test]
    fn a_common_factor_is_recognised() {
        assert!(look(&[&[50.0, 50.0], &[20.0, 30.0, 51.0]]).factor().expect("scaled").contains("100.5"));
        assert!(look(&[&[128.0, 127.0]]).factor().is_some());
        for rows in [&[&[0.5, 0.5][..], &[0.6, 0.6]], &[&[0.5, 0.5], &[3.0, 3.0]], &[&[], &[]]] {
            assert!(look(rows).factor().is_none(), "{rows:?}");
        }
        assert!(look(&[&[f32::INFINITY, 1.0]]).factor().is_none());
        assert!(look(&[&[f32::NAN, 1.0]]).factor().is_none());
    }
}
