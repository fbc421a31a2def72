//! From outcomes to report lines: one for each lane, on one stream or on several combined.

use crate::replay::{LanePlan, Outcome, Tally};
use crate::trace::StreamLabel;

/// One line of a report.
pub struct Line<'a> {
    /// Name of the trace.
    pub trace: &'a str,
    /// Positions of the trace.
    pub positions: usize,
    /// The lane's place in the run.
    pub lane: &'a LanePlan,
    /// k of the heavy-hitter recall.
    pub heavy_hitters: usize,
    /// What policies saw.
    pub view: &'static str,
    /// The cache, or `None` where several are combined.
    pub cache: Option<&'a StreamLabel>,
    /// Sums and counts.
    pub tally: Tally,
    /// The cache that retained least, where several are combined.
    pub worst: Option<(f64, &'a StreamLabel)>,
}

/// What is common to the lines of one replay.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// Name of the trace.
    pub trace: &'a str,
    /// Positions of the trace.
    pub positions: usize,
    /// The lanes, in the order of the tallies.
    pub lanes: &'a [LanePlan],
    /// k of the heavy-hitter recall.
    pub heavy_hitters: usize,
    /// What policies saw.
    pub view: &'static str,
    /// What came out.
    pub outcomes: &'a [Outcome],
}

impl<'a> Replayed<'a> {
    /// One line for each lane, combined over all caches.
    pub fn combined(self) -> Vec<Line<'a>> {
        if let [only] = self.outcomes {
            return self.of_cache(only);
        }
        (0..self.lanes.len()).map(|lane| self.line(lane, None, merged(self.outcomes, lane))).collect()
    }

    /// One line for each cache and lane.
    pub fn per_stream(self) -> Vec<Line<'a>> {
        self.outcomes.iter().flat_map(|outcome| self.of_cache(outcome)).collect()
    }

    fn of_cache(self, outcome: &'a Outcome) -> Vec<Line<'a>> {
        let line = |(lane, tally): (usize, &Tally)| self.line(lane, Some(&outcome.cache.label), tally.clone());
        outcome.tallies.iter().enumerate().map(line).collect()
    }

    fn line(self, lane: usize, cache: Option<&'a StreamLabel>, tally: Tally) -> Line<'a> {
        let Replayed { trace, positions, heavy_hitters, view, .. } = self;
        let worst = if cache.is_some() { None } else { worst(self.outcomes, lane) };
        Line { trace, positions, lane: &self.lanes[lane], heavy_hitters, view, cache, tally, worst }
    }
}

fn merged(outcomes: &[Outcome], lane: usize) -> Tally {
    outcomes.iter().fold(Tally::default(), |mut sum, outcome| {
        sum.merge(&outcome.tallies[lane]);
        sum
    })
}

/// The cache with the least retained mass; the first of those that tie.
fn worst(outcomes: &[Outcome], lane: usize) -> Option<(f64, &StreamLabel)> {
    let retained = |outcome: &Outcome| {
        let tally = &outcome.tallies[lane];
        (tally.rows > 0).then(|| tally.retained / tally.rows as f64)
    };
    let masses = outcomes.iter().filter_map(|outcome| Some((retained(outcome)?, &outcome.cache.label)));
    masses.reduce(|least, next| if next.0 < least.0 { next } else { least })
}
