//! Memory: bytes of keys and values held, beside what the model's own cache holds.
//!
//! Where the trace says how many KV heads a layer has, how wide their keys are and how they are stored. A
//! kept set of a layer stands for all of its KV heads. A query head with a cache of its own counts as a KV
//! head. What the model's own cache holds is everything that no later row is too late for: positions
//! beyond a layer's sliding window are not in it.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, MeterSite, Run, StepCounts};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry = MeterEntry::new(
    "memory",
    "bytes of keys and values, where the trace says the model's sizes",
    SUMS,
    FIGURES,
    |of| Box::new(Memory::new(of.site)),
)
.run(Run::ByDefault)
.needs(Needs::KEPT_SET)
.of_lanes();

const SUMS: &[Sum] = &[
    Sum::count("token_bytes", "bytes", "bytes of one position in all caches of the line"),
    Sum::real("kv_bytes_mean", "bytes", "bytes of keys and values held after eviction, mean over steps"),
    Sum::count("kv_bytes_peak", "bytes", "the most of them, cache by cache"),
    Sum::real("kv_bytes_model", "bytes", "what the model's own cache holds, mean over the same steps"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "kv_share",
    "share",
    Reading::Ratio("kv_bytes_mean", &["kv_bytes_model"]),
    "bytes held over what the model's own cache holds, both as means over steps",
)];

/// What a kept set takes, and what the model's own cache would.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bytes {
    /// Bytes of a position that the set holds.
    pub held: u64,
    /// Bytes of a position in the part of the model's own cache that serves the same heads.
    pub own: f64,
}

struct Memory {
    bytes: Option<Bytes>,
    window: usize,
    /// Position of the next step.
    next: usize,
    steps: u64,
    kept: u64,
    peak: u64,
    own: u64,
}

impl Memory {
    fn new(MeterSite { bytes, window, first, .. }: MeterSite) -> Memory {
        let window = window.map_or(usize::MAX, |window| window.saturating_sub(1));
        Memory { bytes, window, next: first.index(), steps: 0, kept: 0, peak: 0, own: 0 }
    }
}

impl Meter for Memory {
    fn steps(&mut self, steps: &[StepCounts]) {
        if self.bytes.is_none() {
            return;
        }
        for step in steps {
            let end = self.next + step.steps as usize;
            if let Some(held) = step.held.filter(|_| !step.in_prompt) {
                self.steps += u64::from(step.steps);
                self.kept += u64::from(step.steps) * u64::from(held.kept);
                self.peak = self.peak.max(u64::from(held.kept));
                self.own += (self.next..end).map(|position| self.window.min(position + 1) as u64).sum::<u64>();
            }
            self.next = end;
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        let Some(Bytes { held, own }) = self.bytes else { return Counted::Sums(vec![None; SUMS.len()]) };
        let mean =
            |sum: u64, bytes: f64| (self.steps > 0).then(|| Number::Real(sum as f64 / self.steps as f64 * bytes));
        Counted::Sums(vec![
            Some(Number::Count(held)),
            mean(self.kept, held as f64),
            Some(Number::Count(self.peak * held)),
            mean(self.own, own),
        ])
    }
}
