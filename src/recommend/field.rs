//! The traces of a question, and what candidates keep on them: many candidates and budgets in one pass.

use super::blocks::{self, LOSS};
use super::candidates::Candidate;
use super::cost::{Cost, ModelCost};
use super::resample::Units;
use super::sums::RowSums;
use crate::budgets::CacheBudgets;
use crate::error::{Error, Result};
use crate::experiment::{Budget, KeepingRequest, Listener, OpenTrace, Remark, Selection, Severity, Work};
use crate::keeping::{Keeping, PromptMode};
use crate::meter::{METERS, MeterPlan};
use crate::replay::{LanePlan, Observer, Options, Outcome, replay};
use crate::trace::StreamLabel;
use crate::trace::options::ReadOptions;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What is opened, and how caches are kept.
#[derive(Clone, Default)]
pub struct Ground {
    /// Trace files or built-in names.
    pub traces: Vec<OsString>,
    /// How they are read, where they do not say it.
    pub read: ReadOptions,
    /// Which streams are used, and as which caches.
    pub streams: Selection,
    /// How caches are kept: one way, whatever the policy. Where nothing is said of a prompt that a trace knows,
    /// it is cut at its end, as servers do.
    pub keeping: KeepingRequest,
    /// How replays are run.
    pub options: Options,
    /// Whether a tenth of the caches stands for all.
    pub quick: bool,
}

/// Is told of each pass over the traces before it begins, and what happens in it.
pub trait Passes {
    /// One more replay begins.
    fn begin(&self, work: Work) -> Box<dyn Observer + '_>;
}

/// Traces that have been opened.
pub struct Field {
    traces: Vec<Opened>,
    options: Options,
    /// The meter of the predicted loss, where every trace has what it needs.
    loss: Option<MeterPlan>,
}

struct Opened {
    trace: OpenTrace,
    keeping: KeepingRequest,
    /// Caches that there are, of which some may stand for all.
    caches: usize,
    /// What the model's caches take.
    cost: ModelCost,
    /// Rows of a stream that are measured.
    rows: usize,
    /// Steps of a block.
    block: usize,
}

/// One candidate at a budget.
#[derive(Clone)]
pub struct Ask {
    /// The candidate.
    pub candidate: Candidate,
    /// Its budget.
    pub budget: Budget,
}

/// What a candidate kept at a budget on every trace.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Trace by trace.
    pub traces: Vec<OnTrace>,
}

/// What a lane kept on one trace.
#[derive(Clone, Debug)]
pub struct OnTrace {
    /// Positions that it held at most, on average of its caches.
    pub budget: usize,
    /// How its caches were kept.
    pub keeping: Keeping,
    /// What a sequence takes.
    pub cost: Cost,
    /// Cache by cache.
    pub caches: Vec<OfCache>,
    /// What is drawn in a bootstrap: blocks of rows, cache by cache where these are a sample.
    units: Vec<RowSums>,
}

/// What a lane kept of one cache.
#[derive(Clone, Debug)]
pub struct OfCache {
    /// Layer and head.
    pub label: StreamLabel,
    /// Most positions that it held.
    pub budget: usize,
    /// The sums of its rows.
    pub sums: RowSums,
}

/// At most so many blocks of a trace's rows are drawn.
const MOST_BLOCKS: usize = 64;
/// A block is at least so long, where that leaves some to draw from.
const SHORTEST_BLOCK: usize = 16;
/// Fewer blocks than these say nothing.
const FEWEST_BLOCKS: usize = 8;
/// Of so many caches one stands for the others in a quick answer, but never less than a few.
const SAMPLED: usize = 10;
const FEWEST_CACHES: usize = 6;
/// Lanes of one pass: each takes memory for every cache.
const MOST_LANES: usize = 256;
/// A predicted loss takes numbers for every row of every cache.
const MOST_LANES_WITH_LOSS: usize = 32;

impl Field {
    /// Opens the traces.
    ///
    /// # Errors
    /// When one cannot be read, has no such streams, or is shorter than its prompt.
    pub fn open(ground: &Ground, listener: &mut Listener<'_>) -> Result<Field> {
        let traces = ground.traces.iter().map(|trace| open(ground, trace, listener)).collect::<Result<Vec<_>>>()?;
        if traces.is_empty() {
            return Err(Error::usage("name a trace: what is best depends on the attention of the model"));
        }
        let loss = loss_meter(&traces, ground.quick);
        Ok(Field { traces, options: ground.options.clone(), loss })
    }

