//! `lru`: evicts what was touched longest ago.
//!
//! *Idea.* The classic baseline of caches: what was used lately will be used again. A row touches a
//! position when it gives it more than `touch` times the even share of the kept positions; a position
//! is also touched by its own admission, as by the row of its step.
//! *Paper.* None; least recently used, for weights instead of accesses.
//! *How this differs from a cache of pages.* There an access is a fact; here `touch` decides how much
//! attention counts as one. One row may touch many positions, which then tie: the lower goes first.
//! *Parameters.* `touch` (0.5), `recent-window` (32).
//! *Cost.* One u32 per slot; one comparison per slot and step, one pass per eviction.

use super::entry::{Make, PolicyEntry};
use super::lowest_score::{ScoreRule, lowest_score};
use super::parameter::{RECENT_WINDOW, TOUCH, Value};
use super::{Admission, Observation};
use crate::kernels::{self, f32_not_above};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "lru",
    "keeps what rows have touched last, and the newest",
    Make::Policy(|setting| {
        let touch = setting.values.real(&TOUCH);
        lowest_score(Lru { touch }, setting.values.count(&RECENT_WINDOW), setting.budget)
    }),
)
.parameters(&[(&TOUCH, Value::Real(0.5)), (&RECENT_WINDOW, Value::Count(32))])
.ranked()
.probe("lastTouchOf");

/// Scores by the last step that touched.
struct Lru {
    touch: f64,
}

impl ScoreRule for Lru {
    type Score = u32;

    fn admitted(&self, admission: Admission<'_>) -> u32 {
        admission.position.0
    }

    fn observe(&self, touched: &mut [u32], seen: Observation<'_>) {
        let threshold = f32_not_above(self.touch * seen.even_share());
        kernels::mark_above(touched, seen.weights, threshold, seen.step.0);
    }

    fn probe(&self, touched: u32) -> Option<f64> {
        Some(f64::from(touched))
    }
}
