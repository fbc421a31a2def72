//! A slow, obvious replay of one cache: query heads that share it, a prompt cut down at once, a
//! sliding window, rows that begin late, cuts as engines make them. Policies are those of the reference.

use crate::reference::cache::Cache;
use crate::reference::{Measured, SelfKind};
use kvsim::trace::memory::Rows;

/// How the heads of a cache are shown to a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    Mean,
    Max,
    Sum,
    Each,
}

/// When the cache is cut, and in what units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    pub combine: Combine,
    /// Positions by which the budget is outgrown before it is cut back to.
    pub every: usize,
    /// Positions of a block; 1: none.
    pub page: usize,
    /// Whether nothing is evicted after the prompt.
    pub once: bool,
    /// Rows after which the prompt is cut while it is read.
    pub chunk: Option<usize>,
}

/// At every step, one position at a time, by the mean.
pub const PLAIN: Keep = Keep { combine: Combine::Mean, every: 1, page: 1, once: false, chunk: None };

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct Situation {
    pub kind: SelfKind,
    /// Step of the first row.
    pub first: usize,
    /// The rows of each query head.
    pub heads: Vec<Rows>,
    /// Rows before this step are observed only, and nothing is evicted before its last one is over.
    pub prompt: usize,
    /// The row of step `t` attends to no position before `t - window + 1`.
    pub window: Option<usize>,
    pub renormalized: bool,
    /// k of the heavy-hitter recall.
    pub k: usize,
    pub keep: Keep,
}

impl Situation {
    /// One head from its first token on, without prompt or window.
    pub fn plain(kind: SelfKind, rows: Rows) -> Situation {
        let first = kind.step_at(0);
        Situation { kind, first, heads: vec![rows], prompt: 0, window: None, renormalized: false, k: 3, keep: PLAIN }
    }
}

/// What happened in one step.
#[derive(Clone, Debug)]
pub struct Step {
    pub step: usize,
    pub in_prompt: bool,
    /// One entry for each head; none where a head has no attention, and none in the prompt.
    pub measured: Vec<Measured>,
    pub expired: Vec<u32>,
    pub victims: Vec<u32>,
    /// Positions held after the step.
    pub kept: Vec<u32>,
}

/// A cache on its way through its steps.
pub struct Lane {
    situation: Situation,
    cache: Cache,
    budget: usize,
    pub steps: Vec<Step>,
}

impl Lane {
    /// Everything before the first row is held when it comes.
    pub fn new(situation: &Situation, mut cache: Cache, budget: usize) -> Lane {
        (0..situation.first).for_each(|position| cache.admit(position as u32));
        let budget = cache.policy.own_budget().unwrap_or(budget);
        Lane { situation: situation.clone(), cache, budget, steps: Vec::new() }
    }

    /// Takes the rows of the next step.
    pub fn step(&mut self) {
        let index = self.steps.len();
        let Situation { kind, first, prompt, k, .. } = self.situation;
        let step = first + index;
        if kind == SelfKind::Included {
            self.cache.admit(step as u32);
        }
        let heads: Option<Vec<Vec<f32>>> = self.situation.heads.iter().map(|rows| rows[index].clone()).collect();
        let evicted_before = self.steps.iter().any(|step| !step.victims.is_empty());
        let measure = |row: &Vec<f32>| Measured::of(row, &self.cache.kept, k, evicted_before);
        let measured = heads.iter().flatten().map(measure).filter(|_| step >= prompt).collect();
        if let Some(heads) = heads {
            self.show(step, &heads);
        }
        if kind == SelfKind::Excluded {
            self.cache.admit(step as u32);
        }
        let expired = self.expire(step);
        let victims = match self.cache.policy.due(self.cache.kept.len(), step) {
            None if self.is_due(step) => self.cut(),
            Some(Some(budget)) => self.cache.evict(budget),
            _ => Vec::new(),
        };
        let kept = self.cache.kept.clone();
        self.steps.push(Step { step, in_prompt: step < prompt, measured, expired, victims, kept });
    }

    /// Whether the cache is cut after a step.
    fn is_due(&self, step: usize) -> bool {
        let Situation { prompt, keep, .. } = self.situation;
        let (kept, read) = (self.cache.kept.len(), step + 1);
        if kept <= self.budget {
            return false;
        }
        if read < prompt {
            return keep.chunk.is_some_and(|chunk| read % chunk == 0);
        }
        if prompt > 0 && read == prompt {
            return true;
        }
        !(keep.once && prompt > 0) && kept >= self.budget + keep.every
    }

    fn cut(&mut self) -> Vec<u32> {
        match self.situation.keep.page {
            1 => self.cache.evict(self.budget),
            page => self.cache.evict_blocks(self.budget, page),
        }
    }

