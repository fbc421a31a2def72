//! A look at a few rows before any is used: what is not attention, and would give numbers that look like an
//! answer, is named as what it looks like.

use super::frame::Columns;
use super::stream::Stream;
use crate::error::Result;

/// Rows looked at, spread over the stream.
const ROWS: usize = 8;
/// The share of negative numbers from which rows are taken for logarithms.
const NEARLY_ALL: f64 = 0.9;
/// The share of negative numbers from which rows are no weights.
const SOME: f64 = 0.25;
/// From this common sum on, rows are scaled and not just unsound.
const SCALED: f64 = 1.5;
/// By how much the sums of scaled rows may differ: they may have been rounded to whole numbers.
const SPREAD: f64 = 0.05;
/// What may lie on the wrong side of a row's own token, as a share of the row.
const STRAY: f64 = 1e-3;
/// Numbers from here down are what masks add to scores.
const MASKED: f32 = -1e4;
/// The most weights read to sum columns.
const MOST_CELLS: usize = 1 << 22;

/// What an array looks like.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Likeness {
    /// Attention, or nothing that says otherwise.
    Attention,
    /// Weights whose rows do not sum to one and may be divided by their sums: what they sum to.
    Scaled(String),
    /// Something else: what, and what to do.
    Foreign(String),
}

/// Says what a stream looks like.
///
/// # Errors
/// When its rows cannot be read.
pub(super) fn look(stream: &Stream) -> Result<Likeness> {
    let look = look_at_rows(stream)?;
    Ok(match look.likeness() {
        Likeness::Attention if look.is_skewed() && columns_sum_to_one(stream)? => Likeness::Foreign(transposed()),
        likeness => likeness,
    })
}

/// What was seen of a row.
#[derive(Default, Clone, Debug)]
struct RowLook {
    /// Weights up to the row's own token.
    causal: usize,
    negative: usize,
    /// Weights that are 0 or 1.
    binary: usize,
    /// Sums before the own token, on it, and after it.
    before: f64,
    own: f64,
    after: f64,
    /// The sum of what the numbers are the logarithms of.
    exponentials: f64,
    /// Columns after the own token, and those of them that a mask has marked.
    rest: usize,
    marked: usize,
    /// Whether no column lies past the last position of the array.
    full: bool,
}

impl RowLook {
    /// Looks at a row whose own token is in column `own`; `None` where it holds what is not a number.
    fn at(row: &[f32], own: usize) -> Option<RowLook> {
        let (causal, rest) = row.split_at(own + 1);
        if causal.iter().any(|weight| weight.is_nan() || *weight == f32::INFINITY) {
            return None;
        }
        let sum = |weights: &[f32]| weights.iter().map(|weight| f64::from(*weight)).sum::<f64>();
        let weights = rest.iter().filter(|weight| weight.is_finite() && **weight > 0.0);
        Some(RowLook {
            causal: causal.len(),
            negative: causal.iter().filter(|weight| **weight < 0.0).count(),
            binary: causal.iter().filter(|weight| **weight == 0.0 || **weight == 1.0).count(),
            before: sum(&causal[..own]),
            own: f64::from(causal[own]),
            after: weights.map(|weight| f64::from(*weight)).sum(),
            exponentials: causal.iter().map(|weight| f64::from(*weight).exp()).sum(),
            rest: rest.len(),
            marked: rest.iter().filter(|weight| **weight <= MASKED).count(),
            full: true,
        })
    }

    fn sum(&self) -> f64 {
        self.before + self.own
    }

    fn sums_to_one(&self) -> bool {
        (self.sum() - 1.0).abs() <= SPREAD
    }

    /// Whether weight lies after the own token.
    fn is_dirty(&self) -> bool {
        self.after > STRAY * (self.sum() + self.after)
    }
}

/// What the rows looked at have in common, in their order.
#[derive(Default)]
struct Look(Vec<RowLook>);

fn look_at_rows(stream: &Stream) -> Result<Look> {
    let mut rows = stream.open_sparse();
    let mut look = Look::default();
    let (first, end) = (stream.first_sound_row(), stream.rows);
    let step = (end.saturating_sub(first)).div_ceil(ROWS).max(1);
    let full = stream.dead_columns() == 0;
    // From the last row backwards: the first ones have little to say.
    for row in (first..end).rev().step_by(step) {
        let position = stream.first + row;
        let (weights, frame) = rows.row(row)?;
        let own = position - frame.column_zero(position);
        look.0.extend(RowLook::at(weights, own).map(|look| RowLook { full, ..look }));
    }
    look.0.reverse();
    Ok(look)
}

impl Look {
    fn likeness(&self) -> Likeness {
        if let Some(what) = self.logarithms().or_else(|| self.scores()).or_else(|| self.mask()) {
            return Likeness::Foreign(what);
        }
        if let Some(what) = self.transposed().or_else(|| self.cross()) {
            return Likeness::Foreign(what);
        }
        self.factor().or_else(|| self.uneven()).map_or(Likeness::Attention, Likeness::Scaled)
    }

