//! `scissorhands-cross-layer`: the layers of one head are served by one importance vector.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::cache::{Cache, Policy, Seen};
use super::policies::{lowest, outside_window};
use super::replay::Lane;
use super::{Outcome, SelfKind, Setting};

/// The importance of every position met so far; 0 until a layer has seen it.
type Shared = Rc<RefCell<HashMap<u32, f64>>>;

struct LayerPolicy {
    shared: Shared,
    alpha: f64,
    recent_window: usize,
}

impl Policy for LayerPolicy {
    fn observe(&mut self, seen: &Seen) {
        let mut shared = self.shared.borrow_mut();
        for (position, weight) in seen.pairs() {
            let importance = shared.entry(position).or_insert(0.0);
            *importance = self.alpha * *importance + (1.0 - self.alpha) * weight;
        }
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let shared = self.shared.borrow();
        let importance = |position| shared.get(&position).copied().unwrap_or(0.0);
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, importance)
    }
}

/// Replays the layers of one head together, in the order given: at each step the first layer acts,
/// then the second, and so on. Takes `alpha` (0.5) and `recentWindow` (32); the budget is that of
/// each layer.
pub fn replay_cross_layer(
    streams: &[Vec<Option<Vec<f32>>>],
    kind: SelfKind,
    setting: &Setting,
    k: usize,
    renormalized: bool,
) -> Vec<Outcome> {
    let lane = |cache| Lane::new(cache, kind, setting.budget);
    let mut lanes: Vec<Lane> = caches_of_layers(setting, streams.len()).into_iter().map(lane).collect();
    let row_count = streams.iter().map(Vec::len).max().unwrap_or(0);
    for index in 0..row_count {
        for (lane, rows) in lanes.iter_mut().zip(streams) {
            // A shorter stream is over; the others go on.
            if let Some(row) = rows.get(index) {
                lane.step(row.as_deref(), k, renormalized);
            }
        }
    }
    lanes.into_iter().map(Lane::finish).collect()
}

/// The caches of so many layers that share one importance vector.
pub fn caches_of_layers(setting: &Setting, layers: usize) -> Vec<Cache> {
    let shared = Shared::default();
    let policy = || LayerPolicy {
        shared: Rc::clone(&shared),
        alpha: setting.number("alpha", 0.5),
        recent_window: setting.count("recentWindow", 32),
    };
    (0..layers).map(|_| Cache::with_policy(Box::new(policy()))).collect()
}
