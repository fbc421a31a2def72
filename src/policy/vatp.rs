//! `vatp`: weighs a host's score with the size of the value.
//!
//! *Idea.* What a position hands on is its weight times its value: attention to small values is attention to nothing.
//! *Paper.* Guo et al.: Attention Score is not All You Need for Token Importance Indicator in KV Cache Reduction:
//! Value Also Matters, EMNLP 2024, arXiv 2406.12335.
//! *How this differs from the paper.* The paper keeps 20 sinks, and its "Scissorhands" sums the last 400 rows and does
//! not vote.
//! *Parameters.* `host` (h2o), whose own parameters are its defaults but for `recent-window` (32; tova has none);
//! `sinks` (4).
//! *Cost.* That of the host, and one pass over the held values per eviction.

use super::Overflow;
use super::choose::choose_lowest_from;
use super::entry::{Make, PolicyEntry};
use super::host::{Host, HostedRule, hosted};
use super::norms::l1;
use super::parameter::{HOST, RECENT_WINDOW, SINKS, Value};
use crate::needs::Needs;
use crate::position::Slot;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "vatp",
    "keeps the highest score of a host times the size of the value",
    Make::Policy(|setting| {
        let sinks = setting.values.count(&SINKS);
        hosted(setting, Vatp { sinks, ranks: Vec::new() })
    }),
)
.paper("Guo et al.: Value Also Matters, EMNLP 2024, arXiv 2406.12335")
.parameters(&[(&HOST, Value::Word("h2o")), (&SINKS, Value::Count(4)), (&RECENT_WINDOW, Value::Count(32))])
.needs(Needs::KEPT_WEIGHTS.and(Needs::VALUES));

struct Vatp {
    sinks: usize,
    ranks: Vec<f64>,
}

impl HostedRule for Vatp {
    fn choose(&mut self, host: &mut Host, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let (sight, kept) = (overflow.sight(), overflow.kept);
        let rank =
            |(position, score): (_, &f64)| if score.is_infinite() { *score } else { score * l1(sight.value(position)) };
        self.ranks.clear();
        self.ranks.extend(kept.iter().copied().zip(host.scores(kept)).map(rank));
        let sinks = kept.partition_point(|position| position.index() < self.sinks);
        let candidates = kept.len().saturating_sub(host.recent_window);
        choose_lowest_from(sinks, &self.ranks, candidates, overflow, victims);
    }
}
