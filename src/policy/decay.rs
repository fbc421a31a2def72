//! `decay`: keeps the highest score that fades as rows go by.
//!
//! *Idea.* What a position received lately says more than what it received long ago. Each observed
//! row makes `score = gamma * score + signal(weight)` of every score, so that `gamma` chooses
//! between all of the past and the last row alone.
//! *Paper.* None: it shows what lies between h2o (`gamma` 1, `signal` weight), scissorhands (`gamma`
//! 1, `signal` vote) and tova (`gamma` 0, `signal` weight; `recent-window` 0 where rows include the
//! token itself, 1 where they do not), which it equals to the bit there.
//! *How this differs from the paper.* As tova's double it knows no "unobserved": a position that no
//! row has shown yet has score 0, which differs after steps without information only.
//! *Parameters.* `gamma` (0.95), `signal` (weight; vote is 1 above the even share of the kept
//! positions and 0 else; sqrt and square are taken of the weight), `recent-window` (32).
//! *Cost.* One f64 per slot; one multiplication and addition per slot and step, one pass per
//! eviction. IEEE operations only, none fused, so that every machine agrees to the bit.

use super::{Overflow, Policy, View, choose_lowest};
use crate::kernels::f32_not_above;
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// What a weight adds to a score.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The weight.
    Weight,
    /// 1 where the weight is above the even share of the kept positions.
    Vote,
    /// Its square root: many small weights count.
    Sqrt,
    /// Its square: few large weights count.
    Square,
}

impl Signal {
    /// Reads the parameter's word.
    pub fn from_word(word: &str) -> Option<Signal> {
        match word {
            "weight" => Some(Signal::Weight),
            "vote" => Some(Signal::Vote),
            "sqrt" => Some(Signal::Sqrt),
            "square" => Some(Signal::Square),
            _ => None,
        }
    }
}

/// Evicts the lowest faded score outside the recent window.
pub struct Decay {
    gamma: f64,
    signal: Signal,
    recent_window: usize,
    scores: SlotVec<f64>,
}

impl Decay {
    /// A policy for a cache of about `budget` slots.
    pub fn new(gamma: f64, signal: Signal, recent_window: usize, budget: usize) -> Decay {
        Decay { gamma, signal, recent_window, scores: SlotVec::with_capacity(budget) }
    }

    fn fade(&mut self, weights: &[f32], signal: impl Fn(f32) -> f64) {
        for (score, weight) in self.scores.iter_mut().zip(weights) {
            *score = self.gamma * *score + signal(*weight);
        }
    }
}

impl Policy for Decay {
    fn admit(&mut self, _position: Position) {
        self.scores.push(0.0);
    }

    fn observe(&mut self, view: View<'_>) {
        match self.signal {
            Signal::Weight => self.fade(view.weights, f64::from),
            Signal::Vote => {
                let share = f32_not_above(view.share());
                self.fade(view.weights, |weight| if weight > share { 1.0 } else { 0.0 });
            }
            Signal::Sqrt => self.fade(view.weights, |weight| f64::from(weight).sqrt()),
            Signal::Square => self.fade(view.weights, |weight| f64::from(weight) * f64::from(weight)),
        }
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let candidates = self.scores.len().saturating_sub(self.recent_window);
        choose_lowest(&self.scores, candidates, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.scores.remove(slots);
    }

    fn figure(&self, slot: Slot) -> Option<f64> {
        Some(self.scores[slot.0])
    }

    fn slot_bytes(&self) -> usize {
        size_of::<f64>()
    }
}
