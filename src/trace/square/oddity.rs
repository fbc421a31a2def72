//! The table of what can be odd about rows, and the line that is told of each.

use super::report::{Noticed, Odd};
use super::source::SquareTrace;
use super::stream::Stream;
use crate::position::Position;
use crate::trace::StreamLabel;

/// A way in which rows can be odd, and what is said of it.
struct Oddity {
    of: fn(&Noticed) -> Odd,
    is_worse: fn(f64, f64) -> bool,
    /// Whether it is about the sums of rows.
    is_sum: bool,
    what: &'static str,
    why: &'static str,
}

/// What is warned of, in the order told.
const WARNINGS: [Oddity; 4] = [
    Oddity {
        of: |noticed| noticed.above_one,
        is_worse: |value, worst| value > worst,
        is_sum: true,
        what: "rows that sum to more than one",
        why: "no softmax gives that (--normalize rows divides each by its sum)",
    },
    Oddity {
        of: |noticed| noticed.empty,
        is_worse: |_, _| false,
        is_sum: true,
        what: "rows that hold no weight at all",
        why: "they count as rows of which nothing is kept",
    },
    Oddity {
        of: |noticed| noticed.before_start,
        is_worse: |value, worst| value > worst,
        is_sum: false,
        what: "rows with weight before --start",
        why: "it is left out",
    },
    Oddity {
        of: |noticed| noticed.on_self,
        is_worse: |value, worst| value > worst,
        is_sum: false,
        what: "rows with weight on their own token",
        why: "it is left out, as self is excluded",
    },
];

/// What is remarked on.
const BELOW_ONE: Oddity = Oddity {
    of: |noticed| noticed.below_one,
    is_worse: |value, worst| value < worst,
    is_sum: true,
    what: "rows that sum to less than one",
    why: "legal where a learned sink takes the rest",
};

/// What a user should be warned of.
pub(super) fn warnings(trace: &SquareTrace) -> Vec<String> {
    tell(trace, &WARNINGS)
}

/// What is odd and legal.
pub(super) fn remarks(trace: &SquareTrace) -> Vec<String> {
    tell(trace, &[BELOW_ONE])
}

/// One line for each oddity that was noticed.
fn tell(trace: &SquareTrace, oddities: &[Oddity]) -> Vec<String> {
    let noticed = trace.report.noticed();
    let asked = |oddity: &&Oddity| !(oddity.is_sum && trace.sums_are_free);
    oddities.iter().filter(asked).filter_map(|oddity| tell_one(trace, oddity, &noticed)).collect()
}

fn tell_one(trace: &SquareTrace, oddity: &Oddity, noticed: &[Noticed]) -> Option<String> {
    let rows: usize = noticed.iter().map(|noticed| (oddity.of)(noticed).rows).sum();
    let worst = |(stream, noticed)| Some(((oddity.of)(noticed).worst?, stream));
    let ((value, step), stream): ((f64, Position), &Stream) = trace
        .streams
        .iter()
        .zip(noticed)
        .filter_map(worst)
        .reduce(|worst, other| if (oddity.is_worse)(other.0.0, worst.0.0) { other } else { worst })?;
    let (StreamLabel { layer, head }, Oddity { what, why, .. }) = (&stream.label, oddity);
    Some(format!("{what}: {rows}, the worst layer {layer} head {head} row {step} ({value:.4}): {why}"))
}
