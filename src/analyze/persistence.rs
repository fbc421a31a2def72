//! Persistence of importance: do the positions that matter late in a sequence matter early already?
//!
//! The rows are cut in halves, `[0, t)` and `[t, 2t)` with `t = floor(T / 2)`. `S0` and `S1` are the
//! pivotal positions of the first and of the second half; the ratio is `|S1 and S0| / |S1|`. Its chance
//! level is `|S0| / n`: what it would be if `S0` had nothing to do with `S1`. A ratio says something only
//! as far as it exceeds that.
//!
//! Three readings of *pivotal* are in circulation:
//!
//! - `union-per-row` (n = t): the weight exceeds `1 / row length` in at least one row of the half. In
//!   some hundreds of rows nearly every position does so once: `S0` is nearly everything, and the ratio is
//!   near one for a random model too. It means nothing.
//! - `union-fixed` (n = t): the weight exceeds `1 / t` in at least one row. Rows shorter than `t` have
//!   larger weights, so that early rows let everything in: it means nothing either.
//! - `equal-visibility` (n = t / 2): the mean of `weight * row length` exceeds 1, over positions below
//!   `t / 2` and the rows `[t / 2, t)` for `S0`, `[t, 2t)` for `S1`. Every position is in every one of
//!   these rows, and a single row cannot lift it. On noise the ratio falls to its chance level; where it
//!   stays near one with a small chance level, importance persists. **This is the reading that means
//!   something.**
//!
//! The control trace `control-2048` shows both: see `tests/analyze/control.rs`. Knows single rows; no policies.

use super::StreamAnalysis;
use crate::trace::{Head, Row, StreamLabel};
use crate::word::Word;
use serde::Serialize;

/// What makes a position pivotal in a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// A weight above 1 / row length, in one row at least.
    UnionPerRow,
    /// A weight above 1 / t, in one row at least.
    UnionFixed,
    /// A mean of weight x row length above 1, over rows that all see the position.
    EqualVisibility,
}

impl Word for Reading {
    const WORDS: &'static [(Reading, &'static str, &'static str)] = &[
        (Reading::UnionPerRow, "union-per-row", "a weight above 1 / row length, in one row at least"),
        (Reading::UnionFixed, "union-fixed", "a weight above 1 / t, in one row at least"),
        (
            Reading::EqualVisibility,
            "equal-visibility",
            "a mean of weight x row length above 1, over rows that all see the position",
        ),
    ];
}

/// How the pivotal sets of the two halves overlap, in one reading.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overlap {
    /// The reading.
    pub reading: Reading,
    /// `|S1 and S0| / |S1|`; absent where `S1` is empty.
    pub ratio: Option<f64>,
    /// `|S0| / n`: the ratio to expect by chance; absent where there are no positions.
    pub chance: Option<f64>,
    /// `|S1| / n`; absent where there are no positions.
    pub second_share: Option<f64>,
    /// n: positions that could be in the sets.
    pub positions: usize,
    /// `|S0|`.
    pub first: usize,
    /// `|S1|`.
    pub second: usize,
    /// `|S1 and S0|`.
    pub both: usize,
}

impl Overlap {
    fn new(reading: Reading, [positions, first, second, both]: [usize; 4]) -> Overlap {
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        Overlap {
            reading,
            ratio: share(both, second),
            chance: share(first, positions),
            second_share: share(second, positions),
            positions,
            first,
            second,
            both,
        }
    }

    fn of_sets(reading: Reading, first: &[bool], second: &[bool]) -> Overlap {
        let count = |set: &[bool]| set.iter().filter(|held| **held).count();
        let both = first.iter().zip(second).filter(|(first, second)| **first && **second).count();
        Overlap::new(reading, [first.len(), count(first), count(second), both])
    }

    fn add(&self, other: &Overlap) -> Overlap {
        let counts = |overlap: &Overlap| [overlap.positions, overlap.first, overlap.second, overlap.both];
        let (own, others) = (counts(self), counts(other));
        Overlap::new(self.reading, std::array::from_fn(|index| own[index] + others[index]))
    }
}

/// Persistence over all streams of a layer: counts are added up.
#[derive(Clone, Debug, Serialize)]
pub struct LayerPersistence {
    /// The layer, with `all` for its head.
    #[serde(rename = "stream")]
    pub label: StreamLabel,
    /// One entry for each reading.
    pub persistence: Vec<Overlap>,
}

/// The layers of which there are several streams.
pub(super) fn of_layers(streams: &[StreamAnalysis]) -> Vec<LayerPersistence> {
    let layers = streams.chunk_by(|a, b| a.label.layer == b.label.layer).filter(|layer| layer.len() > 1);
    layers.map(of_layer).collect()
}

fn of_layer(streams: &[StreamAnalysis]) -> LayerPersistence {
    let add = |sum: Vec<Overlap>, stream: &StreamAnalysis| {
        sum.iter().zip(&stream.persistence).map(|(sum, overlap)| sum.add(overlap)).collect()
    };
    let label = StreamLabel { layer: streams[0].label.layer, head: Head::Word("all".to_owned()) };
    let persistence = streams[1..].iter().fold(streams[0].persistence.clone(), add);
    LayerPersistence { label, persistence }
}

/// Reads the rows of one stream.
pub(super) struct Persistence {
    /// t
    half: usize,
    halves: [Half; 2],
}

/// What one half of the rows says of each position.
struct Half {
    per_row: Vec<bool>,
    fixed: Vec<bool>,
    /// Sums of weight x row length over `rows` rows.
    visible: Vec<f64>,
    rows: u64,
}

impl Persistence {
    pub(super) fn new(positions: usize) -> Persistence {
        let half = positions / 2;
        Persistence { half, halves: [Half::new(half), Half::new(half)] }
    }

    pub(super) fn add(&mut self, Row { step, weights }: Row<'_>) {
        let Some(half) = step.index().checked_div(self.half).and_then(|half| self.halves.get_mut(half)) else { return };
        let share = 1.0 / weights.len() as f64;
        mark(&mut half.per_row, weights, share);
        mark(&mut half.fixed, weights, 1.0 / self.half as f64);
        if step.index() >= self.half / 2 {
            half.add_visible(weights);
        }
    }

    pub(super) fn finish(self) -> Vec<Overlap> {
        let [first, second] = &self.halves;
        vec![
            Overlap::of_sets(Reading::UnionPerRow, &first.per_row, &second.per_row),
            Overlap::of_sets(Reading::UnionFixed, &first.fixed, &second.fixed),
            Overlap::of_sets(Reading::EqualVisibility, &first.above_share(), &second.above_share()),
        ]
    }
}

impl Half {
    fn new(half: usize) -> Half {
        Half { per_row: vec![false; half], fixed: vec![false; half], visible: vec![0.0; half / 2], rows: 0 }
    }

    fn add_visible(&mut self, weights: &[f32]) {
        self.rows += 1;
        for (sum, weight) in self.visible.iter_mut().zip(weights) {
            *sum += f64::from(*weight) * weights.len() as f64;
        }
    }

    fn above_share(&self) -> Vec<bool> {
        self.visible.iter().map(|sum| sum / self.rows as f64 > 1.0).collect()
    }
}

/// Lets the positions in whose weight exceeds the limit.
fn mark(set: &mut [bool], weights: &[f32], limit: f64) {
    for (held, weight) in set.iter_mut().zip(weights) {
        *held |= f64::from(*weight) > limit;
    }
}
