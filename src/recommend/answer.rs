//! The answer: policies in their ranks, with the settings and figures that go with them.

use super::candidates::Candidate;
use super::cost::Cost;
use super::resample::Interval;
use super::sums::Figure;
use super::trials::Estimate;
use crate::experiment::Budget;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// The best at this budget.
    Budget(Budget),
    /// The smallest budget at which a figure is no more than this.
    Promise(Figure, f64),
}

/// An answer.
pub struct Answer {
    /// What was asked for.
    pub goal: Goal,
    /// The figure that orders policies at a budget.
    pub lead: Figure,
    /// Policies, the best first; those that cannot keep a promise last.
    pub lines: Vec<AnswerLine>,
    /// What it was found on.
    pub basis: Basis,
}

/// A policy's part of an answer.
pub struct AnswerLine {
    /// Its rank, which policies share that cannot be told apart; `None` where it keeps no promise.
    pub rank: Option<usize>,
    /// The policy with its best setting.
    pub candidate: Candidate,
    /// What it needs and keeps; `None` where it keeps no promise.
    pub kept: Option<Kept>,
}

/// What a policy needs and keeps.
pub struct Kept {
    /// Its budget, in positions of the shortest trace.
    pub budget: usize,
    /// Where the smallest budget would lie on other rows, or other traces, of the kind; of promises alone.
    pub budget_interval: Option<Interval>,
    /// Share of rows that miss a peak.
    pub peak_misses: Estimate,
    /// Share of the attention that is lost.
    pub lost_mass: Estimate,
    /// Predicted loss, where the traces have it.
    pub predicted_loss: Option<Estimate>,
    /// The layer that loses most, and the share of its attention that it loses.
    pub worst_layer: Option<(u32, f64)>,
    /// What a sequence takes.
    pub cost: Option<Cost>,
}

/// What an answer was found on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Basis {
    /// The traces.
    pub traces: Vec<String>,
    /// Positions of the shortest.
    pub positions: usize,
    /// The prompts that are cut at their end, trace by trace.
    pub prompts: Vec<Option<usize>>,
    /// Blocks of rows that were drawn for the intervals, where there is one trace.
    pub blocks: usize,
    /// Caches that were replayed, and that there are, of the first trace.
    pub caches: (usize, usize),
    /// The largest budget that was tried.
    pub largest: usize,
    /// Policies that are impossible here.
    pub left_out: Vec<&'static str>,
}

impl Kept {
    /// The figure that leads.
    pub fn figure(&self, figure: Figure) -> Option<Estimate> {
        match figure {
            Figure::PeakMisses => Some(self.peak_misses),
            Figure::LostMass => Some(self.lost_mass),
            Figure::PredictedLoss => self.predicted_loss,
        }
    }
}
