//! A lane of a policy: measures what its cache keeps of each row, lets the policy act, counts.

use super::cache::Cache;
use super::kept_outputs::{Changes, HeldWeights, KeptOutputs};
use super::lane_meters::{Counts, LaneMeters, OF_POLICIES};
use super::lane_site::LaneSite;
use super::observer::StepRecord;
use super::outputs::sink_weight;
use super::row_facts::RowFacts;
use super::schedule::Schedule;
use super::section::HeadRange;
use super::step_batch::{KnownRow, StepBatch};
use super::view::View;
use crate::error::Result;
use crate::kernels::{self, Gathered};
use crate::meter::{Held, Hits, LaneEnd, RowCounts, StepCounts, Tally};
use crate::policy::Policy;
use crate::policy::future::{Departing, Departures};
use crate::position::Position;
use crate::trace::SelfAttention;

pub(super) struct PolicyLane {
    heads: HeadRange,
    schedule: Schedule,
    self_attention: SelfAttention,
    window: Option<usize>,
    cache: Cache,
    view: View,
    meters: LaneMeters,
    /// Where a meter looks at outputs.
    outputs: Option<Box<KeptOutputs>>,
    /// Where keys and values are held in few bits: which way, and the kept weights of the exact row.
    held: Option<(usize, Vec<f32>)>,
    has_evicted: bool,
    /// Whether records say what positions were judged by.
    judged: bool,
    /// For decisions made elsewhere: when each position goes, whatever is held.
    played: Option<Departures>,
}

impl PolicyLane {
    pub(super) fn new(site: &LaneSite<'_>, policy: Box<dyn Policy>) -> PolicyLane {
        let LaneSite { heads, schedule, self_attention, window, .. } = *site;
        let slots = schedule.budget.unwrap_or(0).saturating_add(1);
        let mut cache =
            Cache::new(site.name, policy, slots).rounding_scores(site.rounding).seeing(site.tensors.cloned());
        (0..site.first.0).for_each(|position| cache.admit(Position(position)));
        let meters = LaneMeters::new(site.meters, OF_POLICIES, site.counted);
        let outputs = KeptOutputs::wanted_by(&meters);
        PolicyLane {
            heads,
            schedule,
            self_attention,
            window,
            cache,
            view: View::new(site.needs, site.view, site.combine),
            meters,
            outputs,
            held: site.way.map(|way| (way, Vec::new())),
            has_evicted: false,
            judged: site.judged,
            played: None,
        }
    }

    /// The lane of decisions that were made elsewhere.
    pub(super) fn playing(site: &LaneSite<'_>, departures: Departures) -> PolicyLane {
        let policy = Box::new(Departing::new(departures.clone(), 0));
        PolicyLane { played: Some(departures), ..PolicyLane::new(site, policy) }
    }

    pub(super) fn run(
        &mut self,
        batch: &StepBatch,
        counts: &mut Counts,
        mut log: Option<&mut Vec<StepRecord>>,
    ) -> Result<()> {
        self.meters.swap(counts);
        self.start_batch(batch);
        for step in 0..batch.len() {
            self.step(batch, step, log.as_deref_mut())?;
        }
        let ended = self.end_batch(batch);
        self.meters.swap(counts);
        ended
    }

    /// Makes room for the outputs of a batch.
    pub(super) fn start_batch(&mut self, batch: &StepBatch) {
        if let Some(outputs) = &mut self.outputs {
            outputs.start_batch(batch, self.heads);
        }
    }

    /// By how much the outputs of a batch were off, where figures of layers are made of that.
    pub(super) fn changes(&self) -> Option<&Changes> {
        self.outputs.as_ref().and_then(|outputs| outputs.changes())
    }

    /// Counts what the steps of a batch showed, and checks the policy's state: once a batch, since it is a
    /// call that most steps can do without.
    pub(super) fn end_batch(&mut self, batch: &StepBatch) -> Result<()> {
        self.meters.flush();
        let last = batch.len().checked_sub(1).map(|step| batch.position(step));
        last.map_or(Ok(()), |last| self.cache.check_state(last))
    }

    /// The positions held, ascending.
    pub(super) fn kept(&self) -> &[Position] {
        self.cache.kept()
    }

    pub(super) fn finish(self) -> Tally {
        self.meters.finish(&LaneEnd::new(Some(self.cache.state_bytes())))
    }

    /// Replays one step of a batch; records it where a log is given.
    #[inline]
    pub(super) fn step(&mut self, batch: &StepBatch, step: usize, log: Option<&mut Vec<StepRecord>>) -> Result<()> {
        if log.is_some() {
            self.meters.start_recording();
        }
        let position = batch.position(step);
        let in_prompt = self.schedule.is_in_prompt(position);
        if self.self_attention == SelfAttention::Included {
            self.cache.admit(position);
        }
        let known = batch.is_known(step, self.heads);
        if known {
            self.see(batch, step, !in_prompt);
        }
        if self.self_attention == SelfAttention::Excluded {
            self.cache.admit(position);
        }
        let expired = self.expire(position);
        let judged = if log.is_some() { self.judged(position) } else { Vec::new() };
        let mut victims = log.is_some().then(Vec::new);
        let evicted = self.evict(position, victims.as_mut())?;
        let (kept, measured) = (self.cache.kept().len(), known && !in_prompt);
        if !in_prompt {
            self.meters.show_held(position, self.cache.kept());
        }
        self.meters.add_step(StepCounts::new(in_prompt, measured, Some(Held::new(kept, evicted, expired))));
        if let (Some(log), Some(victims)) = (log, victims) {
            let counted = self.meters.recorded();
            log.push(StepRecord { step: position, kept, measured: measured.then_some(counted), victims, judged });
        }
        Ok(())
    }

