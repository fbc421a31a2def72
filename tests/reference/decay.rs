//! `decay`: a score that fades as rows go by.

use std::collections::HashMap;

use super::Setting;
use super::cache::{Policy, Seen};
use super::policies::{lowest, outside_window, rank_outside_window};

/// `score = gamma * score + signal(weight)`, 0 when admitted; the lowest score goes.
pub struct Decay {
    score: HashMap<u32, f64>,
    gamma: f64,
    signal: String,
    recent_window: usize,
}

impl Decay {
    /// Takes `gamma` (0.95), `signal` (weight) and `recentWindow` (32).
    pub fn new(setting: &Setting) -> Decay {
        Decay {
            score: HashMap::new(),
            gamma: setting.number("gamma", 0.95),
            signal: setting.word("signal", "weight"),
            recent_window: setting.count("recentWindow", 32),
        }
    }

    fn signal_of(&self, weight: f64, share: f64) -> f64 {
        match self.signal.as_str() {
            "weight" => weight,
            "vote" if weight > share => 1.0,
            "vote" => 0.0,
            "sqrt" => weight.sqrt(),
            "square" => weight * weight,
            other => panic!("no signal is called {other:?}"),
        }
    }
}

impl Policy for Decay {
    fn observe(&mut self, seen: &Seen) {
        for (position, weight) in seen.pairs() {
            let faded = self.gamma * self.score[&position];
            self.score.insert(position, faded + self.signal_of(weight, seen.share()));
        }
    }

    fn admit(&mut self, position: u32) {
        self.score.insert(position, 0.0);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, |position| self.score[&position])
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        rank_outside_window(kept, self.recent_window, |position| self.score[&position])
    }

    fn forget(&mut self, position: u32) {
        self.score.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "scoreOf").then(|| self.score[&position])
    }
}