    /// Shows the policy what it is to see of a step's rows.
    fn show(&mut self, step: usize, heads: &[Vec<f32>]) {
        let Situation { kind, keep, renormalized, .. } = self.situation;
        let kept =
            |row: &Vec<f32>| -> Vec<f32> { self.cache.kept.iter().map(|position| row[*position as usize]).collect() };
        let rows: Vec<Vec<f32>> = heads.iter().map(kept).collect();
        let combined = combined(&rows, keep.combine);
        let (view, rows) = if renormalized {
            let nothing = |row: &Vec<f32>| renormalized_row(row).unwrap_or_else(|| vec![0.0; row.len()]);
            (renormalized_row(&combined), rows.iter().map(nothing).collect())
        } else {
            (Some(combined), rows)
        };
        let Some(view) = view else { return };
        let rows = if keep.combine == Combine::Each { rows } else { vec![view.clone()] };
        let scale = if keep.combine == Combine::Sum && !renormalized { heads.len() as f64 } else { 1.0 };
        self.cache.observe_rows(step, kind.row_length(step), view, rows, scale);
    }

    /// What the row of step `t + 1` cannot attend to goes after step `t`.
    fn expire(&mut self, step: usize) -> Vec<u32> {
        let Some(window) = self.situation.window else { return Vec::new() };
        let gone: Vec<u32> =
            self.cache.kept.iter().copied().filter(|position| *position as usize + window < step + 2).collect();
        for position in &gone {
            self.cache.kept.retain(|kept| kept != position);
            self.cache.policy.forget(*position);
        }
        gone
    }
}

/// The heads at every kept position, in doubles, in the order of heads.
fn combined(rows: &[Vec<f32>], combine: Combine) -> Vec<f32> {
    let at_slot = |slot: usize| {
        let (mut sum, mut most) = (0.0, 0.0_f32);
        for row in rows {
            sum += f64::from(row[slot]);
            most = most.max(row[slot]);
        }
        match combine {
            Combine::Mean | Combine::Each => (sum / rows.len() as f64) as f32,
            Combine::Sum => sum as f32,
            Combine::Max => most,
        }
    };
    (0..rows[0].len()).map(at_slot).collect()
}

/// The weights divided by their sum; none where that is 0.
fn renormalized_row(view: &Vec<f32>) -> Option<Vec<f32>> {
    let mut total = 0.0;
    for weight in view {
        total += f64::from(*weight);
    }
    (total > 0.0).then(|| view.iter().map(|weight| (f64::from(*weight) / total) as f32).collect())
}

/// Replays all steps.
pub fn replay(situation: &Situation, cache: Cache, budget: usize) -> Vec<Step> {
    let mut lane = Lane::new(situation, cache, budget);
    (0..situation.heads[0].len()).for_each(|_| lane.step());
    lane.steps
}

/// The most mass that any sequence of evictions retains after the prompt, found by trying all.
pub fn best_by_brute_force(situation: &Situation, budget: usize) -> f64 {
    let kept: Vec<u32> = (0..situation.first as u32).collect();
    best_from(situation, budget, 0, &kept)
}

fn best_from(situation: &Situation, budget: usize, index: usize, kept: &[u32]) -> f64 {
    if index == situation.heads[0].len() {
        return 0.0;
    }
    let step = situation.first + index;
    let admitted: Vec<u32> = kept.iter().copied().chain([step as u32]).collect();
    let measured_on = if situation.kind == SelfKind::Included { &admitted } else { kept };
    let rows: Option<Vec<&Vec<f32>>> = situation.heads.iter().map(|rows| rows[index].as_ref()).collect();
    let weights = |row: &Vec<f32>| measured_on.iter().map(|position| f64::from(row[*position as usize])).sum::<f64>();
    let retained: f64 = if step < situation.prompt { 0.0 } else { rows.iter().flatten().map(|row| weights(row)).sum() };
    let dead = situation.window.map_or(0, |window| (step + 2).saturating_sub(window));
    let alive: Vec<u32> = admitted.into_iter().filter(|position| *position as usize >= dead).collect();
    let choices = if step + 1 < situation.prompt { vec![alive] } else { subsets_up_to(&alive, budget) };
    let rest = choices.iter().map(|rest| best_from(situation, budget, index + 1, rest));
    retained + rest.fold(f64::NEG_INFINITY, f64::max)
}

fn subsets_up_to(positions: &[u32], most: usize) -> Vec<Vec<u32>> {
    let of_bits = |bits: u32| {
        let chosen = positions.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
        chosen.map(|(_, position)| *position).collect::<Vec<u32>>()
    };
    (0..1_u32 << positions.len()).map(of_bits).filter(|subset| subset.len() <= most).collect()
}