    /// The traces.
    pub fn traces(&self) -> impl Iterator<Item = &OpenTrace> {
        self.traces.iter().map(|opened| &opened.trace)
    }

    /// Positions of the shortest trace.
    pub fn positions(&self) -> usize {
        self.traces().map(|trace| trace.chosen.positions).min().unwrap_or(0)
    }

    /// The prompt that is cut at its end, trace by trace; `None` where the budget holds from the first row.
    pub fn prompts(&self) -> impl Iterator<Item = Option<usize>> {
        self.traces.iter().map(|opened| match opened.keeping.prompts[..] {
            [] | [PromptMode::Stream] => None,
            _ => opened.keeping.prompt_len.or(opened.trace.info().facts.prompt_len),
        })
    }

    /// Whether the predicted loss is counted.
    pub fn has_loss(&self) -> bool {
        self.loss.is_some()
    }

    /// For one trace: whether some of its caches stand for all.
    pub fn is_sampled(&self) -> bool {
        self.traces.iter().any(|opened| opened.trace.chosen.caches.len() < opened.caches)
    }

    /// Caches that are replayed, and caches that there are, of the first trace.
    pub fn caches(&self) -> (usize, usize) {
        self.traces.first().map_or((0, 0), |opened| (opened.trace.chosen.caches.len(), opened.caches))
    }

    /// Blocks of rows of the first trace.
    pub fn blocks(&self) -> usize {
        self.traces.first().map_or(0, |opened| opened.rows.div_ceil(opened.block))
    }

    /// The traces without the last, and the last alone.
    pub(super) fn split_last(mut self) -> (Field, Option<Field>) {
        let last = if self.traces.len() > 1 { self.traces.pop() } else { None };
        let (options, loss) = (self.options.clone(), self.loss.clone());
        (self, last.map(|last| Field { traces: vec![last], options, loss }))
    }

    /// What each of these keeps on every trace; `None` where that is impossible on one.
    ///
    /// # Errors
    /// As [`replay`].
    pub fn measure(&self, asks: &[Ask], how: &How<'_>) -> Result<Vec<Option<Measured>>> {
        let mut measured = Vec::new();
        let most = if self.loss.is_some() { MOST_LANES_WITH_LOSS } else { MOST_LANES };
        for asks in asks.chunks(most) {
            measured.extend(self.measure_some(asks, how)?);
        }
        Ok(measured)
    }

    fn measure_some(&self, asks: &[Ask], how: &How<'_>) -> Result<Vec<Option<Measured>>> {
        let mut all: Vec<Option<Measured>> = vec![Some(Measured { traces: Vec::new() }); asks.len()];
        for opened in &self.traces {
            let on_trace = opened.measure(asks, self, how)?;
            for (measured, on_trace) in all.iter_mut().zip(on_trace) {
                *measured = measured.take().zip(on_trace).map(|(mut measured, on_trace)| {
                    measured.traces.push(on_trace);
                    measured
                });
            }
        }
        Ok(all)
    }

    /// What is drawn of the measured traces in a bootstrap.
    pub(super) fn units(&self, measured: &Measured) -> Units {
        let several = self.traces.len() > 1;
        let caches = if self.is_sampled() && !several { measured.traces[0].caches.len() } else { 1 };
        let blocks = if several { 1 } else { measured.traces[0].units.len() / caches.max(1) };
        Units { traces: self.traces.len(), caches, blocks }
    }
}

/// How a pass is run.
pub struct How<'a> {
    /// How budgets are dealt out to caches.
    pub budgets: &'a CacheBudgets,
    /// The first step whose rows count.
    pub from: usize,
    /// Who is told of it.
    pub passes: &'a dyn Passes,
}

impl Measured {
    /// The sums of all rows of all traces.
    pub fn sums(&self) -> RowSums {
        self.without(usize::MAX)
    }

    /// The sums of all traces but one.
    pub fn without(&self, trace: usize) -> RowSums {
        let others = self.traces.iter().enumerate().filter(|(index, _)| *index != trace);
        RowSums::sum(others.flat_map(|(_, on_trace)| &on_trace.units))
    }

    /// The units that are drawn of these traces: blocks of one, or each of several.
    pub(super) fn units(&self) -> Vec<RowSums> {
        match &self.traces[..] {
            [only] => only.units.clone(),
            several => several.iter().map(|on_trace| RowSums::sum(&on_trace.units)).collect(),
        }
    }
}

