//! What was noticed while rows streamed by: how many rows were odd, and which most of all.
//!
//! A stream may be read more than once, by several threads; what is noticed is kept by stream, so that it is
//! neither counted twice nor dependent on who came first.

use super::rule::Cut;
use crate::position::Position;
use crate::trace::watch::{Deviation, more};
use std::sync::{Arc, Mutex};

/// What was noticed in one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Noticed {
    /// Rows read.
    rows: usize,
    /// Rows with weight before the start, by its share.
    pub before_start: Deviation,
    /// Rows with weight on their own token where self is excluded, by its share.
    pub on_self: Deviation,
}

/// The least share of a row worth a word when it is left out.
const SHARE: f64 = 1e-3;

impl Noticed {
    /// Looks at a row.
    pub(super) fn look(&mut self, cut: &Cut<'_>, step: Position) {
        self.rows += 1;
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

    fn noticed(shares: &[f64]) -> Noticed {
        let mut noticed = Noticed::default();
        for (share, step) in shares.iter().zip(0..) {
            let cut = Cut { lead: 0, weights: &[], before_start: *share, on_self: *share };
            noticed.look(&cut, Position(step));
        }
        noticed
    }

    #[test]
    fn shares_that_are_worth_a_word_are_counted() {
        let mut two = Deviation::default();
        two.add(0.2, Position(1), more);
        two.add(0.3, Position(3), more);
        let found = noticed(&[0.0, 0.2, 0.000_9, 0.3]);
        assert_eq!((found.before_start, found.on_self), (two, two));
    }

    #[test]
    fn a_stream_read_twice_counts_once() {
        let report = Report::new(1);
        let (half, whole) = (noticed(&[0.5]), noticed(&[0.5, 0.6]));
        for reader in [&half, &whole, &half, &whole] {
            report.keep(0, reader);
        }
        assert_eq!(report.noticed(), [whole]);
    }
}
