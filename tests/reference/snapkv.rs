//! `snapkv` and `pyramidkv`: sums over the last rows, pooled over neighbouring slots.

use std::collections::HashMap;

use super::Setting;
use super::cache::{Policy, Seen};
use super::policies::{lowest, outside_window, rank_outside_window};

/// Also `pyramidkv`, which is the same under its layer's share of the budget.
pub struct SnapKv {
    rings: HashMap<u32, Vec<f32>>,
    rows_observed: usize,
    obs_window: usize,
    pool_kernel: usize,
    recent_window: usize,
    layer_share: Option<usize>,
}

impl SnapKv {
    /// Takes `obsWindow` (16), `poolKernel` (7) and `recentWindow` (32).
    pub fn new(setting: &Setting, layer_share: Option<usize>) -> SnapKv {
        SnapKv {
            rings: HashMap::new(),
            rows_observed: 0,
            obs_window: setting.count("obsWindow", 16),
            pool_kernel: setting.count("poolKernel", 7),
            recent_window: setting.count("recentWindow", 32),
            layer_share,
        }
    }

    fn window_score(&self, position: u32) -> f64 {
        let mut sum = 0.0;
        for &weight in &self.rings[&position] {
            sum += f64::from(weight);
        }
        sum
    }

    /// For each slot the highest window score within half a kernel of it.
    fn pooled_scores(&self, kept: &[u32]) -> HashMap<u32, f64> {
        let reach = self.pool_kernel / 2;
        let scores: Vec<f64> = kept.iter().map(|&position| self.window_score(position)).collect();
        let mut pooled = HashMap::new();
        for (slot, &position) in kept.iter().enumerate() {
            let first = slot.saturating_sub(reach);
            let last = (slot + reach).min(kept.len() - 1);
            let neighbours = scores[first..=last].iter().copied();
            pooled.insert(position, neighbours.fold(f64::NEG_INFINITY, f64::max));
        }
        pooled
    }
}

impl Policy for SnapKv {
    fn observe(&mut self, seen: &Seen) {
        let write_at = self.rows_observed % self.obs_window;
        for (&position, &weight) in seen.positions.iter().zip(&seen.weights) {
            self.rings.get_mut(&position).expect("admitted")[write_at] = weight;
        }
        self.rows_observed += 1;
    }

    fn admit(&mut self, position: u32) {
        self.rings.insert(position, vec![0.0; self.obs_window]);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let pooled = self.pooled_scores(kept);
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, |position| pooled[&position])
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        let pooled = self.pooled_scores(kept);
        rank_outside_window(kept, self.recent_window, |position| pooled[&position])
    }

    fn forget(&mut self, position: u32) {
        self.rings.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "windowScoreOf").then(|| self.window_score(position))
    }

    fn own_budget(&self) -> Option<usize> {
        self.layer_share
    }

    fn limit(&self, asked: usize) -> usize {
        self.layer_share.map_or(asked, |share| share.min(asked))
    }
}

/// The budget of one layer: layer 0 gets `pyramidRatio` (4) times what the last one gets, the
/// others lie on the line between, and the average is the budget of the setting; rounded down, in
/// whole numbers of millionths. Takes `layer` (0) and `numLayers` (1).
pub fn pyramid_share(setting: &Setting) -> usize {
    const ONE: u128 = 1_000_000;
    let layers = setting.count("numLayers", 1) as u128;
    if layers == 1 {
        return setting.budget;
    }
    let (layer, budget) = (setting.count("layer", 0) as u128, setting.budget as u128);
    let ratio = (setting.number("pyramidRatio", 4.0) * ONE as f64).round() as u128;
    let share = 2 * budget * (ratio * (layers - 1) - layer * (ratio - ONE)) / ((ratio + ONE) * (layers - 1));
    // A window that is a share of the budget needs no room of its own.
    let window = if setting.is_share("recentWindow") { 0 } else { setting.count("recentWindow", 32) };
    (share as usize).max(window + 1)
}
