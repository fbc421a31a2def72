//! `random`: the baseline that a policy which looks at attention has to beat.
//!
//! *Idea.* Sinks and the recent window stay; among the others chance decides.
//! *Paper.* None; a control.
//! *Parameters.* `sinks` (4), `recent-window` (32), `seed` (1): one generator a lane, xoshiro128**.
//! *Cost.* No state per slot; constant time per victim besides the removal.

use super::entry::{Make, PolicyEntry, must_not_exceed};
use super::parameter::{RECENT_WINDOW, SEED, SINKS, Value};
use super::streaming_llm::sink_slots;
use super::{Overflow, Policy};
use crate::needs::Needs;
use crate::position::Slot;
use crate::trace::rng::Xoshiro128;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "random",
    "keeps sinks and the newest, and chance decides on the rest",
    Make::Policy(|setting| {
        let count = |parameter| setting.values.count(parameter);
        Box::new(Random::new(count(&SINKS), count(&RECENT_WINDOW), count(&SEED) as u32))
    }),
)
.parameters(&[(&SINKS, Value::Count(4)), (&RECENT_WINDOW, Value::Count(32)), (&SEED, Value::Count(1))])
.needs(Needs::NOTHING)
.check(|setting| must_not_exceed(setting, &SEED, u32::MAX as usize));

/// Evicts uniformly among what is neither sink nor recent, without replacement.
pub struct Random {
    sinks: usize,
    recent_window: usize,
    generator: Xoshiro128,
}

impl Random {
    /// A policy with its own generator.
    pub fn new(sinks: usize, recent_window: usize, seed: u32) -> Random {
        Random { sinks, recent_window, generator: Xoshiro128::new(seed) }
    }
}

impl Policy for Random {
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let first = sink_slots(overflow, self.sinks);
        let end = overflow.kept.len().saturating_sub(self.recent_window);
        if overflow.excess == 1 && first < end {
            victims.push(Slot(first + self.generator.below((end - first) as u32) as usize));
            return;
        }
        let mut candidates: Vec<usize> = (first..end).collect();
        for _ in 0..overflow.excess.min(candidates.len()) {
            let draw = self.generator.below(candidates.len() as u32) as usize;
            victims.push(Slot(candidates.remove(draw)));
        }
        victims.sort_unstable();
    }
}
