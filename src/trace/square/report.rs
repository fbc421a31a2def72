//! What was noticed while rows streamed by: how many rows were odd, and which most of all.
//!
//! A stream may be read more than once, by several threads; what is noticed is kept by stream, so that it is
//! neither counted twice nor dependent on who came first.

use super::rule::Cut;
use crate::position::Position;
use std::sync::{Arc, Mutex};

/// Rows that are odd in one way, and the worst of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Odd {
    pub rows: usize,
    /// The value of the worst row, and where it stands.
    pub worst: Option<(f64, Position)>,
}

impl Odd {
    fn add(&mut self, value: f64, step: Position, is_worse: impl Fn(f64, f64) -> bool) {
        self.rows += 1;
        if self.worst.is_none_or(|(worst, _)| is_worse(value, worst)) {
            self.worst = Some((value, step));
        }
    }
}

/// What was noticed in one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Noticed {
    /// Rows read.
    rows: usize,
    /// Rows that sum to more than one, by their sum.
    pub above_one: Odd,
    /// Rows that sum to less than one, by their sum.
    pub below_one: Odd,
    /// Rows that hold nothing.
    pub empty: Odd,
    /// Rows with weight before the start, by its share.
    pub before_start: Odd,
    /// Rows with weight on their own token where self is excluded, by its share.
    pub on_self: Odd,
}

/// The least share of a row worth a word when it is left out.
const SHARE: f64 = 1e-3;

impl Noticed {
    /// Looks at a row; `tolerance` is what its sum may be off by.
    pub(super) fn look(&mut self, cut: &Cut<'_>, step: Position, tolerance: f64) {
        self.rows += 1;
        let more = |value: f64, worst: f64| value > worst;
        if cut.sum > 1.0 + tolerance {
            self.above_one.add(cut.sum, step, more);
        } else if cut.sum == 0.0 {
            self.empty.add(cut.sum, step, more);
        } else if cut.sum < 1.0 - tolerance {
            self.below_one.add(cut.sum, step, |value, worst| value < worst);
        }
        if cut.before_start > SHARE {
            self.before_start.add(cut.before_start, step, more);
        }
        if cut.on_self > SHARE {
            self.on_self.add(cut.on_self, step, more);
        }
    }
}

/// What was noticed in all streams, shared by the readers.
#[derive(Clone)]
pub(super) struct Report(Arc<Mutex<Vec<Noticed>>>);

impl Report {
    /// A report of so many streams.
    pub(super) fn new(streams: usize) -> Report {
        Report(Arc::new(Mutex::new(vec![Noticed::default(); streams])))
    }

    /// Keeps what was noticed in a stream, unless a reader that came further has said more.
    pub(super) fn keep(&self, stream: usize, noticed: &Noticed) {
        let mut all = self.0.lock().expect("no reader panics while it reports");
        if all[stream].rows < noticed.rows {
            all[stream] = *noticed;
        }
    }

    /// What was noticed, by stream.
    pub(super) fn noticed(&self) -> Vec<Noticed> {
        self.0.lock().expect("no reader panics while it reports").clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noticed(sums: &[f64]) -> Noticed {
        let mut noticed = Noticed::default();
        for (sum, step) in sums.iter().zip(0..) {
            let cut = Cut { lead: 0, weights: &[], sum: *sum, before_start: 0.0, on_self: 0.0 };
            noticed.look(&cut, Position(step), 1e-3);
        }
        noticed
    }

    #[test]
    fn sums_off_by_more_than_rounding_are_counted_with_the_worst() {
        let found = noticed(&[1.0, 1.0009, 1.02, 1.5, 1.5, 0.9995, 0.7, 0.2, 0.0, f64::NAN]);
        assert_eq!(found.above_one, Odd { rows: 3, worst: Some((1.5, Position(3))) });
        assert_eq!(found.below_one, Odd { rows: 2, worst: Some((0.2, Position(7))) });
        assert_eq!(found.empty, Odd { rows: 1, worst: Some((0.0, Position(8))) });
    }

    #[test]
    fn a_stream_read_twice_counts_once() {
        let report = Report::new(1);
        let (half, whole) = (noticed(&[1.5]), noticed(&[1.5, 1.6]));
        for reader in [&half, &whole, &half, &whole] {
            report.keep(0, reader);
        }
        assert_eq!(report.noticed(), [whole]);
    }
}