    /// Rows with more than one weight: the others have nothing to say.
    fn telling(&self) -> impl Iterator<Item = &RowLook> + Clone {
        self.0.iter().filter(|row| row.causal > 1)
    }

    /// Rows with columns after their own token.
    fn with_rest(&self) -> impl Iterator<Item = &RowLook> + Clone {
        self.0.iter().filter(|row| row.rest > 0)
    }

    fn negative_share(&self) -> f64 {
        let (negative, all) = self.telling().fold((0, 0), |(n, all), row| (n + row.negative, all + row.causal));
        if all == 0 { 0.0 } else { negative as f64 / all as f64 }
    }

    fn logarithms(&self) -> Option<String> {
        let near = self.telling().all(|row| (row.exponentials - 1.0).abs() <= 2.0 * SPREAD);
        (near && self.negative_share() >= NEARLY_ALL)
            .then(|| "nearly all weights are negative, log-probabilities: save their exp".to_owned())
    }

    fn scores(&self) -> Option<String> {
        let negative = self.negative_share();
        if negative >= SOME {
            let percent = 100.0 * negative;
            return Some(format!(
                "{percent:.0}% of the weights are negative, scores before the softmax or not attention at all: save \
                 what the softmax returns"
            ));
        }
        // Less than one is what a learned sink leaves.
        let unlike = most(self.telling(), |row| !(0.0..=1.0 + SPREAD).contains(&row.sum()));
        let marked = most(self.with_rest(), |row| row.marked == row.rest);
        let adds = unlike && (marked || negative > 0.0);
        adds.then(|| {
            let mark = if marked { ", with a mask's lowest numbers after each token" } else { "" };
            format!("rows do not sum to one{mark}, scores before the softmax: save what the softmax returns")
        })
    }

    fn mask(&self) -> Option<String> {
        let binary = self.telling().all(|row| row.binary == row.causal);
        let unlike = most(self.telling(), |row| !row.sums_to_one());
        (binary && unlike && self.0.iter().any(|row| row.sum() > 1.0 || row.marked > 0))
            .then(|| "zeros and ones, a mask: not attention".to_owned())
    }

    fn transposed(&self) -> Option<String> {
        let upper = self.telling().all(|row| row.before <= STRAY * (row.sum() + row.after));
        (upper && self.telling().count() > 0 && most(self.with_rest(), RowLook::is_dirty)).then(transposed)
    }

    /// Rows of padding come first and end: what goes on to the last rows is something else.
    fn is_dirty_to_the_end(&self) -> bool {
        let rows: Vec<&RowLook> = self.with_rest().collect();
        let late = rows[rows.len() / 2..].iter().copied();
        self.0.iter().all(|row| row.full) && most(late, RowLook::is_dirty)
    }

    fn cross(&self) -> Option<String> {
        let whole = |row: &RowLook| (row.sum() + row.after - 1.0).abs() <= SPREAD;
        (self.is_dirty_to_the_end() && most(self.0.iter(), whole)).then(cross)
    }

    /// Whether it may be that columns sum to one and rows do not.
    fn is_skewed(&self) -> bool {
        self.is_dirty_to_the_end()
    }

    fn factor(&self) -> Option<String> {
        let sums: Vec<f64> = self.telling().map(RowLook::sum).collect();
        let factor = sums.iter().sum::<f64>() / sums.len() as f64;
        let near = sums.iter().all(|sum| (sum - factor).abs() <= SPREAD * factor);
        // No sums make no factor: the comparison with what is not a number is false.
        (near && factor >= SCALED && factor.is_finite()).then(|| {
            format!("rows sum to about {factor:.4}, not to one: scaled weights (divide them, or use --normalize rows)")
        })
    }

    fn uneven(&self) -> Option<String> {
        let sums = self.telling().map(RowLook::sum);
        let (least, most_of_all) = (sums.clone().fold(f64::INFINITY, f64::min), sums.fold(0.0, f64::max));
        most(self.telling(), |row| row.sum() >= SCALED).then(|| {
            format!(
                "rows sum to {least:.4} up to {most_of_all:.4}, not to one: scores before the softmax, or weights that \
                 were added up (--normalize rows divides each by its sum)"
            )
        })
    }
}

/// Whether three of four rows are so, of at least one.
fn most<'a>(rows: impl Iterator<Item = &'a RowLook> + Clone, is_so: impl Fn(&RowLook) -> bool) -> bool {
    let all = rows.clone().count();
    all > 0 && 4 * rows.filter(|row| is_so(row)).count() >= 3 * all
}

/// What is said of transposed attention.
fn transposed() -> String {
    "columns sum to one and rows do not, transposed attention: save its .swapaxes(-1, -2)".to_owned()
}

/// What is said of attention that is not causal.
pub(super) fn cross() -> String {
    "rows sum to one over columns after their own token, cross-attention or an encoder's: kvsim replays the causal \
     self-attention of a decoder"
        .to_owned()
}

