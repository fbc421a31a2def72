//! `criticalkv`: keeps the upper half by a host's score, and of the rest what the projection makes most of.
//!
//! *Idea.* The bound of the perturbation behind the projection is met in two stages: half of what may stay is chosen
//! by attention alone, the other half by attention times what the projection makes of the value.
//! *Paper.* Feng et al.: Identify Critical KV Cache in LLM Inference from an Output Perturbation Perspective, 2025,
//! arXiv 2502.03805.
//! *How this differs from the paper.* The paper cuts a prompt once, at its end; here the protected window stands
//! outside the two halves, and one position goes at a time.
//! *Parameters.* `host` (h2o), whose own parameters are its defaults but for `recent-window` (32; tova has none).
//! *Cost.* That of the host, a product of each value with the projection once for all lanes, and a sort per eviction.

use super::Overflow;
use super::entry::{Make, PolicyEntry};
use super::host::{Host, HostedRule, hosted};
use super::parameter::{HOST, RECENT_WINDOW, Value};
use crate::needs::Needs;
use crate::position::Slot;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "criticalkv",
    "keeps the highest scores of a host, and what the projection makes most of",
    Make::Policy(|setting| hosted(setting, CriticalKv { order: Vec::new(), ranks: Vec::new() })),
)
.paper("Feng et al.: CriticalKV, 2025, arXiv 2502.03805")
.parameters(&[(&HOST, Value::Word("h2o")), (&RECENT_WINDOW, Value::Count(32))])
.needs(Needs::KEPT_WEIGHTS.and(Needs::VALUES).and(Needs::PROJECTION));

/// Added to scores of the second stage, so that nothing is worth nothing.
const LEAST: f64 = 1e-4;

struct CriticalKv {
    order: Vec<usize>,
    ranks: Vec<f64>,
}

impl HostedRule for CriticalKv {
    fn choose(&mut self, host: &mut Host, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let (sight, kept) = (overflow.sight(), overflow.kept);
        let free = kept.len().saturating_sub(host.recent_window);
        let scores = host.scores(kept);
        let by = |numbers: &[f64], a: usize, b: usize| numbers[a].partial_cmp(&numbers[b]).expect("no score is NaN");
        // Of equal scores the lower position stands first, and is no part of the upper half.
        self.order.clear();
        self.order.extend(0..free);
        self.order.sort_by(|a, b| by(scores, *a, *b));
        let upper = free.saturating_sub(overflow.excess) / 2;
        self.order.truncate(free - upper);
        self.order.sort_unstable();
        self.ranks.clear();
        let weighed = scores.iter().zip(kept).map(|(score, position)| (score + LEAST) * sight.handed_on(*position));
        self.ranks.extend(weighed);
        // A slot that has not been observed stays, also where its value hands on nothing.
        self.ranks
            .iter_mut()
            .zip(scores)
            .filter(|(_, score)| score.is_infinite())
            .for_each(|(rank, score)| *rank = *score);
        self.order.sort_by(|a, b| by(&self.ranks, *a, *b));
        self.order.truncate(overflow.excess);
        self.order.sort_unstable();
        victims.extend(self.order.iter().copied().map(Slot));
    }
}
