//! Knowledge of the future, for bounds alone: how much attention each position will still receive.
//!
//! One cursor carries it. The engine reads the whole stream once to foresee it, then passes it step
//! by step; a [`Planner`] looks at the cursor after each step and ends up with a [`Departures`], which
//! the ordinary lane replays as the kept set that it is. Policies never meet the cursor.

use super::{Admission, Overflow, Policy, choose_lowest};
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

/// Parts that the unit of attention is counted in.
const UNIT: f64 = (1_u128 << 64) as f64;

/// An amount of attention in fixed point: what was added can be taken away again without a rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Mass(u128);

impl Mass {
    fn of(weight: f32) -> Mass {
        Mass((f64::from(weight) * UNIT) as u128)
    }

    /// The amount in units of attention.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / UNIT
    }
}

/// What every position will still receive, seen from after a step. Query heads are added up.
#[derive(Default)]
pub struct Future {
    step: Position,
    to_come: Vec<Mass>,
}

impl Future {
    /// Counts a row that lies ahead, from a position on: what is before it has left the layer's window.
    pub(crate) fn foresee(&mut self, row: &[f32], from: Position) {
        self.to_come.resize(self.to_come.len().max(row.len()), Mass::default());
        for (mass, weight) in self.to_come.iter_mut().zip(row).skip(from.index()) {
            mass.0 = mass.0.saturating_add(Mass::of(*weight).0);
        }
    }

    /// Leaves a row behind, from the same position on.
    pub(crate) fn pass(&mut self, row: &[f32], from: Position) {
        for (mass, weight) in self.to_come.iter_mut().zip(row).skip(from.index()) {
            mass.0 = mass.0.saturating_sub(Mass::of(*weight).0);
        }
    }

    /// Stands after all rows of `step`.
    pub(crate) fn stand_after(&mut self, step: Position) {
        self.step = step;
    }

    /// The step just past: positions up to it have been admitted.
    pub fn step(&self) -> Position {
        self.step
    }

    /// The attention that a position receives in all later rows.
    pub fn to_come(&self, position: Position) -> Mass {
        self.to_come.get(position.index()).copied().unwrap_or_default()
    }
}

/// When evictions are due: the budget holds from a step on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evictions {
    /// Most positions held between steps.
    pub budget: usize,
    /// The step after which the budget holds for the first time.
    pub from: Position,
    /// Whether every later position stays.
    pub once: bool,
}

impl Evictions {
    /// Number of positions that must have gone once `step` is over.
    pub fn gone_after(self, step: Position) -> usize {
        let last = if self.once { self.from } else { step };
        if step < self.from { 0 } else { (last.index() + 1).saturating_sub(self.budget) }
    }
}

/// Decides ahead of the replay when each position goes.
pub trait Planner {
    /// A step is over; called once for each, in order.
    fn after(&mut self, future: &Future);

    /// The plan, once the last step is over; where that takes time, `planned` is told of evictions as they
    /// are decided.
    fn departures(self: Box<Self>, planned: &dyn Fn(u64)) -> Departures;
}

/// The step after which each position goes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Departures {
    leaves: Vec<Position>,
}

/// Later than every step.
const NEVER: Position = Position(u32::MAX);

impl Departures {
    /// Has a position go after `step`.
    pub fn set(&mut self, position: Position, step: Position) {
        if self.leaves.len() <= position.index() {
            self.leaves.resize(position.index() + 1, NEVER);
        }
        self.leaves[position.index()] = step;
    }

    /// The step after which a position goes, `u32::MAX` where it stays.
    pub fn leaves(&self, position: Position) -> Position {
        self.leaves.get(position.index()).copied().unwrap_or(NEVER)
    }
}

/// Replays a plan: the positions that are due first go first.
pub struct Departing {
    departures: Departures,
    /// The step after which each slot goes.
    leaves: SlotVec<u32>,
}

impl Departing {
    /// The policy of a plan, for a cache of about `budget` slots.
    pub fn new(departures: Departures, budget: usize) -> Departing {
        Departing { departures, leaves: SlotVec::with_capacity(budget) }
    }
}

impl Policy for Departing {
    fn admit(&mut self, admission: Admission<'_>) {
        self.leaves.push(self.departures.leaves(admission.position).0);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        choose_lowest(&self.leaves, self.leaves.len(), overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.leaves.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.leaves.len())
    }

    fn slot_bytes(&self) -> usize {
        size_of::<u32>()
    }

    fn fixed_bytes(&self) -> usize {
        self.departures.leaves.len() * size_of::<Position>()
    }
}
