//! The policies of engines and libraries that score by more than one number: `h2o` by the mean, `roco` and
//! `g-kv`.

use std::collections::HashMap;

use super::Setting;
use super::cache::{Policy, Seen};
use super::policies::{lowest, outside_window, rank_outside_window};

/// Every weight that a position was seen with: for each observation those of the rows that count.
#[derive(Default)]
struct Weights(HashMap<u32, Vec<Vec<f64>>>);

impl Weights {
    fn observe(&mut self, seen: &Seen) {
        for row in &seen.rows {
            assert_eq!(row.len(), seen.positions.len());
        }
        for (slot, &position) in seen.positions.iter().enumerate() {
            let of_rows: Vec<f64> = seen.rows.iter().map(|row| f64::from(row[slot])).collect();
            self.0.entry(position).or_default().push(of_rows);
        }
    }

    fn of(&self, position: u32) -> &[Vec<f64>] {
        self.0.get(&position).map_or(&[], |weights| weights)
    }

    /// Unobserved ranks above any.
    fn mean(&self, position: u32) -> f64 {
        let weights = self.of(position);
        match weights.len() {
            0 => f64::INFINITY,
            count => weights.iter().flatten().fold(0.0, |sum, weight| sum + weight) / count as f64,
        }
    }

    fn probed(&self, position: u32) -> f64 {
        if self.of(position).is_empty() { -1.0 } else { self.mean(position) }
    }
}

/// `h2o` with `score` mean.
pub struct MeanH2o {
    weights: Weights,
    recent_window: usize,
}

impl MeanH2o {
    /// Takes `recentWindow` (32).
    pub fn new(setting: &Setting) -> MeanH2o {
        MeanH2o { weights: Weights::default(), recent_window: setting.count("recentWindow", 32) }
    }
}

impl Policy for MeanH2o {
    fn observe(&mut self, seen: &Seen) {
        self.weights.observe(seen);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let mean = |position| self.weights.mean(position);
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, mean)
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        rank_outside_window(kept, self.recent_window, |position| self.weights.mean(position))
    }

    fn forget(&mut self, position: u32) {
        self.weights.0.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "scoreOf").then(|| self.weights.probed(position))
    }
}

/// Keeps what varies most, evicts the lowest mean of the rest.
pub struct Roco {
    weights: Weights,
    steady: f64,
    budget: usize,
}

impl Roco {
    /// Takes `steady` (0.3).
    pub fn new(setting: &Setting) -> Roco {
        Roco { weights: Weights::default(), steady: setting.number("steady", 0.3), budget: setting.budget }
    }

    fn within_reach(&self, kept: &[u32]) -> Vec<u32> {
        let stay = (self.steady * self.budget as f64).floor() as usize + 1;
        let mut within_reach = lowest(kept, kept.len() - stay, |position| self.deviation(kept, position));
        within_reach.sort();
        within_reach
    }

    fn deviation(&self, kept: &[u32], position: u32) -> f64 {
        let weights = self.weights.of(position);
        let newer = kept.iter().filter(|&&other| other > position).count();
        if newer < 10 || weights.is_empty() {
            return f64::INFINITY;
        }
        let count = weights.len() as f64;
        let squares = weights.iter().flatten().fold(0.0, |sum, weight| sum + weight * weight);
        let mean = self.weights.mean(position);
        f64::max(0.0, squares / count - mean * mean).sqrt()
    }
}

impl Policy for Roco {
    fn observe(&mut self, seen: &Seen) {
        self.weights.observe(seen);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        lowest(&self.within_reach(kept), kept.len() - budget, |position| self.weights.mean(position))
    }

    fn forget(&mut self, position: u32) {
        self.weights.0.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "meanOf").then(|| self.weights.probed(position))
    }
}

/// The mean over the last rows, against what is left of the score that the last cut gave.
pub struct GKv {
    /// The rows of the window, oldest first.
    rows: Vec<HashMap<u32, f64>>,
    carried: HashMap<u32, f64>,
    obs_window: usize,
    alpha: f64,
}

impl GKv {
    /// Takes `obsWindow` (8) and `alpha` (0.8).
    pub fn new(setting: &Setting) -> GKv {
        let (obs_window, alpha) = (setting.count("obsWindow", 8), setting.number("alpha", 0.8));
        GKv { rows: Vec::new(), carried: HashMap::new(), obs_window, alpha }
    }

    fn score(&self, position: u32, largest: f64) -> f64 {
        let mean = self.window_mean(position);
        let present = if largest > 0.0 { mean / largest } else { mean };
        match self.carried.get(&position) {
            Some(carried) => f64::max(self.alpha * carried, present),
            None => present,
        }
    }

    /// Scores what is outside the window; what stays carries its score.
    fn score_all(&mut self, kept: &[u32]) -> HashMap<u32, f64> {
        let candidates = outside_window(kept, self.obs_window);
        let largest = candidates.iter().map(|&position| self.window_mean(position)).fold(0.0, f64::max);
        let scores: HashMap<u32, f64> =
            candidates.iter().map(|&position| (position, self.score(position, largest))).collect();
        self.carried = scores.clone();
        scores
    }

    fn window_mean(&self, position: u32) -> f64 {
        let sum = self.rows.iter().fold(0.0, |sum, row| sum + row.get(&position).copied().unwrap_or(0.0));
        if self.rows.is_empty() { 0.0 } else { sum / self.rows.len() as f64 }
    }
}

impl Policy for GKv {
    fn observe(&mut self, seen: &Seen) {
        self.rows.push(seen.pairs().into_iter().collect());
        if self.rows.len() > self.obs_window {
            self.rows.remove(0);
        }
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let scores = self.score_all(kept);
        lowest(&outside_window(kept, self.obs_window), kept.len() - budget, |position| scores[&position])
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        let scores = self.score_all(kept);
        kept.iter().map(|position| scores.get(position).copied()).collect()
    }

    fn forget(&mut self, position: u32) {
        self.carried.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "carriedScoreOf").then(|| self.carried.get(&position).copied().unwrap_or(-1.0))
    }
}
