//! How far two kept sets of one cache have drifted apart, step by step.

use crate::position::Position;
use crate::replay::StepRecord;

/// The Jaccard index of two kept sets over the steps that follow the first eviction of either: of all positions
/// that one of them holds, the share that both hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Overlap {
    /// Steps counted.
    pub steps: u64,
    /// Mean over these steps.
    pub mean: f64,
    /// The least of them.
    pub least: f64,
    /// After the last step.
    pub last: f64,
}

/// Follows two kept sets of one cache.
pub(super) struct Overlapping {
    /// For each position seen, a bit for each side that holds it.
    holders: Vec<u8>,
    held: [usize; 2],
    both: usize,
    window: Option<usize>,
    expired: usize,
    has_evicted: bool,
    steps: u64,
    sum: f64,
    least: f64,
    last: f64,
}

impl Overlapping {
    /// Both hold the positions before the first step; a layer of a sliding window lets go by itself.
    pub(super) fn new(first: Position, window: Option<usize>) -> Overlapping {
        let held = first.index();
        Overlapping {
            holders: vec![0b11; held],
            held: [held; 2],
            both: held,
            window,
            expired: 0,
            has_evicted: false,
            steps: 0,
            sum: 0.0,
            least: 1.0,
            last: 1.0,
        }
    }

    /// Takes a step of both sides; returns the index after it, once anything has been evicted.
    pub(super) fn step(&mut self, sides: [&StepRecord; 2]) -> Option<f64> {
        self.holders.push(0b11);
        self.held = self.held.map(|held| held + 1);
        self.both += 1;
        self.expire(sides[0].step);
        for (side, record) in sides.into_iter().enumerate() {
            record.victims.iter().for_each(|position| self.release(position.index(), side));
            self.has_evicted |= !record.victims.is_empty();
        }
        if !self.has_evicted {
            return None;
        }
        let either = self.held[0] + self.held[1] - self.both;
        self.last = if either == 0 { 1.0 } else { self.both as f64 / either as f64 };
        self.steps += 1;
        self.sum += self.last;
        self.least = self.least.min(self.last);
        Some(self.last)
    }

    fn expire(&mut self, step: Position) {
        let first = self.first_kept(step);
        for position in self.expired..first.min(self.holders.len()) {
            self.release(position, 0);
            self.release(position, 1);
        }
        self.expired = self.expired.max(first);
    }

    fn release(&mut self, position: usize, side: usize) {
        let Some(holders) = self.holders.get_mut(position).filter(|holders| **holders & (1 << side) != 0) else {
            return;
        };
        self.both -= usize::from(*holders == 0b11);
        self.held[side] -= 1;
        *holders &= !(1 << side);
    }

    /// What both hold at a step before either evicts, where they have held the same so far; ascending.
    pub(super) fn held_before(&self, step: Position) -> Vec<Position> {
        let held = self.holders.iter().enumerate().filter(|(_, holders)| **holders == 0b11);
        let held = held.map(|(position, _)| Position(position as u32)).chain([step]);
        held.filter(|position| position.index() >= self.first_kept(step)).collect()
    }

    /// The first position that has not left the layer's window after a step.
    fn first_kept(&self, step: Position) -> usize {
        self.window.map_or(0, |window| (step.index() + 2).saturating_sub(window))
    }

    /// What it came to.
    pub(super) fn finish(&self) -> Overlap {
        let mean = if self.steps == 0 { 1.0 } else { self.sum / self.steps as f64 };
        Overlap { steps: self.steps, mean, least: self.least, last: self.last }
    }
}