fn open(ground: &Ground, trace: &OsString, listener: &mut Listener<'_>) -> Result<Opened> {
    let Ground { read, streams, options, .. } = ground;
    let mut trace = OpenTrace::open(trace, read, streams, options.steps, listener)?;
    let keeping = served(&ground.keeping, &trace);
    keeping.of(trace.info())?;
    let (caches, cost) = (trace.chosen.caches.len(), ModelCost::of(&trace));
    if ground.quick {
        trace.chosen.caches = sample(std::mem::take(&mut trace.chosen.caches));
    }
    let prompt = if keeping.prompts.is_empty() { None } else { keeping.prompt_len.or(trace.info().facts.prompt_len) };
    let first = trace.info().first_position.index();
    let rows = trace.rows().max().unwrap_or(0).saturating_sub(prompt.unwrap_or(0).saturating_sub(first));
    if rows == 0 {
        let text = "there is no row to measure".to_owned();
        listener(Remark { severity: Severity::Warning, trace: trace.info().name.clone(), text });
    }
    Ok(Opened { trace, keeping, caches, cost, rows, block: block_of(rows) })
}

/// The meter of the predicted loss, which is of all caches together, where every trace has what it needs.
fn loss_meter(traces: &[Opened], quick: bool) -> Option<MeterPlan> {
    let entry = METERS.iter().find(|entry| entry.name == LOSS)?;
    let can = |opened: &Opened| entry.needs.missing_in(opened.trace.source.offers()).is_none();
    (!quick && traces.iter().all(can)).then(|| MeterPlan::new(entry))
}

/// The keeping that was asked for; where it is silent about a prompt that is known, that of a server.
fn served(asked: &KeepingRequest, trace: &OpenTrace) -> KeepingRequest {
    let mut keeping = asked.clone();
    let known = trace.info().facts.prompt_len.filter(|len| *len < trace.chosen.positions);
    if keeping.prompts.is_empty() && (known.is_some() || keeping.prompt_len.is_some()) {
        keeping.prompts = vec![PromptMode::Block];
    }
    keeping
}

/// Steps of a block, where so many rows are measured.
fn block_of(rows: usize) -> usize {
    let length = rows.div_ceil(MOST_BLOCKS).max(SHORTEST_BLOCK);
    if rows / length < FEWEST_BLOCKS { (rows / FEWEST_BLOCKS).max(1) } else { length }
}

/// Every so many-th cache: of every part of the model, and of different heads.
fn sample<T>(caches: Vec<T>) -> Vec<T> {
    let count = caches.len().div_ceil(SAMPLED).max(FEWEST_CACHES.min(caches.len()));
    let all = caches.len();
    // The middle of each of `count` equal parts.
    let mut wanted = (0..count).map(|part| (2 * part + 1) * all / (2 * count)).peekable();
    let is_wanted = |index: &usize| wanted.next_if_eq(index).is_some();
    let mut indices = (0..all).map({
        let mut is_wanted = is_wanted;
        move |index| is_wanted(&index)
    });
    caches.into_iter().filter(|_| indices.next().unwrap_or(false)).collect()
}

impl Opened {
    fn measure(&self, asks: &[Ask], field: &Field, how: &How<'_>) -> Result<Vec<Option<OnTrace>>> {
        let meters = std::iter::once(blocks::meter(self.block, how.from)).chain(field.loss.clone());
        let options = Options { meters: meters.collect(), budgets: how.budgets.clone(), ..field.options.clone() };
        let (lanes, places) = self.lanes(asks, &options)?;
        if lanes.is_empty() {
            return Ok(vec![None; asks.len()]);
        }
        let observer = how.passes.begin(Work::of(&self.trace, &lanes, &options));
        let outcomes = replay(&*self.trace.source, self.trace.caches(), &lanes, &options, &*observer)?;
        let measured: Vec<OnTrace> =
            lanes.iter().enumerate().map(|(at, lane)| self.on_trace(lane, at, &outcomes, &options)).collect();
        Ok(places.into_iter().map(|place| place.map(|place| measured[place].clone())).collect())
    }

