//! `scissorhands-paper`: counts over a window of history, and drops many positions at once.

use std::collections::HashMap;

use serde_json::Value;

use super::Setting;
use super::cache::{Policy, Seen};
use super::policies::{lowest, outside_window};

/// Remembers for each position, for every row that saw it, whether its weight was low.
pub struct ScissorhandsPaper {
    /// The bits of a position, oldest first; the last one belongs to the last observed row.
    was_low: HashMap<u32, Vec<bool>>,
    history_window: usize,
    recent_window: usize,
    drop: usize,
    count: String,
    threshold: String,
}

impl ScissorhandsPaper {
    /// Takes `historyWindow` (400), `recentWindow` (10), `drop` (50%), `count` (low) and
    /// `threshold` (sequence).
    pub fn new(setting: &Setting) -> ScissorhandsPaper {
        ScissorhandsPaper {
            was_low: HashMap::new(),
            history_window: setting.count("historyWindow", 400),
            recent_window: setting.count("recentWindow", 10),
            drop: drop_amount(setting),
            count: setting.word("count", "low"),
            threshold: setting.word("threshold", "sequence"),
        }
    }

    /// The bits that still count. A slot is seen by every row from its first to its last, so the
    /// last `history_window` bits of a slot belong to the last `history_window` rows.
    fn history(&self, position: u32) -> &[bool] {
        let bits = &self.was_low[&position];
        &bits[bits.len().saturating_sub(self.history_window)..]
    }

    fn lows(&self, position: u32) -> usize {
        self.history(position).iter().filter(|&&low| low).count()
    }

    fn highs(&self, position: u32) -> usize {
        self.history(position).iter().filter(|&&low| !low).count()
    }

    /// A position that no row has seen has nothing against it.
    fn share_of_lows(&self, position: u32) -> f64 {
        match self.history(position).len() {
            0 => 0.0,
            seen_by => self.lows(position) as f64 / seen_by as f64,
        }
    }

    /// The higher, the more worth keeping.
    fn worth(&self, position: u32) -> f64 {
        match self.count.as_str() {
            "low" => -(self.lows(position) as f64),
            "high" => self.highs(position) as f64,
            "fraction" => -self.share_of_lows(position),
            other => panic!("no count is called {other:?}"),
        }
    }
}

impl Policy for ScissorhandsPaper {
    fn observe(&mut self, seen: &Seen) {
        let threshold = match self.threshold.as_str() {
            "sequence" => seen.scale / seen.row_length as f64,
            "kept" => seen.share(),
            other => panic!("no threshold is called {other:?}"),
        };
        for (position, weight) in seen.pairs() {
            let high = weight > threshold;
            self.was_low.get_mut(&position).expect("admitted").push(!high);
        }
    }

    fn admit(&mut self, position: u32) {
        self.was_low.insert(position, Vec::new());
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let candidates = outside_window(kept, self.recent_window);
        let excess = kept.len() - budget;
        let victims = excess.max(self.drop.min(candidates.len()));
        lowest(&candidates, victims, |position| self.worth(position))
    }

    fn forget(&mut self, position: u32) {
        self.was_low.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        match (name, self.count.as_str()) {
            ("votesOf", "high") => Some(self.highs(position) as f64),
            ("votesOf", _) => Some(self.lows(position) as f64),
            _ => None,
        }
    }
}

/// A number is a count; a text such as `50%` is a share of the budget, rounded down, at least one.
fn drop_amount(setting: &Setting) -> usize {
    match setting.params.get("drop") {
        None => percent_of(setting.budget, "50"),
        Some(Value::String(text)) => percent_of(setting.budget, text.strip_suffix('%').expect("a share ends in %")),
        Some(_) => setting.count("drop", 1),
    }
}

/// In whole numbers, so that 33.3 % is what it says.
fn percent_of(budget: usize, percent: &str) -> usize {
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().expect("a share is a decimal number");
    let hundred = 100 * 10_u128.pow(fraction.len() as u32);
    ((budget as u128 * digits / hundred) as usize).max(1)
}
