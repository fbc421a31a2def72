//! Policies that keep one score per slot, protect the newest slots and evict the lowest score.
//!
//! Most policies are that, and differ in what a row does to the scores: a [`ScoreRule`] says so, and
//! [`lowest_score`] makes a policy of it. Ties evict the lower position.

use super::choose::rank_outside_window;
use super::rounding::{Rounded, Rounding};
use super::{Admission, Observation, Overflow, Policy, choose_lowest};
use crate::kernels::Score;
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// How scores come about.
pub trait ScoreRule: Send {
    /// What a slot is judged by.
    type Score: Score + Rounded + Send;

    /// The score of a slot that has just been admitted.
    fn admitted(&self, admission: Admission<'_>) -> Self::Score;

    /// What a step's rows do to the scores, one for each kept position.
    fn observe(&self, scores: &mut [Self::Score], seen: Observation<'_>);

    /// The score as vectors show it; `None` where there is none yet.
    fn probe(&self, score: Self::Score) -> Option<f64>;
}

/// The policy of a rule, for a cache of about `budget` slots; the newest `recent_window` are never
/// evicted.
pub fn lowest_score<R: ScoreRule + 'static>(rule: R, recent_window: usize, budget: usize) -> Box<dyn Policy> {
    Box::new(LowestScore { rule, recent_window, scores: SlotVec::with_capacity(budget) })
}

struct LowestScore<R: ScoreRule> {
    rule: R,
    recent_window: usize,
    scores: SlotVec<R::Score>,
}

impl<R: ScoreRule> Policy for LowestScore<R> {
    fn admit(&mut self, admission: Admission<'_>) {
        self.scores.push(self.rule.admitted(admission));
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.rule.observe(&mut self.scores, seen);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = self.scores.len().saturating_sub(self.recent_window);
        choose_lowest(&self.scores, candidates, overflow, victims);
    }

    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        rank_outside_window(&self.scores, kept, self.recent_window, ranks);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.scores.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.scores.len())
    }

    fn probe(&self, slot: Slot) -> Option<f64> {
        self.rule.probe(self.scores[slot.0])
    }

    fn round_scores(&mut self, to: Rounding) -> bool {
        if R::Score::REAL {
            self.scores.iter_mut().for_each(|score| *score = score.rounded(to));
        }
        R::Score::REAL
    }

    fn slot_bytes(&self) -> usize {
        size_of::<R::Score>()
    }
}
