//! What can be odd about how rows were cut down to the positions that exist, and the line told of each.

use super::report::Noticed;
use super::source::SquareTrace;
use crate::trace::watch::{Deviation, Saying, more};

/// A line, and where its figures are.
type Oddity = (Saying, fn(&Noticed) -> Deviation);

/// What is warned of, in the order told.
const WARNINGS: [Oddity; 2] = [
    (Saying { what: "rows with weight before --start", why: "it is left out", is_worse: more }, |noticed| {
        noticed.before_start
    }),
    (
        Saying {
            what: "rows with weight on their own token",
            why: "it is left out, as self is excluded",
            is_worse: more,
        },
        |noticed| noticed.on_self,
    ),
];

/// What a user should be warned of.
pub(super) fn warnings(trace: &SquareTrace) -> Vec<String> {
    let noticed = trace.report.noticed();
    let streams = || trace.streams.iter().map(|stream| &stream.label).zip(&noticed);
    WARNINGS
        .iter()
        .filter_map(|(saying, of)| saying.say(streams().map(|(label, noticed)| (label, of(noticed)))))
        .collect()
}
