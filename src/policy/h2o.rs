//! `h2o`: keeps the heavy hitters by accumulated attention.
//!
//! *Idea.* Positions that have received much attention so far will receive more.
//! *Paper.* Zhang et al.: H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large
//! Language Models, NeurIPS 2023, arXiv 2306.14048.
//! *How this differs from the paper.* The paper splits the budget evenly between heavy hitters and
//! recent tokens and works on each head of a running model, whose attention is renormalised over
//! the cache; here the window is a parameter and weights come from the full cache
//! (`--view renormalized` shows the other).
//! *Parameters.* `recent-window` (32).
//! *Cost.* One f64 per slot; one addition per slot and step, one pass per eviction.

use super::entry::{Make, PolicyEntry};
use super::lowest_score::{ScoreRule, lowest_score};
use super::parameter::{RECENT_WINDOW, Value};
use super::{Admission, Observation};
use crate::kernels;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "h2o",
    "keeps the most accumulated attention, and the newest",
    Make::Policy(|setting| lowest_score(H2o, setting.values.count(&RECENT_WINDOW), setting.budget)),
)
.paper("Zhang et al.: H2O, NeurIPS 2023, arXiv 2306.14048")
.parameters(&[(&RECENT_WINDOW, Value::Count(32))])
.adds()
.ranked()
.probe("scoreOf");

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