    /// Lets go what no later row can attend to, and returns how many went.
    #[inline]
    fn expire(&mut self, step: Position) -> usize {
        let Some(window) = self.window else { return 0 };
        let first_of_next_row = (step.index() + 2).saturating_sub(window);
        self.cache.expire(Position(first_of_next_row as u32))
    }

    /// Cuts the cache where it is due, and returns how many went.
    #[inline]
    fn evict(&mut self, step: Position, victims: Option<&mut Vec<Position>>) -> Result<usize> {
        let Some(budget) = self.cut_after(step) else { return Ok(0) };
        let evicted = self.cache.shrink(budget, self.schedule.page, step, victims)?;
        self.has_evicted |= evicted > 0;
        Ok(evicted)
    }

    /// Down to how many positions the cache is cut at the end of a step; `None` where it is not.
    #[inline]
    fn cut_after(&self, step: Position) -> Option<usize> {
        match &self.played {
            None => self.schedule.cut_after(step, self.cache.kept().len()),
            Some(played) => Some(self.cache.kept().iter().filter(|held| played.leaves(**held) > step).count()),
        }
    }

    /// What each position is judged by where the cache is about to be cut, if anybody asks.
    fn judged(&self, step: Position) -> Vec<(Position, Option<f64>)> {
        let is_cut = || self.cut_after(step).is_some_and(|budget| budget < self.cache.kept().len());
        if self.judged && self.played.is_none() && is_cut() { self.cache.judged() } else { Vec::new() }
    }

    /// Measures what is kept of a step's rows, counts it where it is to be counted, and shows the policy
    /// what it needs.
    #[inline]
    fn see(&mut self, batch: &StepBatch, step: usize, counted: bool) {
        let (heads, position) = (self.heads.len(), batch.position(step));
        let wanted = counted && self.meters.look_at_weights();
        self.view.start(self.cache.kept().len());
        for head in 0..heads {
            let row = batch.row(step, self.heads.start + head);
            if self.held.is_some() {
                self.see_held(batch, step, head, counted);
                self.view.add_head(heads);
                continue;
            }
            let (found, weights) = self.view.take(row, self.cache.kept(), wanted);
            if counted {
                let hits = hits(row.facts, self.cache.kept(), found, weights);
                let counts = RowCounts::new(position, head, found.mass, row.facts.total, self.has_evicted, Some(hits));
                let outputs = self.outputs.as_mut();
                let output = outputs.and_then(|own| Some((own, batch.output(step, self.heads.start + head)?)));
                let output = output.zip(weights);
                let output = output.map(|((outputs, whole), weights)| {
                    outputs.measure(whole, position, self.cache.kept(), weights, None, (step, head))
                });
                self.meters.add_row(counts, self.cache.kept(), weights, row.weights, output);
            }
            self.view.add_head(heads);
        }
        if let Some(shown) = self.view.shown(heads) {
            self.cache.observe(position, batch.row(step, self.heads.start).weights.len(), shown);
        }
    }
}

impl PolicyLane {
    /// Measures a row of which keys and values are held in few bits: what is kept of the exact row is counted, the
    /// policy sees the row that what is held makes, and that row is handed on.
    fn see_held(&mut self, batch: &StepBatch, step: usize, head: usize, counted: bool) {
        let Some((way, exact)) = &mut self.held else { return };
        let (kept, position) = (self.cache.kept(), batch.position(step));
        let row = batch.row(step, self.heads.start + head);
        let held = batch.held_row(step, self.heads.start + head, *way);
        let of_held = KnownRow { weights: held.weights, facts: row.facts };
        let (_, held_weights) = self.view.take(of_held, kept, counted);
        if !counted {
            return;
        }
        exact.resize(kept.len(), 0.0);
        let found = kernels::gather(row.weights, kept, row.facts.kept_limits(), exact);
        let hits = hits(row.facts, kept, found, Some(exact));
        let counts = RowCounts::new(position, head, found.mass, row.facts.total, self.has_evicted, Some(hits));
        let output = self.outputs.as_mut().zip(batch.output(step, self.heads.start + head)).zip(held_weights);
        let output = output.map(|((outputs, whole), weights)| {
            let sink = sink_weight(held.head, position, held.weights);
            let held = HeldWeights { head: held.head, weights, sink };
            outputs.measure(whole, position, kept, exact, Some(held), (step, head))
        });
        self.meters.add_row(counts, kept, Some(exact), row.weights, output);
    }
}

/// How many of a row's marked positions are kept. Without weights it has no peak and no tie to look for.
#[inline]
fn hits(facts: &RowFacts, kept: &[Position], found: Gathered, weights: Option<&[f32]>) -> Hits {
    Hits {
        heavy: found.heavy + weights.map_or(0, |weights| facts.heavy_ties(kept, weights)),
        heavy_possible: facts.heavy,
        pivotal: found.pivotal,
        pivotal_possible: facts.pivotal,
        peak_missed: weights.is_some_and(|weights| facts.lack_a_peak(weights)),
    }
}
