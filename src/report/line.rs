//! From outcomes to report lines: one for each lane, on one stream or on several combined.

use crate::meter;
use crate::replay::{LanePlan, Outcome, Tally};
use crate::trace::{Head, StreamLabel};
use crate::word::Word;

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
    /// How the prompt was treated.
    pub prompt: &'static str,
    /// How the budget was dealt out to layers.
    pub layer_shape: &'a str,
    /// Which streams the line is about.
    pub streams: Streams<'a>,
    /// Sums and counts.
    pub tally: Tally,
    /// Mass per row that `oracle` retains at the same budget, where it is in the run.
    pub oracle: Option<f64>,
    /// The same for `optimal`.
    pub optimal: Option<f64>,
    /// The cache that retained least, where several are combined.
    pub worst: Option<(f64, &'a StreamLabel)>,
}

/// The streams that a line is about: those of a layer and a head, `None` being all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streams<'a> {
    /// The layer.
    pub layer: Option<u32>,
    /// The head.
    pub head: Option<&'a Head>,
}

/// What lines are made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// One line for each layer, its heads combined
    Layer,
    /// One line for each head, its layers combined
    Head,
}

impl Word for By {
    const WORDS: &'static [(By, &'static str, &'static str)] = &[
        (By::Layer, "layer", "one line for each layer, its heads combined"),
        (By::Head, "head", "one line for each head, its layers combined"),
    ];
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
    /// How the prompt was treated.
    pub prompt: &'static str,
    /// How the budget was dealt out to layers, as it was asked for.
    pub layer_shape: &'a str,
    /// What came out.
    pub outcomes: &'a [Outcome],
}

impl<'a> Replayed<'a> {
    /// One line for each lane, combined over all caches.
    pub fn combined(self) -> Vec<Line<'a>> {
        match self.outcomes {
            [only] => self.of_cache(only),
            all => self.over(Streams::default(), &all.iter().collect::<Vec<_>>()),
        }
    }

    /// One line for each cache and lane.
    pub fn per_stream(self) -> Vec<Line<'a>> {
        self.outcomes.iter().flat_map(|outcome| self.of_cache(outcome)).collect()
    }

    /// One line for each layer or head, and lane.
    pub fn by(self, by: By) -> Vec<Line<'a>> {
        let mut groups: Vec<(Streams<'a>, Vec<&'a Outcome>)> = Vec::new();
        for outcome in self.outcomes {
            let label = &outcome.cache.label;
            let streams = match by {
                By::Layer => Streams { layer: Some(label.layer), head: None },
                By::Head => Streams { layer: None, head: Some(&label.head) },
            };
            let same = |(known, _): &&mut (Streams<'a>, _)| known.layer == streams.layer && known.head == streams.head;
            match groups.iter_mut().find(same) {
                Some((_, outcomes)) => outcomes.push(outcome),
                None => groups.push((streams, vec![outcome])),
            }
        }
        groups.sort_by_key(|(streams, _)| (streams.layer, streams.head));
        groups.iter().flat_map(|(streams, outcomes)| self.over(*streams, outcomes)).collect()
    }

    fn of_cache(self, outcome: &'a Outcome) -> Vec<Line<'a>> {
        let label = &outcome.cache.label;
        self.over(Streams { layer: Some(label.layer), head: Some(&label.head) }, &[outcome])
    }

    /// One line for each lane, over some caches.
    fn over(self, streams: Streams<'a>, outcomes: &[&'a Outcome]) -> Vec<Line<'a>> {
        let Replayed { trace, positions, heavy_hitters, view, prompt, layer_shape, .. } = self;
        let line = |(index, lane): (usize, &'a LanePlan)| Line {
            trace,
            positions,
            lane,
            heavy_hitters,
            view,
            prompt,
            layer_shape,
            streams,
            tally: merged(outcomes, index),
            oracle: self.retained_by("oracle", lane.budget, outcomes),
            optimal: self.retained_by("optimal", lane.budget, outcomes),
            worst: if outcomes.len() > 1 { worst(outcomes, index) } else { None },
        };
        self.lanes.iter().enumerate().map(line).collect()
    }
}

impl Replayed<'_> {
    /// Mass per row that a bound retains at a budget over some caches, where it is in the run.
    fn retained_by(&self, bound: &str, budget: Option<usize>, outcomes: &[&Outcome]) -> Option<f64> {
        let same = |lane: &LanePlan| lane.entry.name == bound && lane.budget == budget;
        merged(outcomes, self.lanes.iter().position(same)?).figure("retained_mass")
    }
}

fn merged(outcomes: &[&Outcome], lane: usize) -> Tally {
    let start = if outcomes.is_empty() { Tally::of_no_cache(&meter::defaults()) } else { Tally::default() };
    outcomes.iter().fold(start, |mut sum, outcome| {
        sum.merge(&outcome.tallies[lane]);
        sum
    })
}

/// The cache with the least retained mass; the first of those that tie.
fn worst<'a>(outcomes: &[&'a Outcome], lane: usize) -> Option<(f64, &'a StreamLabel)> {
    let retained = |outcome: &Outcome| outcome.tallies[lane].figure("retained_mass");
    let masses = outcomes.iter().filter_map(|outcome| Some((retained(outcome)?, &outcome.cache.label)));
    masses.reduce(|least, next| if next.0 < least.0 { next } else { least })
}
