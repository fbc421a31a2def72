//! `keydiff`: keeps keys that point elsewhere than the others.
//!
//! *Idea.* Of keys that are alike few are needed: the one most like the sum of all goes.
//! *Paper.* Park et al.: KeyDiff: Key Similarity-Based KV Cache Eviction for Long-Context LLM Inference in
//! Resource-Constrained Environments, 2025, arXiv 2504.15364.
//! *How this differs from the paper.* The paper works on blocks of a prompt and shields nothing; here one position
//! goes at a time, and the newest are shielded.
//! *Parameters.* `recent-window` (32).
//! *Cost.* No state; two passes over the held keys per eviction.

use super::entry::{Make, PolicyEntry};
use super::norms::l2;
use super::parameter::{RECENT_WINDOW, Value};
use super::sight::Sight;
use super::{Overflow, Policy, choose_lowest};
use crate::needs::Needs;
use crate::position::{Position, Slot};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "keydiff",
    "keeps the keys least like the others, and the newest",
    Make::Policy(|setting| {
        let recent_window = setting.values.count(&RECENT_WINDOW);
        Box::new(KeyDiff { recent_window, units: Vec::new(), sum: Vec::new(), ranks: Vec::new() })
    }),
)
.paper("Park et al.: KeyDiff, 2025, arXiv 2504.15364")
.parameters(&[(&RECENT_WINDOW, Value::Count(32))])
.needs(Needs::KEYS);

struct KeyDiff {
    recent_window: usize,
    /// The held keys over their norms, one after the other.
    units: Vec<f64>,
    /// Their sum.
    sum: Vec<f64>,
    ranks: Vec<f64>,
}

impl KeyDiff {
    fn find_units(&mut self, sight: Sight<'_>, kept: &[Position]) {
        self.units.clear();
        self.sum.clear();
        for position in kept {
            let wide = sight.key(*position).iter().map(|number| f64::from(*number));
            let norm = l2(wide.clone());
            self.sum.resize(wide.len(), 0.0);
            let start = self.units.len();
            self.units.extend(wide.map(|number| if norm == 0.0 { 0.0 } else { number / norm }));
            self.sum.iter_mut().zip(&self.units[start..]).for_each(|(sum, number)| *sum += number);
        }
    }
}

impl Policy for KeyDiff {
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        self.find_units(overflow.sight(), overflow.kept);
        let candidates = overflow.kept.len().saturating_sub(self.recent_window);
        let units = self.units.chunks_exact(self.sum.len().max(1)).take(candidates);
        self.ranks.clear();
        self.ranks.extend(units.map(|unit| -unit.iter().zip(&self.sum).map(|(unit, sum)| unit * sum).sum::<f64>()));
        choose_lowest(&self.ranks, candidates, overflow, victims);
    }
}
