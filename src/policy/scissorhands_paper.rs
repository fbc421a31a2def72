//! `scissorhands-paper`: drops many at once, those that were low most often in a window of history.
//!
//! *Idea.* A position that got no more than an even share of attention in most of the recent past
//! is not pivotal and will not become so.
//! *Paper.* Liu et al.: Scissorhands: Exploiting the Persistence of Importance Hypothesis for LLM
//! KV Cache Compression at Test Time, NeurIPS 2023, arXiv 2305.17118, algorithm 2.
//! *How this differs from the paper.* The listing contradicts itself: its comment counts how often
//! a position was *low*, its test is "above the threshold", and what it drops is the highest count;
//! taken by the letter it would throw away what matters most. `count` low follows the comment and
//! the idea, hence it is the default: each row in which a weight is not above the threshold counts
//! against its position. `count` high drops the fewest rows above the threshold, which also
//! penalises positions that few rows have seen; `fraction` divides the lows by the rows that saw
//! the position. The drop amount is a share of the budget here, the paper gives half of it; the
//! threshold is 1 / row length (`sequence`) as in the paper, or 1 / kept positions (`kept`). Rows
//! come from the full cache, as everywhere in this crate. Budgets of layers are the replay's affair
//! (`CacheBudgets`).
//! *Parameters.* `history-window` (400 observed rows), `recent-window` (10), `drop` (50%), `count`
//! (low), `threshold` (sequence).
//! *Cost.* One bit per slot and row of the window, and 12 bytes per slot; one bit exchanged per slot
//! and step, one sort per drop.

use super::entry::{Make, PolicyEntry, Setting};
use super::history::History;
use super::parameter::{COUNT, DROP, HISTORY_WINDOW, RECENT_WINDOW, THRESHOLD, Value};
use super::share::Share;
use super::{Admission, Observation, Overflow, Policy, choose_lowest};
use crate::kernels::f32_not_above;
use crate::position::Slot;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "scissorhands-paper",
    "drops many at once: what was low most often in a window of history",
    Make::Policy(make),
)
.paper("Liu et al.: Scissorhands, NeurIPS 2023, arXiv 2305.17118")
.parameters(&[
    (&HISTORY_WINDOW, Value::Count(400)),
    (&RECENT_WINDOW, Value::Count(10)),
    (&DROP, Value::Share(Share::percent(50))),
    (&COUNT, Value::Word("low")),
    (&THRESHOLD, Value::Word("sequence")),
])
.probe("votesOf");

fn make(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let setting = PaperSetting {
        history_window: values.count(&HISTORY_WINDOW),
        recent_window: values.count(&RECENT_WINDOW),
        drop: values.count_of(&DROP, *budget),
        count: Count::from_word(values.word(&COUNT)).expect("the parameter admits known words only"),
        threshold: Threshold::from_word(values.word(&THRESHOLD)).expect("the parameter admits known words only"),
    };
    Box::new(ScissorhandsPaper::new(setting, *budget))
}

/// What is counted over the history window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// The most lows go.
    Low,
    /// The fewest highs go.
    High,
    /// The largest share of lows among the rows that saw the position goes.
    Fraction,
}

impl Count {
    /// Reads the parameter's word.
    pub fn from_word(word: &str) -> Option<Count> {
        match word {
            "low" => Some(Count::Low),
            "high" => Some(Count::High),
            "fraction" => Some(Count::Fraction),
            _ => None,
        }
    }
}

/// Whose even share a weight is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// 1 / row length.
    Sequence,
    /// 1 / kept positions.
    Kept,
}

impl Threshold {
    /// Reads the parameter's word.
    pub fn from_word(word: &str) -> Option<Threshold> {
        match word {
            "sequence" => Some(Threshold::Sequence),
            "kept" => Some(Threshold::Kept),
            _ => None,
        }
    }

    fn of(self, seen: Observation<'_>) -> f64 {
        match self {
            Threshold::Sequence => seen.even_share_of_row(),
            Threshold::Kept => seen.even_share(),
        }
    }
}

/// How the policy is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaperSetting {
    /// Last observed rows that count.
    pub history_window: usize,
    /// Newest slots that stay.
    pub recent_window: usize,
    /// Slots that go at once, where the recent window leaves as many.
    pub drop: usize,
    /// What is counted.
    pub count: Count,
    /// What low means.
    pub threshold: Threshold,
}

/// Drops the slots that were low most often, many at once.
pub struct ScissorhandsPaper {
    setting: PaperSetting,
    history: History,
    /// The higher, the more worth keeping; one value per candidate.
    worth: Vec<f64>,
}

impl ScissorhandsPaper {
    /// A policy for a cache of about `budget` slots.
    pub fn new(setting: PaperSetting, budget: usize) -> ScissorhandsPaper {
        ScissorhandsPaper { setting, history: History::new(setting.history_window, budget), worth: Vec::new() }
    }

    fn highs(&self, slot: Slot) -> f64 {
        (self.history.seen(slot) - u64::from(self.history.lows(slot))) as f64
    }

    fn worth(&self, slot: Slot) -> f64 {
        let lows = f64::from(self.history.lows(slot));
        match self.setting.count {
            Count::Low => -lows,
            Count::High => self.highs(slot),
            // A position that no row has seen has nothing against it.
            Count::Fraction => -lows / self.history.seen(slot).max(1) as f64,
        }
    }
}

impl Policy for ScissorhandsPaper {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.history.admit();
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.history.record(seen.weights, f32_not_above(self.setting.threshold.of(seen)));
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = self.history.len().saturating_sub(self.setting.recent_window);
        let mut worth = std::mem::take(&mut self.worth);
        worth.clear();
        worth.extend((0..candidates).map(|slot| self.worth(Slot(slot))));
        let excess = overflow.excess.max(self.setting.drop.min(candidates));
        choose_lowest(&worth, candidates, Overflow { excess, ..overflow }, victims);
        self.worth = worth;
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.history.forget(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.history.len())
    }

    /// Rows of the history window in which the slot was high where highs are counted, low else.
    fn probe(&self, slot: Slot) -> Option<f64> {
        Some(match self.setting.count {
            Count::High => self.highs(slot),
            Count::Low | Count::Fraction => f64::from(self.history.lows(slot)),
        })
    }

    fn slot_bytes(&self) -> usize {
        self.history.slot_bytes()
    }
}
