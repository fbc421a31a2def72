//! `future-greedy` (knows the future, a heuristic): evicts what will receive the least from now on.
//!
//! *Idea.* Belady's rule for attention: at each eviction the position with the smallest sum of
//! weights still to come goes.
//! *Paper.* None. It is no bound: evicting a position now or later costs differently, so that the
//! best plan gives way to more than one position at a time (`optimal` finds it); but it needs little
//! memory, and stands in where a stream is too long for `optimal`.
//! *Parameters.* None. Ties evict the lower position.
//! *Cost.* 20 bytes per position; the stream is read twice before the replay, one pass over the
//! kept set per eviction.

use super::entry::{Make, PolicyEntry};
use super::future::{Departures, Evictions, Future, Planner};
use crate::position::Position;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "future-greedy",
    "heuristic: knows the future, and evicts what will receive the least",
    Make::Future {
        plan: |evictions| Box::new(FutureGreedy::new(evictions)),
        bytes: |positions, _| FutureGreedy::bytes(positions),
    },
);

/// Plans by the smallest remaining sum.
pub struct FutureGreedy {
    evictions: Evictions,
    gone: usize,
    kept: Vec<Position>,
    admitted: u32,
    departures: Departures,
}

impl FutureGreedy {
    /// A planner of these evictions.
    pub fn new(evictions: Evictions) -> FutureGreedy {
        FutureGreedy { evictions, gone: 0, kept: Vec::new(), admitted: 0, departures: Departures::default() }
    }

    /// Bytes needed for a stream over so many positions.
    pub fn bytes(positions: usize) -> u64 {
        20 * positions as u64
    }

    fn evict(&mut self, future: &Future) {
        let least = (0..self.kept.len()).min_by_key(|slot| future.to_come(self.kept[*slot]));
        if let Some(slot) = least {
            self.departures.set(self.kept.remove(slot), future.step());
        }
    }
}

impl Planner for FutureGreedy {
    fn after(&mut self, future: &Future) {
        let admitted = future.step().0 + 1;
        self.kept.extend((self.admitted..admitted).map(Position));
        self.admitted = admitted;
        let due = self.evictions.gone_after(future.step());
        (self.gone..due).for_each(|_| self.evict(future));
        self.gone = due.max(self.gone);
    }

    fn departures(self: Box<Self>, _planned: &dyn Fn(u64)) -> Departures {
        self.departures
    }
}
