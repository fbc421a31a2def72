//! `knorm`: keeps short keys.
//!
//! *Idea.* Keys of small norm draw attention; long ones can go.
//! *Paper.* Devoto et al.: A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression, EMNLP 2024,
//! arXiv 2406.11430.
//! *How this differs from the paper.* The paper prunes a prompt once, shields no recent token and leaves the first
//! two layers alone. Here one position goes at a time, and without a window a long key would go the moment that it is
//! written. A model that normalises its keys has no long and short ones: there it does worse than chance.
//! *Parameters.* `recent-window` (32).
//! *Cost.* No state; one pass over the held keys per eviction.

use super::entry::{Make, PolicyEntry};
use super::norms::dot;
use super::parameter::{RECENT_WINDOW, Value};
use super::{Overflow, Policy, choose_lowest};
use crate::needs::Needs;
use crate::position::Slot;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "knorm",
    "keeps the shortest keys, and the newest",
    Make::Policy(|setting| Box::new(Knorm { recent_window: setting.values.count(&RECENT_WINDOW), ranks: Vec::new() })),
)
.paper("Devoto et al.: L2 norm-based compression, EMNLP 2024, arXiv 2406.11430")
.parameters(&[(&RECENT_WINDOW, Value::Count(32))])
.needs(Needs::KEYS);

struct Knorm {
    recent_window: usize,
    ranks: Vec<f64>,
}

impl Policy for Knorm {
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let sight = overflow.sight();
        let candidates = overflow.kept.len().saturating_sub(self.recent_window);
        self.ranks.clear();
        self.ranks.extend(overflow.kept[..candidates].iter().map(|position| {
            let key = sight.key(*position);
            -dot(key, key)
        }));
        choose_lowest(&self.ranks, candidates, overflow, victims);
    }
}