    /// The lanes that are possible, each once, and which of them each question is about.
    fn lanes(&self, asks: &[Ask], options: &Options) -> Result<(Vec<LanePlan>, Vec<Option<usize>>)> {
        let (mut lanes, mut known, mut places) = (Vec::new(), BTreeMap::new(), Vec::new());
        let keeping = self.keeping.of(self.trace.info())?;
        for ask in asks {
            let entry = ask.candidate.entry;
            let is_given = entry.needs.missing_in(self.trace.source.offers()).is_none();
            let ways = is_given.then(|| keeping.all_for(entry).ok()).flatten();
            let plan = ways.and_then(|ways| ways.first().copied());
            let plan = plan.map(|keeping| self.plan(ask, keeping));
            let plan = plan.filter(|plan| plan.budgets_on(self.trace.caches(), &options.budgets).is_ok());
            places.push(plan.map(|plan| {
                *known.entry(in_words(&plan, options.budgets.is_uniform())).or_insert_with(|| {
                    lanes.push(plan);
                    lanes.len() - 1
                })
            }));
        }
        Ok((lanes, places))
    }

    fn plan(&self, ask: &Ask, keeping: Keeping) -> LanePlan {
        let budget = ask.budget.resolve(self.trace.chosen.positions);
        LanePlan { values: ask.candidate.values.clone(), keeping, ..LanePlan::new(ask.candidate.entry, budget) }
    }

    fn on_trace(&self, lane: &LanePlan, at: usize, outcomes: &[Outcome], options: &Options) -> OnTrace {
        let budgets = lane.budgets_on(self.trace.caches(), &options.budgets).unwrap_or_default();
        let held = outcomes.iter().filter(|outcome| !outcome.tallies[at].is_empty());
        let counted: Vec<(&Outcome, Vec<RowSums>)> =
            held.map(|outcome| (outcome, blocks::counted(&outcome.tallies[at]))).collect();
        let of_cache = |((outcome, blocks), budget): (&(&Outcome, Vec<RowSums>), usize)| OfCache {
            label: outcome.cache.label.clone(),
            budget,
            sums: RowSums::sum(blocks),
        };
        let budgets = budgets.iter().map(|cache| cache.budget);
        let caches: Vec<OfCache> = counted.iter().zip(budgets).map(of_cache).collect();
        let is_sample = self.trace.chosen.caches.len() < self.caches;
        let mut units = if is_sample { each(&counted) } else { together(&counted) };
        if options.meters.len() > 1 {
            let steps = self.trace.info().first_position.index() + self.trace.rows().max().unwrap_or(0);
            blocks::add_changes(&mut units, outcomes.iter().map(|outcome| &outcome.tallies[at]), steps, self.block);
        }
        let budget = lane.budget.unwrap_or(usize::MAX);
        OnTrace { budget, keeping: lane.keeping, cost: self.cost.cost(budget, lane.keeping, &caches), caches, units }
    }
}

/// The blocks of each cache, one cache after the other.
fn each(counted: &[(&Outcome, Vec<RowSums>)]) -> Vec<RowSums> {
    counted.iter().flat_map(|(_, blocks)| blocks.iter().copied()).collect()
}

/// The blocks of all caches together.
fn together(counted: &[(&Outcome, Vec<RowSums>)]) -> Vec<RowSums> {
    let length = counted.iter().map(|(_, blocks)| blocks.len()).max().unwrap_or(0);
    (0..length).map(|block| RowSums::sum(counted.iter().filter_map(|(_, blocks)| blocks.get(block)))).collect()
}

/// What tells a lane from others: shares of a budget that is the same for all caches are the counts that they
/// come to.
fn in_words(plan: &LanePlan, same_everywhere: bool) -> String {
    let values = match plan.budget {
        Some(budget) if same_everywhere && plan.entry.deals.is_none() => plan.values.at_budget(budget),
        _ => plan.values.clone(),
    };
    let start = format!("{} {:?}", plan.entry.name, plan.budget);
    values.iter().fold(start, |text, (name, value)| text + " " + name + "=" + &value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all_and_never_empty() {
        assert_eq!(sample((0..90).collect()), [5, 15, 25, 35, 45, 55, 65, 75, 85]);
        assert_eq!(sample((0..12).collect()), [1, 3, 5, 7, 9, 11]);
        assert_eq!(sample((0..3).collect()), [0, 1, 2]);
    }

    #[test]
    fn there_are_some_blocks_and_not_too_many() {
        assert_eq!([0, 5, 100, 128, 384, 4096].map(block_of), [1, 1, 12, 16, 16, 64]);
    }
}
