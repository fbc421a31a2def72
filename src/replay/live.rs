//! A cache whose rows come one at a time from a model that runs: the same lane as in a replay, told of a row, tells
//! who leaves.
//!
//! The row of a run with an evicted cache has no weight on what has left, so that it is a row of a trace with zeros
//! there: everything else is the lane's.

use super::caches::CachePlan;
use super::lane_meters::Counts;
use super::lane_plan::LanePlan;
use super::lane_site::LaneSite;
use super::observer::StepRecord;
use super::options::Options;
use super::policy_lane::PolicyLane;
use super::row_facts::FactFinder;
use super::section::HeadRange;
use super::step_batch::{HeadRows, StepBatch};
use crate::error::{Error, Result};
use crate::policy::entry::Make;
use crate::position::Position;
use crate::trace::{SelfAttention, TraceInfo, problem_of};

/// One cache under one policy, fed row by row.
pub struct LiveCache {
    lane: PolicyLane,
    name: String,
    self_attention: SelfAttention,
    step: Position,
    batch: StepBatch,
    finders: Vec<FactFinder>,
    row: Vec<f32>,
    counts: Counts,
    log: Vec<StepRecord>,
}

impl LiveCache {
    /// An empty cache with this budget, read by so many query heads. `info` says whether rows hold the token itself,
    /// and with which step they begin.
    ///
    /// # Errors
    /// When the lane is impossible, or needs more than the rows of its own cache as they come.
    pub fn new(
        info: &TraceInfo,
        cache: &CachePlan,
        query_heads: usize,
        (plan, budget): (&LanePlan, usize),
        options: &Options,
    ) -> Result<LiveCache> {
        let Make::Policy(make) = plan.entry.make else {
            let problem = "it needs more than the rows of one cache as they come";
            return Err(Error::usage(format!("policy {}: {problem}", plan.entry.name)));
        };
        let setting = plan.setting_with(cache, budget);
        let heads = HeadRange { start: 0, end: query_heads };
        let site = LaneSite::new(info, options, (cache, heads), plan, &setting);
        Ok(LiveCache {
            lane: PolicyLane::new(&site, make(&setting)),
            name: cache.label.to_string(),
            self_attention: info.self_attention,
            step: info.first_position,
            batch: StepBatch::default(),
            finders: (0..query_heads).map(|_| FactFinder::new(1)).collect(),
            row: Vec::new(),
            counts: Counts::default(),
            log: Vec::new(),
        })
    }

    /// The positions that the next row has weights for, ascending.
    pub fn seen(&self) -> impl Iterator<Item = Position> {
        let own = (self.self_attention == SelfAttention::Included).then_some(self.step);
        self.lane.kept().iter().copied().chain(own)
    }

    /// Takes the next row of every query head, the weights of the positions seen, back to back; none at all is a
    /// step without information. Returns who leaves after it, ascending.
    ///
    /// # Errors
    /// When there are more or fewer weights, one of them cannot be attention, or the policy breaks its contract.
    pub fn step(&mut self, weights: &[f32]) -> Result<&[Position]> {
        let seen: Vec<Position> = self.seen().collect();
        self.check(weights, seen.len())?;
        self.batch.heads.resize_with(self.finders.len(), HeadRows::default);
        for head in 0..self.finders.len() {
            let own = weights.get(head * seen.len()..(head + 1) * seen.len()).unwrap_or(&[]);
            self.fill(head, &seen, own);
        }
        self.log.clear();
        self.lane.run(&self.batch, &mut self.counts, Some(&mut self.log))?;
        self.step.0 += 1;
        Ok(&self.log[0].victims)
    }

    /// Puts the row of a head where a trace would have it.
    fn fill(&mut self, head: usize, seen: &[Position], weights: &[f32]) {
        let len = if weights.is_empty() { 0 } else { self.self_attention.row_len(self.step) };
        self.row.clear();
        self.row.resize(len, 0.0);
        for (position, weight) in seen.iter().zip(weights) {
            self.row[position.index()] = *weight;
        }
        let rows = &mut self.batch.heads[head];
        rows.rows.clear();
        rows.rows.push(self.step, &self.row);
        rows.facts.clear();
        rows.facts.push(if len == 0 { None } else { self.finders[head].find(rows.rows.weights_mut(0)) });
    }

    fn check(&self, weights: &[f32], seen: usize) -> Result<()> {
        let (place, wanted) = (|| format!("cache {}: step {}", self.name, self.step), seen * self.finders.len());
        if !weights.is_empty() && weights.len() != wanted {
            let (count, heads) = (weights.len(), self.finders.len());
            let problem = format!("{count} weights for {heads} query heads and {seen} positions held, {wanted} needed");
            return Err(Error::data(place(), problem));
        }
        match weights.iter().find(|weight| !(**weight >= 0.0 && weight.is_finite())) {
            None => Ok(()),
            Some(weight) => Err(Error::data(place(), problem_of(*weight))),
        }
    }
}
