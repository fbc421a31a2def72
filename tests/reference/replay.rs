//! One stream through one setting.

use super::cache::Cache;
use super::outcome::{Measured, Outcome, StepOutcome, heaviest};
use super::selectors::replay_selector;
use super::{Rows, SelfKind, Setting, future};

/// Replays `rows` under `setting`. `k` is how many heaviest positions recall counts; `renormalized`
/// shows the policy its kept weights divided by their sum.
pub fn replay(rows: &Rows, kind: SelfKind, setting: &Setting, k: usize, renormalized: bool) -> Outcome {
    if let Some(outcome) = replay_selector(rows, setting, k) {
        return outcome;
    }
    match setting.policy.as_str() {
        "oracle" => replay_oracle(rows, kind, setting.budget, k),
        "optimal" => replay_through(rows, kind, future::optimal(rows, kind, setting.budget), setting.budget, k),
        "future-greedy" => replay_through(rows, kind, future::greedy(rows, kind), setting.budget, k),
        _ => Lane::new(Cache::new(setting), kind, setting.budget).replay(rows, k, renormalized),
    }
}

/// The bounds that know the future evict too, but see no rows: the view of a policy is nothing to
/// them.
fn replay_through(rows: &Rows, kind: SelfKind, knowing: future::Knowing, budget: usize, k: usize) -> Outcome {
    Lane::new(Cache::with_policy(Box::new(knowing)), kind, budget).replay(rows, k, false)
}

/// One cache on its way through one stream.
pub struct Lane {
    cache: Cache,
    kind: SelfKind,
    budget: usize,
    steps: Vec<StepOutcome>,
}

impl Lane {
    /// A lane before its first row; `budget` holds unless the policy has its own.
    pub fn new(mut cache: Cache, kind: SelfKind, budget: usize) -> Lane {
        if kind == SelfKind::Excluded {
            cache.admit(0);
        }
        let budget = cache.policy.own_budget().unwrap_or(budget);
        Lane { cache, kind, budget, steps: Vec::new() }
    }

    fn replay(mut self, rows: &Rows, k: usize, renormalized: bool) -> Outcome {
        for row in rows {
            self.step(row.as_deref(), k, renormalized);
        }
        self.finish()
    }

    /// Takes the next row.
    pub fn step(&mut self, row: Option<&[f32]>, k: usize, renormalized: bool) {
        let step = self.kind.step_at(self.steps.len());
        let row_length = self.kind.row_length(step);
        assert!(row.is_none_or(|row| row.len() == row_length), "step {step} has {row_length} weights");
        if self.kind == SelfKind::Included {
            self.cache.admit(step as u32);
        }
        let measured = row.map(|row| self.measure(row, k));
        if let Some(weights) = row.and_then(|row| view(row, &self.cache.kept, renormalized)) {
            self.cache.observe(step, row_length, weights);
        }
        if self.kind == SelfKind::Excluded {
            self.cache.admit(step as u32);
        }
        let victims = match self.cache.policy.due(self.cache.kept.len(), step) {
            None => self.cache.evict(self.budget),
            Some(None) => Vec::new(),
            Some(Some(budget)) => self.cache.evict(budget),
        };
        self.steps.push(StepOutcome { kept: self.cache.kept.clone(), victims, measured });
    }

    fn measure(&self, row: &[f32], k: usize) -> Measured {
        let after_first_eviction = self.steps.iter().any(|step| !step.victims.is_empty());
        Measured::of(row, &self.cache.kept, k, after_first_eviction)
    }

    /// Sums up what happened.
    pub fn finish(self) -> Outcome {
        Outcome::new(self.steps)
    }
}

/// What the policy sees of a row; `None` where a renormalised view has nothing to divide by.
fn view(row: &[f32], kept: &[u32], renormalized: bool) -> Option<Vec<f32>> {
    let weights: Vec<f32> = kept.iter().map(|&position| row[position as usize]).collect();
    if !renormalized {
        return Some(weights);
    }
    let mut total = 0.0;
    for &weight in &weights {
        total += f64::from(weight);
    }
    (total > 0.0).then(|| weights.iter().map(|&weight| (f64::from(weight) / total) as f32).collect())
}

/// The bound that picks anew for each row: nothing is ever evicted, the heaviest positions are
/// simply there.
fn replay_oracle(rows: &Rows, kind: SelfKind, budget: usize, k: usize) -> Outcome {
    let held = match kind {
        SelfKind::Excluded => budget,
        SelfKind::Included => budget + 1,
    };
    Outcome::new(rows.iter().map(|row| oracle_step(row.as_deref(), held, k)).collect())
}

fn oracle_step(row: Option<&[f32]>, held: usize, k: usize) -> StepOutcome {
    let row_or_nothing = row.unwrap_or(&[]);
    let mut kept: Vec<u32> = heaviest(row_or_nothing, held).into_iter().map(|position| position as u32).collect();
    kept.sort();
    let measured = row.map(|row| Measured::of(row, &kept, k, row.len() > held));
    StepOutcome { kept, victims: Vec::new(), measured }
}
