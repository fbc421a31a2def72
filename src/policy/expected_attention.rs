//! `expected-attention`: keeps what queries like the last ones would hand on most of.
//!
//! *Idea.* Queries to come are like those that came: if they are normal with this mean and variance, the weight that
//! they pay a key has a closed form. Times the length of the value it says what the position will be worth.
//! *Paper.* Devoto et al.: Expected Attention: KV Cache Compression by Estimating Attention from Future Queries
//! Distribution, 2025, arXiv 2510.00636.
//! *How this differs from the paper.* The paper takes the rotation off the queries, averages it over the next 512
//! positions and uses all queries so far; here the last `query-window` as they were recorded, which needs no knowledge
//! of rotations and measured better.
//! *Parameters.* `query-window` (32), `sinks` (4), `recent-window` (32).
//! *Cost.* `query-window` f64 per slot and query head; one product with every held key per step and query head.

use super::choose::choose_lowest_from;
use super::entry::{Make, PolicyEntry};
use super::norms::dot;
use super::parameter::{QUERY_WINDOW, RECENT_WINDOW, SINKS, Value};
use super::sight::Sight;
use super::{Admission, Overflow, Policy};
use crate::kernels::exp_below_zero;
use crate::needs::Needs;
use crate::position::{Position, Slot};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "expected-attention",
    "keeps what queries like the last ones would hand on most of, and the newest",
    Make::Policy(|setting| {
        let count = |parameter| setting.values.count(parameter);
        Box::new(ExpectedAttention {
            query_window: count(&QUERY_WINDOW),
            sinks: count(&SINKS),
            recent_window: count(&RECENT_WINDOW),
            rings: Vec::new(),
            ranks: Vec::new(),
            weights: Vec::new(),
        })
    }),
)
.paper("Devoto et al.: Expected Attention, 2025, arXiv 2510.00636")
.parameters(&[(&QUERY_WINDOW, Value::Count(32)), (&SINKS, Value::Count(4)), (&RECENT_WINDOW, Value::Count(32))])
.needs(Needs::QUERIES.and(Needs::KEYS).and(Needs::VALUES));

struct ExpectedAttention {
    query_window: usize,
    sinks: usize,
    recent_window: usize,
    /// One for each slot.
    rings: Vec<Ring>,
    ranks: Vec<f64>,
    weights: Vec<f64>,
}

/// The scaled products of a slot's key with the last queries of each head.
#[derive(Clone, Default)]
struct Ring {
    /// By head, then by position of the query modulo the length of the ring.
    scores: Vec<f64>,
    /// The first position whose query is not in it.
    end: usize,
}

impl Ring {
    /// Takes in the queries from `first` to the present row.
    fn fill(&mut self, sight: Sight<'_>, position: Position, first: usize, len: usize) {
        self.scores.resize(sight.heads() * len, 0.0);
        for at in self.end.max(first)..=sight.step.index() {
            let key = sight.key(position);
            for head in 0..sight.heads() {
                let product = dot(sight.query(head, Position(at as u32)), key);
                self.scores[head * len + at % len] = sight.scale() * product;
            }
        }
        self.end = sight.step.index() + 1;
    }

    /// Mean and half the variance over the queries from `first` on, together.
    fn expected(&self, head: usize, len: usize, rows: std::ops::Range<usize>) -> f64 {
        let scores = || rows.clone().map(|at| self.scores[head * len + at % len]);
        let count = rows.len() as f64;
        let mean = scores().sum::<f64>() / count;
        let variance = scores().map(|score| (score - mean) * (score - mean)).sum::<f64>() / count;
        mean + variance / 2.0
    }
}

impl ExpectedAttention {
    /// The expected weight of each slot from `sinks` on, added up over heads.
    fn expect(&mut self, sight: Sight<'_>, kept: &[Position], sinks: usize) {
        let (len, end) = (self.query_window, sight.step.index() + 1);
        let rows = end.saturating_sub(len).max(self.sinks).min(end - 1)..end;
        for (ring, position) in self.rings.iter_mut().zip(kept).skip(sinks) {
            ring.fill(sight, *position, rows.start, len);
        }
        self.ranks.clear();
        self.ranks.resize(kept.len(), 0.0);
        for head in 0..sight.heads() {
            self.weights.clear();
            self.weights.extend(self.rings[sinks..].iter().map(|ring| ring.expected(head, len, rows.clone())));
            softmax(&mut self.weights);
            let heads = sight.heads() as f64;
            self.ranks[sinks..].iter_mut().zip(&self.weights).for_each(|(rank, weight)| *rank += weight / heads);
        }
    }
}

fn softmax(logits: &mut [f64]) {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logits.iter_mut().for_each(|logit| *logit = exp_below_zero(*logit - most));
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|weight| *weight /= sum);
}

impl Policy for ExpectedAttention {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.rings.push(Ring::default());
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let (sight, kept) = (overflow.sight(), overflow.kept);
        let sinks = kept.partition_point(|position| position.index() < self.sinks);
        self.expect(sight, kept, sinks);
        self.ranks.iter_mut().zip(kept).for_each(|(rank, position)| *rank *= sight.value_length(*position));
        let candidates = kept.len().saturating_sub(self.recent_window);
        choose_lowest_from(sinks, &self.ranks, candidates, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        slots.iter().rev().for_each(|slot| drop(self.rings.remove(slot.0)));
    }

    fn slots(&self) -> Option<usize> {
        Some(self.rings.len())
    }

    fn slot_bytes(&self) -> usize {
        size_of::<Ring>() + self.rings.first().map_or(0, |ring| ring.scores.len() * size_of::<f64>())
    }
}
