//! `scissorhands-cross-layer`: one importance per position, handed from layer to layer and on to the
//! next step.
//!
//! *Idea.* What matters to one layer matters to the next: fuse the layer's own weights with the
//! importance that the layers before it found. `fused(j) = alpha * importance(j) + (1 - alpha) *
//! weight(j)` for the positions that the layer holds becomes their importance, goes to the next layer
//! and after the last one to the next step; each layer evicts its lowest.
//! *Paper.* None. It goes by the name of Scissorhands in a reading in circulation; it is not what
//! the paper (arXiv 2305.17118) describes, where layers share nothing.
//! *How this differs from the paper.* In all but the name, see there; the paper's algorithm is
//! `scissorhands-paper`.
//! *Parameters.* `alpha` (0.5; with 0 nothing is shared and it equals `decay` with `gamma` 0),
//! `recent-window` (32).
//! *Cost.* One f64 per position of the sequence, shared by the layers; one multiplication and
//! addition per slot and step, one pass per eviction. Layers are replayed side by side.

use super::coupled::{CoupledPolicy, CoupledSetting};
use super::entry::{Make, PolicyEntry};
use super::parameter::{ALPHA, RECENT_WINDOW, Value};
use super::{Admission, Observation, Overflow, choose_lowest};
use crate::position::Slot;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "scissorhands-cross-layer",
    "one importance per position, handed from layer to layer; a reading, not the paper's",
    Make::Coupled(|CoupledSetting { caches }| {
        let alpha = caches.first().map_or(0.0, |cache| cache.values.real(&ALPHA));
        let windows = caches.iter().map(|cache| cache.values.count(&RECENT_WINDOW));
        Box::new(CrossLayer::new(alpha, windows.collect()))
    }),
)
.parameters(&[(&ALPHA, Value::Real(0.5)), (&RECENT_WINDOW, Value::Count(32))]);

/// Evicts the least important outside the recent window of each layer.
pub struct CrossLayer {
    alpha: f64,
    /// One for each layer.
    recent_windows: Vec<usize>,
    /// One value per position admitted anywhere.
    importance: Vec<f64>,
    /// The importance of each candidate.
    candidates: Vec<f64>,
}

impl CrossLayer {
    /// A policy for the layers of one head.
    pub fn new(alpha: f64, recent_windows: Vec<usize>) -> CrossLayer {
        CrossLayer { alpha, recent_windows, importance: Vec::new(), candidates: Vec::new() }
    }
}

impl CoupledPolicy for CrossLayer {
    fn admit(&mut self, _layer: usize, admission: Admission<'_>) {
        let positions = self.importance.len().max(admission.position.index() + 1);
        self.importance.resize(positions, 0.0);
    }

    fn observe(&mut self, _layer: usize, seen: Observation<'_>) {
        for (position, weight) in seen.positions.iter().zip(seen.weights) {
            let importance = &mut self.importance[position.index()];
            *importance = self.alpha * *importance + (1.0 - self.alpha) * f64::from(*weight);
        }
    }

    fn choose(&mut self, layer: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let reach = overflow.kept.len().saturating_sub(self.recent_windows[layer]);
        self.candidates.clear();
        self.candidates.extend(overflow.kept[..reach].iter().map(|position| self.importance[position.index()]));
        choose_lowest(&self.candidates, reach, overflow, victims);
    }

    fn shared_bytes(&self) -> usize {
        self.importance.len() * size_of::<f64>()
    }
}