fn columns_sum_to_one(stream: &Stream) -> Result<bool> {
    let [part] = &stream.parts[..] else { return Ok(false) };
    let width = part.layout.width;
    if stream.rows.saturating_mul(width) > MOST_CELLS || !matches!(stream.frame(part).columns, Columns::From(_)) {
        return Ok(false);
    }
    let (mut rows, mut sums) = (stream.open(), vec![0.0_f64; width]);
    for row in 0..stream.rows {
        let (weights, _) = rows.row(row)?;
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += f64::from(*weight));
    }
    Ok(sums.iter().all(|sum| (sum - 1.0).abs() <= SPREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look at a square whose rows stand at 0, 1, 2, ...
    fn look(rows: &[&[f32]]) -> Likeness {
        let rows = rows.iter().enumerate().filter_map(|(own, row)| RowLook::at(row, own));
        Look(rows.map(|row| RowLook { full: true, ..row }).collect()).likeness()
    }

    #[track_caller]
    fn assert_foreign(rows: &[&[f32]], expected: &str) {
        let Likeness::Foreign(what) = look(rows) else { panic!("not foreign: {:?}", look(rows)) };
        assert!(what.contains(expected), "{what}");
    }

    const INF: f32 = f32::INFINITY;

    #[test]
    fn logarithms_are_recognised() {
        assert_foreign(&[&[0.0, -INF], &[-0.7, -0.7]], "log-probabilities");
        assert_foreign(&[&[0.0, 0.0, 0.0], &[-0.7, -0.7, 0.0], &[-3.0, -INF, -0.1]], "log-probabilities");
    }

    #[test]
    fn attention_is_left_alone() {
        for rows in [
            &[&[1.0, 0.0, 0.0][..], &[0.5, 0.5, 0.0], &[-0.01, 0.51, 0.5]][..],
            &[&[1.0, f32::NAN], &[0.5, 0.5]],
            &[&[1.0, -INF], &[0.5, 0.5]],
            &[&[1.0, 0.0], &[0.0, 1.0]],
            &[&[f32::NAN, f32::NAN], &[0.5, 0.5]],
            &[&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0], &[1.0, 0.0, 0.0]],
            // Two rows of padding before three.
            &[&[0.2; 5], &[0.2; 5], &[0.0, 0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 0.5, 0.5, 0.0], &[0.0, 0.0, 0.5, 0.2, 0.3]],
            &[],
        ] {
            assert_eq!(look(rows), Likeness::Attention, "{rows:?}");
        }
    }

    #[test]
    fn scores_are_recognised_by_any_mark_or_by_their_signs() {
        for mark in [-INF, f32::MIN, -65504.0, -3.389_531_4e38, -1e9, -1e4] {
            assert_foreign(&[&[2.0, mark, mark], &[1.0, 3.0, mark], &[0.3, 2.0, 0.1]], "scores before the softmax");
        }
        assert_foreign(&[&[2.0, 1.0, 0.0], &[-1.0, 3.0, 1.0], &[0.3, -2.0, 0.1]], "scores before the softmax");
    }

    #[test]
    fn masks_are_recognised() {
        assert_foreign(&[&[1.0, 0.0, 0.0], &[1.0, 1.0, 0.0], &[1.0, 1.0, 1.0]], "a mask");
        assert_foreign(&[&[0.0, -INF], &[0.0, 0.0]], "a mask");
    }

    #[test]
    fn transposed_and_cross_attention_are_recognised() {
        assert_foreign(&[&[1.0, 0.4, 0.2], &[0.0, 0.6, 0.3], &[0.0, 0.0, 0.5]], "transposed");
        let row = &[0.25, 0.25, 0.25, 0.25][..];
        assert_foreign(&[row, row, row, row], "cross-attention");
    }

    #[test]
    fn a_common_factor_is_recognised() {
        let scaled = |rows: &[&[f32]]| match look(rows) {
            Likeness::Scaled(what) => what,
            other => panic!("not scaled: {other:?}"),
        };
        assert!(scaled(&[&[100.0, 0.0, 0.0], &[50.0, 50.0, 0.0], &[20.0, 30.0, 51.0]]).contains("about 100.5"));
        assert!(scaled(&[&[1.0, 0.0, 0.0], &[2.0, 3.0, 0.0], &[2.0, 3.0, 4.0]]).contains("5.0000 up to 9.0000"));
        for rows in [
            &[&[1.0, 0.0, 0.0][..], &[0.6, 0.6, 0.0], &[0.2, 0.3, 0.5]][..],
            &[&[1.0, 0.0, 0.0], &[0.5, 0.5, 0.0], &[3.0, 3.0, 0.5]],
            &[&[1.0, 0.0], &[INF, 1.0]],
            &[&[1.0, 0.0], &[f32::NAN, 1.0]],
        ] {
            assert_eq!(look(rows), Likeness::Attention, "{rows:?}");
        }
    }
}
