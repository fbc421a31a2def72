//! `scissorhands`: keeps the positions that were pivotal most often.
//!
//! *Idea.* Importance persists: a position that got more than an even share of attention in many
//! steps will do so again.
//! *Paper.* Liu et al.: Scissorhands: Exploiting the Persistence of Importance Hypothesis for LLM
//! KV Cache Compression at Test Time, NeurIPS 2023, arXiv 2305.17118.
//! *How this differs from the paper.* One reading of it: votes are counted over all observed rows
//! instead of a history window, against the even share of the kept positions instead of the whole
//! sequence, and exactly the excess is evicted instead of a block.
//! *Parameters.* `recent-window` (32).
//! *Cost.* One u32 per slot; one comparison per slot and step, one pass per eviction.

use super::entry::{Make, PolicyEntry};
use super::lowest_score::{ScoreRule, lowest_score};
use super::parameter::{RECENT_WINDOW, Value};
use super::{Admission, Observation};
use crate::kernels::{self, f32_not_above};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "scissorhands",
    "keeps what most often got more than 1 / kept positions, and the newest",
    Make::Policy(|setting| lowest_score(Scissorhands, setting.values.count(&RECENT_WINDOW), setting.budget)),
)
.paper("Liu et al.: Scissorhands, NeurIPS 2023, arXiv 2305.17118")
.parameters(&[(&RECENT_WINDOW, Value::Count(32))])
.adds()
.ranked()
.probe("votesOf");

/// Scores by votes.
struct Scissorhands;

impl ScoreRule for Scissorhands {
    type Score = u32;

    fn admitted(&self, _admission: Admission<'_>) -> u32 {
        0
    }

    fn observe(&self, votes: &mut [u32], seen: Observation<'_>) {
        let share = f32_not_above(seen.even_share());
        seen.rows().for_each(|weights| kernels::count_above(votes, weights, share));
    }

    fn probe(&self, votes: u32) -> Option<f64> {
        Some(f64::from(votes))
    }
}
