//! Watches whether rows are attention by what they sum to, whatever format they come from.
//!
//! Who reads rows to work with them knows their sums anyway and counts them with [`RowSums`]; the trace
//! keeps what was counted, stream by stream, and tells of it afterwards. A stream may be read more than
//! once, by several threads: nothing is counted twice or depends on who came first.

use super::{Source, StreamLabel, TraceInfo, sum_tolerance};
use crate::position::Position;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Rows that deviate in one way, and the worst of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Deviation {
    /// Number of such rows.
    rows: u64,
    /// The value of the worst row, and where it stands.
    worst: Option<(f64, Position)>,
}

impl Deviation {
    /// Counts a row; the first of those that tie stays the worst.
    pub(super) fn add(&mut self, value: f64, step: Position, is_worse: fn(f64, f64) -> bool) {
        self.rows += 1;
        if self.worst.is_none_or(|(worst, _)| is_worse(value, worst)) {
            self.worst = Some((value, step));
        }
    }
}

/// What is said of rows that deviate in some way.
pub(super) struct Saying {
    /// What is wrong, in the plural.
    pub what: &'static str,
    /// Why that matters.
    pub why: &'static str,
    /// Whether a value is worse than another.
    pub is_worse: fn(f64, f64) -> bool,
}

impl Saying {
    /// One line for all streams; `None` where no row deviates.
    pub(super) fn say<'a>(&self, streams: impl Iterator<Item = (&'a StreamLabel, Deviation)>) -> Option<String> {
        let (mut rows, mut worst) = (0, None);
        for (label, deviation) in streams {
            rows += deviation.rows;
            let Some((value, step)) = deviation.worst else { continue };
            if worst.is_none_or(|(other, _, _)| (self.is_worse)(value, other)) {
                worst = Some((value, step, label));
            }
        }
        let (value, step, StreamLabel { layer, head }) = worst?;
        let Saying { what, why, .. } = self;
        Some(format!("{what}: {rows}, the worst layer {layer} head {head} row {step} ({value:.4}): {why}"))
    }
}

pub(super) fn more(value: f64, worst: f64) -> bool {
    value > worst
}

const ABOVE_ONE: Saying = Saying {
    what: "rows that sum to more than one",
    why: "no softmax gives that (--normalize rows divides each by its sum)",
    is_worse: more,
};
const EMPTY: Saying = Saying {
    what: "rows that hold no weight at all",
    why: "they count as rows of which nothing is kept",
    is_worse: more,
};
const BELOW_ONE: Saying = Saying {
    what: "rows that sum to less than one",
    why: "legal where a learned sink takes the rest",
    is_worse: |value, worst| value < worst,
};

/// What the rows of one stream sum to.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSums {
    /// By how much rounding to the stored type alone may move a sum away from one.
    tolerance: f64,
    /// Rows counted.
    rows: u64,
    above_one: Deviation,
    below_one: Deviation,
    empty: Deviation,
}

impl RowSums {
    /// Sums of a stream, before any row is counted.
    pub fn of(source: &dyn Source, stream: usize) -> RowSums {
        RowSums::stored_as(source.info().streams[stream].dtype)
    }

    fn stored_as(dtype: &str) -> RowSums {
        let none = Deviation::default();
        RowSums { tolerance: sum_tolerance(dtype), rows: 0, above_one: none, below_one: none, empty: none }
    }

    /// Counts the row of a step by the sum of its weights.
    #[inline]
    pub fn add(&mut self, step: Position, sum: f64) {
        self.rows += 1;
        if (sum - 1.0).abs() > self.tolerance {
            self.deviates(step, sum);
        }
    }

    #[cold]
    fn deviates(&mut self, step: Position, sum: f64) {
        match sum {
            0.0 => self.empty.add(sum, step, EMPTY.is_worse),
            _ if sum > 1.0 => self.above_one.add(sum, step, ABOVE_ONE.is_worse),
            _ => self.below_one.add(sum, step, BELOW_ONE.is_worse),
        }
    }

