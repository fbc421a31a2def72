//! A lane of a policy: gathers what its cache keeps of each row, tallies, lets the policy act.

use super::block::{KnownRow, StepBlock};
use super::cache::Cache;
use super::facts::RowFacts;
use super::lane::{StepMeasure, StepRecord};
use super::run::ViewKind;
use super::tally::{RowKept, Tally};
use crate::error::Result;
use crate::kernels;
use crate::policy::Policy;
use crate::position::Position;
use crate::trace::SelfAttention;

/// What a lane is told of its cache and of the run.
#[derive(Clone, Copy)]
pub(super) struct LaneSetup {
    /// Name of the policy, for messages.
    pub name: &'static str,
    /// Most positions held between steps; `None` where there is no budget.
    pub budget: Option<usize>,
    pub kind: SelfAttention,
    /// Step of the first row: the positions before it are there from the start.
    pub first: Position,
    pub view: ViewKind,
    /// Rows before this step belong to a prompt that is cut down at once at its end.
    pub block_prompt: Position,
    /// Number of positions that the layer attends to, where it is fewer than all.
    pub window: Option<usize>,
}

pub(super) struct PolicyLane {
    setup: LaneSetup,
    cache: Cache,
    looks_at_weights: bool,
    tally: Tally,
    gathered: Vec<f32>,
    /// Sum over query heads of the gathered weights; unused where there is one head.
    head_sum: Vec<f64>,
}

impl PolicyLane {
    pub(super) fn new(setup: LaneSetup, policy: Box<dyn Policy>) -> PolicyLane {
        let looks_at_weights = policy.looks_at_weights();
        let mut cache = Cache::new(setup.name, policy, setup.budget.unwrap_or(0).saturating_add(1));
        (0..setup.first.0).for_each(|position| cache.admit(Position(position)));
        let tally = Tally { caches: 1, budget_sum: setup.budget.unwrap_or(0) as u64, ..Tally::default() };
        PolicyLane { setup, cache, looks_at_weights, tally, gathered: Vec::new(), head_sum: Vec::new() }
    }

    pub(super) fn run(&mut self, block: &StepBlock, mut log: Option<&mut Vec<StepRecord>>) -> Result<()> {
        for step in 0..block.len() {
            self.step(block, step, log.as_deref_mut())?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Tally {
        self.tally.state_bytes = self.cache.state_bytes();
        self.tally
    }

    /// Replays one step of a block; records it where a log is given.
    #[inline]
    pub(super) fn step(&mut self, block: &StepBlock, step: usize, log: Option<&mut Vec<StepRecord>>) -> Result<()> {
        let position = block.position(step);
        let in_prompt = position < self.setup.block_prompt;
        if self.setup.kind == SelfAttention::Included {
            self.cache.admit(position);
        }
        let seen = block.is_known(step).then(|| self.see(block, step, !in_prompt));
        if self.setup.kind == SelfAttention::Excluded {
            self.cache.admit(position);
        }
        self.expire(position);
        let mut victims = log.is_some().then(Vec::new);
        if position.0 + 1 >= self.setup.block_prompt.0 {
            self.evict(position, victims.as_mut())?;
        }
        let measured = seen.filter(|_| !in_prompt);
        self.count_step(in_prompt, measured.is_some());
        if let (Some(log), Some(victims)) = (log, victims) {
            log.push(StepRecord { step: position, kept: self.cache.kept().len(), measured, victims });
        }
        Ok(())
    }

    #[inline]
    fn count_step(&mut self, in_prompt: bool, measured: bool) {
        let kept = self.cache.kept().len() as u64;
        let tally = &mut self.tally;
        if in_prompt {
            tally.prompt_steps += 1;
            return;
        }
        tally.steps += u64::from(measured);
        tally.skipped_rows += u64::from(!measured);
        tally.kept_sum += kept;
        tally.peak_kept = tally.peak_kept.max(kept);
    }

    /// Lets go what no later row can attend to.
    #[inline]
    fn expire(&mut self, step: Position) {
        let Some(window) = self.setup.window else { return };
        let first_of_next_row = (step.index() + 2).saturating_sub(window);
        self.tally.expired += self.cache.expire(Position(first_of_next_row as u32)) as u64;
    }

    #[inline]
    fn evict(&mut self, step: Position, victims: Option<&mut Vec<Position>>) -> Result<()> {
        let Some(budget) = self.setup.budget else { return Ok(()) };
        let evicted = self.cache.shrink(budget, step, victims)?;
        self.tally.evicted += evicted as u64;
        self.tally.eviction_calls += u64::from(evicted > 0);
        Ok(())
    }

    /// Gathers what is kept of a step's rows, counts it where it is to be counted, and shows the
    /// policy the mean over the query heads.
    #[inline]
    fn see(&mut self, block: &StepBlock, step: usize, counted: bool) -> StepMeasure {
        let heads = block.heads();
        let mut measure = StepMeasure::default();
        self.gathered.resize(self.cache.kept().len(), 0.0);
        self.head_sum.clear();
        for head in 0..heads {
            let row = block.row(step, head);
            let seen = self.measure(row);
            measure.add(&seen);
            if counted {
                self.count_row(row.facts, &seen);
            }
            if heads > 1 {
                self.add_head();
            }
        }
        if self.looks_at_weights {
            self.show(heads, block.row(step, 0).weights.len());
        }
        measure
    }

    #[inline]
    fn measure(&mut self, KnownRow { weights: row, facts }: KnownRow<'_>) -> StepMeasure {
        let (kept, gathered) = (self.cache.kept(), &mut self.gathered);
        let needs_weights = self.looks_at_weights || facts.needs_kept_weights();
        let gather = if needs_weights { kernels::gather } else { kernels::measure };
        let found = gather(row, kept, facts.kept_limits(), gathered);
        StepMeasure {
            retained: found.mass,
            heavy_hits: u64::from(found.heavy + facts.heavy_ties(kept, gathered)),
            heavy_possible: u64::from(facts.heavy),
            pivotal_hits: u64::from(found.pivotal),
            pivotal_possible: u64::from(facts.pivotal),
        }
    }

    #[inline]
    fn count_row(&mut self, facts: &RowFacts, seen: &StepMeasure) {
        let tally = &mut self.tally;
        let after_eviction = tally.eviction_calls > 0;
        tally.add_row(RowKept { retained: seen.retained, total: facts.total, after_eviction });
        tally.add_hits(seen);
        tally.peak_misses += u64::from(facts.lack_a_peak(&self.gathered));
    }

    fn add_head(&mut self) {
        self.head_sum.resize(self.gathered.len(), 0.0);
        kernels::accumulate(&mut self.head_sum, &self.gathered);
    }

    #[inline]
    fn show(&mut self, heads: usize, row_len: usize) {
        if heads > 1 {
            let mean = self.head_sum.iter().map(|sum| (sum / heads as f64) as f32);
            self.gathered.iter_mut().zip(mean).for_each(|(weight, mean)| *weight = mean);
        }
        if self.setup.view == ViewKind::Renormalized {
            let kept = kernels::sum(&self.gathered);
            if kept <= 0.0 {
                return;
            }
            self.gathered.iter_mut().for_each(|weight| *weight = (f64::from(*weight) / kept) as f32);
        }
        self.cache.observe(&self.gathered, row_len);
    }
}
