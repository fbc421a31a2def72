//! `caote`: evicts what moves the output least.
//!
//! *Idea.* With the host's scores as weights, what is held hands on one vector; without a slot it hands on another.
//! How far they lie apart is the error that evicting the slot makes.
//! *Paper.* Goel et al.: CAOTE: KV Cache Eviction for LLMs via Attention Output Error-Based Token Selection, 2025,
//! arXiv 2504.14051.
//! *How this differs from the paper.* The weights are the mean over the cache's query heads. With one query head and
//! host tova it is the eviction that moves the output of the present row least.
//! *Parameters.* `host` (tova), whose own parameters are its defaults but for `recent-window` (32; tova has none).
//! *Cost.* That of the host, and two passes over the held values per eviction.

use super::entry::{Make, PolicyEntry};
use super::host::{Host, HostedRule, hosted};
use super::norms::l2;
use super::parameter::{HOST, RECENT_WINDOW, Value};
use super::sight::Sight;
use super::{Overflow, choose_lowest};
use crate::needs::Needs;
use crate::position::{Position, Slot};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "caote",
    "evicts what moves the weighted sum of the values least",
    Make::Policy(|setting| hosted(setting, Caote { output: Vec::new(), ranks: Vec::new() })),
)
.paper("Goel et al.: CAOTE, 2025, arXiv 2504.14051")
.parameters(&[(&HOST, Value::Word("tova")), (&RECENT_WINDOW, Value::Count(32))])
.needs(Needs::KEPT_WEIGHTS.and(Needs::VALUES));

struct Caote {
    /// What is held hands on.
    output: Vec<f64>,
    ranks: Vec<f64>,
}

impl Caote {
    fn rank(&mut self, scores: &[f64], sight: Sight<'_>, kept: &[Position]) {
        let total: f64 = scores.iter().filter(|score| score.is_finite()).sum();
        self.ranks.clear();
        if total == 0.0 {
            return self.ranks.extend_from_slice(scores);
        }
        self.output.clear();
        for (position, score) in kept.iter().zip(scores).filter(|(_, score)| score.is_finite()) {
            let value = sight.value(*position);
            self.output.resize(value.len(), 0.0);
            let weight = score / total;
            self.output.iter_mut().zip(value).for_each(|(sum, number)| *sum += weight * f64::from(*number));
        }
        for (position, score) in kept.iter().zip(scores) {
            let weight = score / total;
            if score.is_infinite() || weight == 1.0 {
                self.ranks.push(f64::INFINITY);
                continue;
            }
            let value = sight.value(*position);
            let away = l2(self.output.iter().zip(value).map(|(output, number)| output - f64::from(*number)));
            self.ranks.push(weight / (1.0 - weight) * away);
        }
    }
}

impl HostedRule for Caote {
    fn choose(&mut self, host: &mut Host, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        self.rank(host.scores(overflow.kept), overflow.sight(), overflow.kept);
        let candidates = self.ranks.len().saturating_sub(host.recent_window);
        choose_lowest(&self.ranks, candidates, overflow, victims);
    }
}
