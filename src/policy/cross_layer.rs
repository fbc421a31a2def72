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

use super::coupled::CoupledPolicy;
use super::{Overflow, View, choose_lowest};
use crate::position::{Position, Slot};

/// Evicts the least important outside the recent window of each layer.
pub struct CrossLayer {
    alpha: f64,
    recent_window: usize,
    /// One value per position admitted anywhere.
    importance: Vec<f64>,
    /// The importance of each candidate.
    figures: Vec<f64>,
}

impl CrossLayer {
    /// A policy for the layers of one head.
    pub fn new(alpha: f64, recent_window: usize) -> CrossLayer {
        CrossLayer { alpha, recent_window, importance: Vec::new(), figures: Vec::new() }
    }
}

impl CoupledPolicy for CrossLayer {
    fn admit(&mut self, _layer: usize, position: Position) {
        let positions = self.importance.len().max(position.index() + 1);
        self.importance.resize(positions, 0.0);
    }

    fn observe(&mut self, _layer: usize, view: View<'_>) {
        for (position, weight) in view.positions.iter().zip(view.weights) {
            let importance = &mut self.importance[position.index()];
            *importance = self.alpha * *importance + (1.0 - self.alpha) * f64::from(*weight);
        }
    }

    fn choose(&mut self, _layer: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = overflow.kept.len().saturating_sub(self.recent_window);
        self.figures.clear();
        self.figures.extend(overflow.kept[..candidates].iter().map(|position| self.importance[position.index()]));
        choose_lowest(&self.figures, candidates, overflow, victims);
    }

    fn shared_bytes(&self) -> usize {
        self.importance.len() * size_of::<f64>()
    }
}
