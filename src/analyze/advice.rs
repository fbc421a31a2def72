//! Advice: which recent window and which budget are enough on this trace, per policy.
//!
//! A sweep replays the trace through a few policies, at some budgets and recent windows, all caches
//! together (sums over sums). *Enough* means within a tolerance of the best, in retained mass: at one
//! budget, of that policy's best window; for the recommendation, of that policy's best figure in the
//! whole sweep. *Headroom* is what the policy retains over what could have been retained at that budget
//! at most, so that it tells whether a better policy is worth looking for. The answer is no finer than
//! the sweep, which is why it says what it swept. The sweep is an experiment like any
//! other; knows no rows.

mod choice;

pub use choice::Choice;

use crate::error::Result;
use crate::experiment::{Budget, LaneRequest};
use crate::policy::parameter::{RECENT_WINDOW, Value};
use crate::policy::spec::PolicySpec;
use crate::policy::table::{PolicyEntry, find};
use crate::replay::{CachePlan, LanePlan, Observer, Options, Outcome, Tally, planning_bytes, replay};
use crate::trace::Source;
use choice::{Point, Points};
use serde::Serialize;

/// The policies that are swept.
const POLICIES: [&str; 5] = ["h2o", "scissorhands", "tova", "snapkv", "streaming-llm"];

/// The bound of single rows, which runs always.
const ORACLE: &str = "oracle";

/// The exact optimum takes time quadratic in the positions, for each cache and budget. Up to this many
/// squares in all it is worth the wait, which is some seconds: 2,896 positions at 4 budgets.
const OPTIMAL_WORK: u64 = 1 << 25;

/// What to sweep, and how close to the best is enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Budgets, ascending.
    pub budgets: Vec<usize>,
    /// Recent windows, ascending; those that leave nothing to choose between are left out.
    pub windows: Vec<usize>,
    /// How much less retained mass than the best is as good.
    pub tolerance: f64,
}

impl Sweep {
    /// From a 32nd to a half of the positions; windows of 0 and powers of two from 8 to an eighth of the
    /// positions.
    pub fn of(positions: usize, tolerance: f64) -> Sweep {
        let mut budgets: Vec<usize> = [32, 16, 8, 4, 2].map(|part| (positions / part).max(1)).to_vec();
        budgets.dedup();
        let powers = (3..usize::BITS).map(|power| 1 << power);
        let windows = [0].into_iter().chain(powers.take_while(|window| *window <= positions / 8)).collect();
        Sweep { budgets, windows, tolerance }
    }

    /// The lanes of the sweep on a trace: the policies, and the closest bound that takes neither too long nor
    /// too much memory. A policy without a recent window runs once at each budget.
    pub fn lanes(&self, source: &dyn Source, caches: &[CachePlan], options: &Options) -> Vec<LanePlan> {
        let bound = bound_for(source, caches, self, options);
        let mut bounds = vec![bound, entry(ORACLE)];
        bounds.dedup_by_key(|bound| bound.name);
        let request = LaneRequest {
            policies: POLICIES.iter().map(|name| entry(name)).chain(bounds).map(PolicySpec::plain).collect(),
            budgets: self.budgets.iter().map(|budget| Budget::Count(*budget)).collect(),
            values: vec![(&RECENT_WINDOW, self.windows.iter().map(|window| Value::Count(*window)).collect())],
            skip_refused: true,
            ..LaneRequest::default()
        };
        let keeping = request.keeping.of(source.info()).expect("no prompt is asked for");
        request.lanes(source.info().positions, caches, &options.budgets, &keeping).possible
    }
}

/// What a sweep says.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The policies swept.
    pub policies: Vec<&'static str>,
    /// The budgets swept.
    pub budgets: Vec<usize>,
    /// The recent windows swept, each at the budgets above it, for the policies that have one.
    pub windows: Vec<usize>,
    /// Number of lanes that ran, those of the bound included.
    pub lanes: usize,
    /// Number of caches that were replayed and combined.
    pub caches: usize,
    /// How much less retained mass than the best counts as enough.
    pub tolerance: f64,
    /// What could have been retained at most: `optimal`, or `oracle` where that takes too long.
    pub bound: &'static str,
    /// What `oracle` retains at each budget, which is what laws of single rows predict.
    pub oracle: Vec<f64>,
    /// For each policy the smallest budget that is enough, and at it the smallest window that is.
    pub recommended: Vec<Choice>,
    /// For each policy and budget the smallest window that is enough there.
    pub at_budgets: Vec<Choice>,
}

/// Sweeps the caches of a trace.
///
/// # Errors
/// When a budget is impossible, the trace cannot be read, or is no attention.
pub fn advise(
    source: &dyn Source,
    caches: &[CachePlan],
    options: &Options,
    sweep: &Sweep,
    observer: &dyn Observer,
) -> Result<Advice> {
    let bound = bound_for(source, caches, sweep, options);
    let lanes = sweep.lanes(source, caches, options);
    let outcomes = replay(source, caches, &lanes, options, observer)?;
    let points = Points { points: points(&lanes, &outcomes), bound: bound.name, tolerance: sweep.tolerance };
    Ok(Advice {
        policies: POLICIES.to_vec(),
        budgets: sweep.budgets.clone(),
        windows: sweep.windows.clone(),
        lanes: lanes.len(),
        caches: caches.len(),
        tolerance: sweep.tolerance,
        bound: bound.name,
        oracle: points.of(ORACLE, &sweep.budgets),
        recommended: POLICIES.iter().filter_map(|policy| points.choose(|point| point.policy == *policy)).collect(),
        at_budgets: POLICIES.iter().flat_map(|policy| points.at_budgets(policy, &sweep.budgets)).collect(),
    })
}

/// The closest bound that takes neither too long nor too much memory.
fn bound_for(source: &dyn Source, caches: &[CachePlan], sweep: &Sweep, options: &Options) -> &'static PolicyEntry {
    let squares = (source.info().positions as u64).saturating_pow(2);
    let work = squares.saturating_mul((caches.len() * sweep.budgets.len()) as u64);
    // The smallest budget plans the most evictions.
    let least = sweep.budgets.first().copied().unwrap_or(0);
    let bytes = |plan: &LanePlan, cache| planning_bytes(source, cache, plan, least, options);
    let fits = |plan: &LanePlan| caches.iter().all(|cache| bytes(plan, cache) <= options.max_memory);
    let optimal = find("optimal").filter(|optimal| work <= OPTIMAL_WORK && fits(&LanePlan::new(optimal, least)));
    optimal.unwrap_or_else(|| entry(ORACLE))
}

fn entry(name: &str) -> &'static PolicyEntry {
    find(name).expect("the table of policies holds what is swept")
}

/// One point for each lane that measured a row, all caches combined.
fn points(lanes: &[LanePlan], outcomes: &[Outcome]) -> Vec<Point> {
    let point = |(index, lane): (usize, &LanePlan)| {
        let mut tally = Tally::default();
        outcomes.iter().for_each(|outcome| tally.merge(&outcome.tallies[index]));
        let window = lane.entry.takes(&RECENT_WINDOW).then(|| lane.values.count(&RECENT_WINDOW));
        let policy = lane.entry.name;
        let retained = tally.figure("retained_mass")?;
        Some(Point { policy, budget: lane.budget.unwrap_or(0), window, retained })
    };
    lanes.iter().enumerate().filter_map(point).collect()
}
