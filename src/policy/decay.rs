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

use super::entry::{Make, PolicyEntry, Setting};
use super::lowest_score::{ScoreRule, lowest_score};
use super::parameter::{GAMMA, RECENT_WINDOW, SIGNAL, Value};
use super::{Admission, Observation, Policy};
use crate::kernels::f32_not_above;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("decay", "keeps the highest score that fades as rows go by, and the newest", Make::Policy(make))
        .parameters(&[
            (&GAMMA, Value::Real(0.95)),
            (&SIGNAL, Value::Word("weight")),
            (&RECENT_WINDOW, Value::Count(32)),
        ])
        .ranked()
        .probe("scoreOf");

fn make(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let signal = Signal::from_word(values.word(&SIGNAL)).expect("the parameter admits known words only");
    lowest_score(Decay { gamma: values.real(&GAMMA), signal }, values.count(&RECENT_WINDOW), *budget)
}

/// What a weight adds to a score.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
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
    fn from_word(word: &str) -> Option<Signal> {
        match word {
            "weight" => Some(Signal::Weight),
            "vote" => Some(Signal::Vote),
            "sqrt" => Some(Signal::Sqrt),
            "square" => Some(Signal::Square),
            _ => None,
        }
    }
}

/// Scores that fade.
struct Decay {
    gamma: f64,
    signal: Signal,
}

impl Decay {
    fn fade(&self, scores: &mut [f64], weights: &[f32], signal: impl Fn(f32) -> f64) {
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score = self.gamma * *score + signal(*weight);
        }
    }
}

impl ScoreRule for Decay {
    type Score = f64;

    fn admitted(&self, _admission: Admission<'_>) -> f64 {
        0.0
    }

    fn observe(&self, scores: &mut [f64], seen: Observation<'_>) {
        let weights = seen.weights;
        match self.signal {
            Signal::Weight => self.fade(scores, weights, f64::from),
            Signal::Vote => {
                let even_share = f32_not_above(seen.even_share());
                self.fade(scores, weights, |weight| if weight > even_share { 1.0 } else { 0.0 });
            }
            Signal::Sqrt => self.fade(scores, weights, |weight| f64::from(weight).sqrt()),
            Signal::Square => self.fade(scores, weights, |weight| f64::from(weight) * f64::from(weight)),
        }
    }

    fn probe(&self, score: f64) -> Option<f64> {
        Some(score)
    }
}
