//! `g-kv`: what the last rows attend to, and what earlier cuts thought of it.
//!
//! *Idea.* A short window of rows is noisy: each cut remembers the scores of what it kept, and a
//! position that mattered before fades instead of falling.
//! *Paper.* Liao et al.: G-KV: Decoding-Time KV Cache Eviction with Global Attention, 2025, arXiv
//! 2512.00504.
//! *How this differs from the paper.* Without its redundancy term, which needs keys, and without its
//! optional pooling. Rows are as recorded, not a softmax over the survivors. The paper cuts every 128
//! tokens; here the schedule says when (`--evict-every`), and as `alpha` is applied at each cut it
//! decides how fast the past fades: say both. Query heads that share a cache are combined by their
//! maximum unless `--combine` says otherwise.
//! *Parameters.* `obs-window` (8): rows that a score is the mean of, and newest slots that are never
//! evicted; `alpha` (0.8).
//! *Cost.* `obs-window` f32 and one f64 per slot; a copy per slot and step, `obs-window` additions
//! and a few passes per cut.

use super::entry::{Make, PolicyEntry, Setting};
use super::parameter::{ALPHA, OBS_WINDOW, Value};
use super::snapkv::ring_is_possible;
use super::{Admission, Observation, Overflow, Policy, choose_lowest};
use crate::keeping::Combine;
use crate::kernels;
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("g-kv", "keeps what the last rows attend to or earlier cuts rated high", Make::Policy(make))
        .paper("Liao et al.: G-KV, 2025, arXiv 2512.00504")
        .parameters(&[(&OBS_WINDOW, Value::Count(8)), (&ALPHA, Value::Real(0.8))])
        .check(check)
        .ranked()
        .combined_by(Combine::Max)
        .probe("carriedScoreOf");

fn check(setting: &Setting) -> Result<(), String> {
    let (window, budget) = (setting.values.count(&OBS_WINDOW), setting.budget);
    if window >= budget {
        return Err(format!(
            "obs-window {window} leaves nothing to evict at budget {budget}: it must be below the budget"
        ));
    }
    ring_is_possible(setting)
}

fn make(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let window = values.count(&OBS_WINDOW);
    Box::new(GKv {
        alpha: values.real(&ALPHA),
        rings: vec![SlotVec::with_capacity(*budget); window],
        next: 0,
        observed: 0,
        carried: SlotVec::with_capacity(*budget),
        scores: Vec::new(),
    })
}

/// A slot that no cut has scored. It is below every score, so that what is left of it counts for
/// nothing.
const NOT_CARRIED: f64 = -1.0;

struct GKv {
    alpha: f64,
    /// One sequence of slots per place in the ring.
    rings: Vec<SlotVec<f32>>,
    /// The place to be written next, which is the oldest.
    next: usize,
    /// Rows observed, as many as the ring holds at most.
    observed: usize,
    /// The score that the last cut gave each slot.
    carried: SlotVec<f64>,
    scores: Vec<f64>,
}

impl GKv {
    /// Scores the slots outside the window; survivors will carry what they get.
    fn score(&mut self) {
        let candidates = self.carried.len().saturating_sub(self.rings.len());
        self.scores.clear();
        self.scores.resize(candidates, 0.0);
        let (newer, older) = self.rings.split_at(self.next);
        older.iter().chain(newer).for_each(|ring| kernels::accumulate(&mut self.scores, &ring[..candidates]));
        let observed = self.observed.max(1) as f64;
        self.scores.iter_mut().for_each(|score| *score /= observed);
        let largest = self.scores.iter().copied().fold(0.0, f64::max);
        for (score, carried) in self.scores.iter_mut().zip(self.carried.iter_mut()) {
            let present = if largest > 0.0 { *score / largest } else { *score };
            *score = present.max(self.alpha * *carried);
            *carried = *score;
        }
    }
}

impl Policy for GKv {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.rings.iter_mut().for_each(|ring| ring.push(0.0));
        self.carried.push(NOT_CARRIED);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.rings[self.next].copy_from_slice(seen.weights);
        self.next = (self.next + 1) % self.rings.len();
        self.observed = (self.observed + 1).min(self.rings.len());
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        self.score();
        choose_lowest(&self.scores, self.scores.len(), overflow, victims);
    }

    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        self.score();
        ranks.extend(self.scores.iter().copied().map(Some));
        ranks.resize(kept.len(), None);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.rings.iter_mut().for_each(|ring| ring.remove(slots));
        self.carried.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.carried.len())
    }

    /// The score that the last cut gave a slot.
    fn probe(&self, slot: Slot) -> Option<f64> {
        let carried = self.carried[slot.0];
        (carried != NOT_CARRIED).then_some(carried)
    }

    fn slot_bytes(&self) -> usize {
        self.rings.len() * size_of::<f32>() + size_of::<f64>()
    }
}
