//! `tova`: keeps what the newest token attends to.
//!
//! *Idea.* Token omission via attention: the position with the least weight in the present row goes.
//! *Paper.* Oren et al.: Transformers are Multi-State RNNs, EMNLP 2024, arXiv 2401.06104.
//! *How this differs from the paper.* The paper averages over the heads of a layer; here a cache is
//! what the trace says: a head, a group of heads, or their average. A position that no row has
//! shown yet ranks above any weight (where rows exclude the token itself, that is the newest).
//! *Parameters.* None: it has no recent window, recency is in the signal.
//! *Cost.* One f32 per slot; one copy per slot and step, one pass per eviction.

use super::entry::{Make, PolicyEntry};
use super::lowest_score::{ScoreRule, lowest_score};
use super::{Admission, Observation};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "tova",
    "keeps what the newest token attends to",
    Make::Policy(|setting| lowest_score(Tova, 0, setting.budget)),
)
.paper("Oren et al.: Transformers are Multi-State RNNs, EMNLP 2024, arXiv 2401.06104")
.ranked()
.probe("lastAttentionOf");

/// Ranks above every weight: rows hold finite weights only.
const UNOBSERVED: f32 = f32::INFINITY;

/// Scores by the last weight seen.
struct Tova;

impl ScoreRule for Tova {
    type Score = f32;

    fn admitted(&self, _admission: Admission<'_>) -> f32 {
        UNOBSERVED
    }

    fn observe(&self, last: &mut [f32], seen: Observation<'_>) {
        last.copy_from_slice(seen.weights);
    }

    fn probe(&self, last: f32) -> Option<f64> {
        (last != UNOBSERVED).then_some(f64::from(last))
    }
}
