//! `optimal` (a bound that knows the future): the most that a policy could retain which never takes
//! a position back.
//!
//! *Idea.* Every policy with this budget, however clever, is a plan of when each position goes; the
//! best plan is a minimum-cost assignment of evictions to positions.
//!
//! *Why that is the optimum.* Call `cost(j, t)` the attention that position `j` receives in rows
//! after step `t`: what is lost when `j` goes after `t`. A policy that never takes back loses, in
//! all, the sum of `cost(j, t)` over the positions it evicts, each at its own step; nothing else is
//! ever lost. Let `n(t)` be the number of positions that the budget forces out by the end of step
//! `t`. A policy may evict more or sooner; but weights are not negative, so `cost(j, t)` does not
//! grow with `t`, and a policy that has evicted more than `n(t)` by some step can keep the last of
//! those a step longer, or for good, at no greater loss. Hence some best policy evicts exactly
//! `n(t)` by the end of every step: one *event* for each unit by which `n` grows, one event per step
//! once the cache is full, and many at one step where a prompt is cut down at once. Such a policy
//! gives each event after step `t` a position of its own among those admitted by then, `0..=t`.
//! Conversely every such assignment is a policy: of the positions admitted by the end of step `t`,
//! exactly `n(t)` have been taken by events up to then, all distinct, which leaves no more than the
//! budget. So policies of this kind and assignments are the same things at the same cost, and the
//! cheapest assignment is the optimum. Where a layer attends through a window, a position that has
//! left it costs nothing, and an event that takes it stands for an eviction that is not needed.
//! Revisable bounds (`oracle`) retain at least as much.
//!
//! On `decode-4096` the two agree to six decimals. Above its even noise stand four sinks, a band of
//! 64 neighbours and 32 heavy hitters, and all its redraws name no more than 256 of those, so that a
//! budget of 256 always has room for everything that is or will be above the noise; and which of the
//! other positions fill the rest does not matter, since all receive the same.
//! *Paper.* None; Belady's optimum for weights instead of hits.
//! *Parameters.* None. Among plans of equal cost one is taken, always the same.
//! *Cost.* One f64 for each eviction and position it could take: about 4 `T^2` bytes for `T`
//! positions; time between quadratic and cubic. The stream is read twice before the replay.

use super::assignment::{LINE_BYTES, assign};
use super::entry::{Make, PolicyEntry};
use super::future::{Departures, Evictions, Future, Planner};
use super::future_greedy::FutureGreedy;
use crate::position::Position;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "optimal",
    "bound: knows the future, and never takes back what it evicted",
    Make::Future { plan, bytes: Optimal::bytes },
);

/// Where a prompt is cut once, and nothing leaves later, every position goes or stays for good: those that will
/// receive the most stay, at a tie the higher.
fn plan(evictions: Evictions) -> Box<dyn Planner> {
    if evictions.once { Box::new(FutureGreedy::new(evictions)) } else { Box::new(Optimal::new(evictions)) }
}

/// Bytes for each position that do not depend on the evictions.
const POSITION_BYTES: u128 = 128;

/// Plans the best evictions.
pub struct Optimal {
    evictions: Evictions,
    /// For each step with events: what evicting each position after it costs.
    costs: Vec<Vec<f64>>,
    /// For each event its step, and the index of its costs.
    events: Vec<(Position, usize)>,
}

impl Optimal {
    /// A planner of these evictions.
    pub fn new(evictions: Evictions) -> Optimal {
        Optimal { evictions, costs: Vec::new(), events: Vec::new() }
    }

    /// Bytes needed for a stream over so many positions: the costs, and what the assignment keeps.
    pub fn bytes(positions: usize, budget: usize) -> u64 {
        let [positions, first] = [positions, budget.min(positions)].map(|count| count as u128);
        let costs = (positions * (positions + 1) - first * (first + 1)) / 2 * size_of::<f64>() as u128;
        let bytes = costs + (positions - first) * LINE_BYTES as u128 + positions * POSITION_BYTES;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Planner for Optimal {
    fn after(&mut self, future: &Future) {
        let step = future.step();
        let due = self.evictions.gone_after(step);
        if due <= self.events.len() {
            return;
        }
        self.events.resize(due, (step, self.costs.len()));
        self.costs.push((0..=step.0).map(|position| future.to_come(Position(position)).as_f64()).collect());
    }

    fn departures(self: Box<Self>, planned: &dyn Fn(u64)) -> Departures {
        let lines: Vec<&[f64]> = self.events.iter().map(|(_, index)| &self.costs[*index][..]).collect();
        let mut departures = Departures::default();
        for (position, (step, _)) in assign(&lines, planned).into_iter().zip(&self.events) {
            departures.set(Position(position as u32), *step);
        }
        departures
    }
}