    fn deviate(&self) -> bool {
        self.above_one.rows + self.below_one.rows + self.empty.rows > 0
    }
}

/// What the rows of a trace sum to, as far as they have been read.
#[derive(Default)]
pub(super) struct SumWatch {
    /// The streams in which a sum is not one, by their index.
    streams: Mutex<BTreeMap<usize, RowSums>>,
}

impl SumWatch {
    /// Keeps what was counted in a stream, unless a reader that came further has said more.
    pub(super) fn keep(&self, stream: usize, sums: &RowSums) {
        if sums.deviate() {
            let mut streams = self.streams();
            if streams.get(&stream).is_none_or(|known| known.rows < sums.rows) {
                streams.insert(stream, sums.clone());
            }
        }
    }

    /// What a user should be warned of, one line each.
    pub(super) fn warnings(&self, info: &TraceInfo) -> Vec<String> {
        let above_one = self.say(info, &ABOVE_ONE, |sums| sums.above_one);
        above_one.into_iter().chain(self.say(info, &EMPTY, |sums| sums.empty)).collect()
    }

    /// What is unusual and legal, one line each.
    pub(super) fn remarks(&self, info: &TraceInfo) -> Vec<String> {
        self.say(info, &BELOW_ONE, |sums| sums.below_one).into_iter().collect()
    }

    fn say(&self, info: &TraceInfo, saying: &Saying, of: fn(&RowSums) -> Deviation) -> Option<String> {
        saying.say(self.streams().iter().map(|(stream, sums)| (&info.streams[*stream].label, of(sums))))
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<usize, RowSums>> {
        self.streams.lock().expect("nobody panics while they count")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::SelfAttention;
    use crate::trace::memory::MemoryTrace;

    fn counted(sums: &[f64]) -> RowSums {
        let mut counted = RowSums::stored_as("f32");
        (0..).zip(sums).for_each(|(step, sum)| counted.add(Position(step), *sum));
        counted
    }

    fn two_streams() -> TraceInfo {
        let trace = MemoryTrace::new("x", SelfAttention::Included).with_stream(0, "0", Vec::new()).expect("sound");
        trace.with_stream(3, "mean", Vec::new()).expect("sound").info().clone()
    }

    #[test]
    fn each_kind_of_sum_is_told_with_its_worst_row_over_all_streams() {
        let (watch, info) = (SumWatch::default(), two_streams());
        watch.keep(0, &counted(&[1.0, 1.1, 0.0, 0.5]));
        watch.keep(1, &counted(&[1.0, 1.0, 1.2, 0.4]));
        let above = "rows that sum to more than one: 2, the worst layer 3 head mean row 2 (1.2000): no softmax gives that \
                     (--normalize rows divides each by its sum)";
        let empty = "rows that hold no weight at all: 1, the worst layer 0 head 0 row 2 (0.0000): they count as rows of \
                     which nothing is kept";
        assert_eq!(watch.warnings(&info), [above, empty]);
        let below = "rows that sum to less than one: 2, the worst layer 3 head mean row 3 (0.4000): legal where a learned \
                     sink takes the rest";
        assert_eq!(watch.remarks(&info), [below]);
    }

    #[test]
    fn a_stream_that_is_read_again_counts_once_and_the_longest_reading_stays() {
        let (watch, info) = (SumWatch::default(), two_streams());
        for sums in [&[2.0, 1.0][..], &[2.0, 1.0, 1.0, 2.0], &[2.0], &[2.0, 1.0, 1.0, 2.0]] {
            watch.keep(0, &counted(sums));
        }
        assert!(watch.warnings(&info)[0].starts_with("rows that sum to more than one: 2, "));
    }

    #[test]
    fn what_rounding_explains_is_not_told() {
        let (watch, info) = (SumWatch::default(), two_streams());
        watch.keep(0, &counted(&[1.0, 1.000_9, 0.999_1]));
        assert!(watch.warnings(&info).is_empty() && watch.remarks(&info).is_empty());
    }
}
