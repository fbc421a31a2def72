//! `h2o`: keeps the heavy hitters by accumulated attention.
//!
//! *Idea.* Positions that have received much attention so far will receive more.
//! *Paper.* Zhang et al.: H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large
//! Language Models, NeurIPS 2023, arXiv 2306.14048.
//! *How this differs from the paper.* The paper splits the budget evenly between heavy hitters and
//! recent tokens and works on each head of a running model, whose attention is renormalised over
//! the cache; here the window is a parameter and weights come from the full cache
//! (`--view renormalized` shows the other). `score` mean is not the paper's: it divides what a
//! position received by the rows that showed it, as libraries do (`normalize_scores` of
//! awslabs/keys_values, ObservedAttention of kvpress), so that age alone earns nothing.
//! *Parameters.* `recent-window` (32), `score` (sum).
//! *Cost.* One f64 per slot, and for `score` mean one u32; one addition per slot and step, one pass
//! per eviction.

use super::entry::{Make, PolicyEntry, Setting};
use super::lowest_score::{ScoreRule, lowest_score};
use super::means::Means;
use super::parameter::{RECENT_WINDOW, SCORE, Value};
use super::{Admission, Observation, Overflow, Policy, choose_lowest};
use crate::kernels;
use crate::position::{Position, Slot};

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("h2o", "keeps the most accumulated attention, and the newest", Make::Policy(make))
        .paper("Zhang et al.: H2O, NeurIPS 2023, arXiv 2306.14048")
        .parameters(&[(&RECENT_WINDOW, Value::Count(32)), (&SCORE, Value::Word("sum"))])
        .adds()
        .ranked()
        .probe("scoreOf");

fn make(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let recent_window = values.count(&RECENT_WINDOW);
    match values.word(&SCORE) {
        "mean" => Box::new(MeanH2o { recent_window, means: Means::new(*budget), ranking: Vec::new() }),
        _ => lowest_score(H2o, recent_window, *budget),
    }
}

/// Scores by accumulated attention.
struct H2o;

impl ScoreRule for H2o {
    type Score = f64;

    fn admitted(&self, _admission: Admission<'_>) -> f64 {
        0.0
    }

    fn observe(&self, scores: &mut [f64], seen: Observation<'_>) {
        seen.rows().for_each(|weights| kernels::accumulate(scores, weights));
    }

    fn probe(&self, score: f64) -> Option<f64> {
        Some(score)
    }
}

/// Scores by attention per row; what no row has shown ranks above any score.
struct MeanH2o {
    recent_window: usize,
    means: Means,
    ranking: Vec<f64>,
}

impl Policy for MeanH2o {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.means.admit();
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.means.observe(seen);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = self.means.len().saturating_sub(self.recent_window);
        self.ranking.clear();
        self.ranking.extend((0..candidates).map(|slot| self.means.mean(slot)));
        choose_lowest(&self.ranking, candidates, overflow, victims);
    }

    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        let candidates = kept.len().saturating_sub(self.recent_window);
        ranks.extend((0..kept.len()).map(|slot| (slot < candidates).then(|| self.means.mean(slot))));
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.means.forget(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.means.len())
    }

    fn probe(&self, slot: Slot) -> Option<f64> {
        (self.means.observations(slot.0) > 0).then(|| self.means.mean(slot.0))
    }

    fn slot_bytes(&self) -> usize {
        self.means.slot_bytes()
    }
}
