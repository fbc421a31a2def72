//! A lane of a policy: gathers what its cache keeps of each row, tallies, lets the policy act.

use super::block::StepBlock;
use super::cache::Cache;
use super::lane::{StepMeasure, StepRecord};
use super::run::ViewKind;
use super::tally::{RowKept, Tally};
use crate::error::Result;
use crate::kernels;
use crate::policy::Policy;
use crate::position::Position;
use crate::trace::SelfAttention;

pub(super) struct PolicyLane {
    cache: Cache,
    budget: Option<usize>,
    kind: SelfAttention,
    view: ViewKind,
    tally: Tally,
    gathered: Vec<f32>,
    /// Sum over query heads of the gathered weights; unused where there is one head.
    head_sum: Vec<f64>,
}

impl PolicyLane {
    pub(super) fn new(
        name: &'static str,
        policy: Box<dyn Policy>,
        budget: Option<usize>,
        kind: SelfAttention,
        view: ViewKind,
    ) -> PolicyLane {
        let mut cache = Cache::new(name, policy, budget.unwrap_or(0).saturating_add(1));
        if kind == SelfAttention::Excluded {
            cache.admit(Position(0));
        }
        let tally = Tally { caches: 1, budget_sum: budget.unwrap_or(0) as u64, ..Tally::default() };
        PolicyLane { cache, budget, kind, view, tally, gathered: Vec::new(), head_sum: Vec::new() }
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
        if self.kind == SelfAttention::Included {
            self.cache.admit(position);
        }
        let measured = block.is_known(step).then(|| self.see(block, step));
        self.tally.skipped_rows += u64::from(measured.is_none());
        if self.kind == SelfAttention::Excluded {
            self.cache.admit(position);
        }
        let mut victims = log.is_some().then(Vec::new);
        self.evict(position, victims.as_mut())?;
        let kept = self.cache.kept().len();
        self.tally.kept_sum += kept as u64;
        self.tally.peak_kept = self.tally.peak_kept.max(kept as u64);
        if let (Some(log), Some(victims)) = (log, victims) {
            log.push(StepRecord { step: position, kept, measured, victims });
        }
        Ok(())
    }

    fn evict(&mut self, step: Position, victims: Option<&mut Vec<Position>>) -> Result<()> {
        let Some(budget) = self.budget else { return Ok(()) };
        let evicted = self.cache.shrink(budget, step, victims)?;
        self.tally.evicted += evicted as u64;
        self.tally.eviction_calls += u64::from(evicted > 0);
        Ok(())
    }

    /// Measures the rows of a step on what is kept, then shows the policy their mean.
    #[inline]
    fn see(&mut self, block: &StepBlock, step: usize) -> StepMeasure {
        let heads = block.heads();
        let mut measure = StepMeasure::default();
        self.tally.steps += 1;
        self.gathered.resize(self.cache.kept().len(), 0.0);
        self.head_sum.clear();
        for head in 0..heads {
            self.measure(block, step, head, &mut measure);
            if heads > 1 {
                self.add_head();
            }
        }
        if heads > 1 {
            let mean = self.head_sum.iter().map(|sum| (sum / heads as f64) as f32);
            self.gathered.iter_mut().zip(mean).for_each(|(weight, mean)| *weight = mean);
        }
        let row_len = block.row(step, 0).weights.len();
        self.show(row_len);
        measure
    }

    #[inline]
    fn measure(&mut self, block: &StepBlock, step: usize, head: usize, measure: &mut StepMeasure) {
        let row = block.row(step, head);
        let found = kernels::gather(row.weights, self.cache.kept(), row.facts.thresholds, &mut self.gathered);
        let tally = &mut self.tally;
        tally.add_row(RowKept {
            retained: found.mass,
            total: row.facts.total,
            after_eviction: tally.eviction_calls > 0,
        });
        tally.heavy_hits += u64::from(found.heavy);
        tally.heavy_possible += u64::from(row.facts.heavy);
        tally.pivotal_hits += u64::from(found.pivotal);
        tally.pivotal_possible += u64::from(row.facts.pivotal);
        tally.peak_misses += u64::from(found.peaks < row.facts.peaks);
        measure.retained += found.mass;
        measure.heavy_hits += u64::from(found.heavy);
        measure.heavy_possible += u64::from(row.facts.heavy);
        measure.pivotal_hits += u64::from(found.pivotal);
        measure.pivotal_possible += u64::from(row.facts.pivotal);
    }

    fn add_head(&mut self) {
        self.head_sum.resize(self.gathered.len(), 0.0);
        kernels::accumulate(&mut self.head_sum, &self.gathered);
    }

    #[inline]
    fn show(&mut self, row_len: usize) {
        if self.view == ViewKind::Renormalized {
            let kept = kernels::sum(&self.gathered);
            if kept <= 0.0 {
                return;
            }
            self.gathered.iter_mut().for_each(|weight| *weight = (f64::from(*weight) / kept) as f32);
        }
        self.cache.observe(&self.gathered, row_len);
    }
}
