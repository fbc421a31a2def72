//! Memory: what the kept keys and values take, in the bits that they are held in.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, Run, StepCounts};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("memory", "what kept keys and values take", SUMS, FIGURES, |_| Box::new(Memory::default()))
        .run(Run::WhereOffered)
        .needs(Needs::KEPT_SET.and(Needs::KEYS).and(Needs::VALUES))
        .of_lanes();

const SUMS: &[Sum] = &[
    Sum::real(
        "cache_bytes",
        "bytes",
        "keys and values held after eviction: the mean over steps, of all caches together",
    ),
    Sum::count("cache_bytes_peak", "bytes", "the most that each cache held, of all caches together"),
    Sum::count("full_bytes", "bytes", "keys and values of all positions at 16 bits, of all caches together"),
    Sum::count("kept_bytes_sum", "bytes", "sum behind token_bytes"),
    Sum::count("kept_positions_sum", "positions", "positions behind token_bytes"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "token_bytes",
        "bytes",
        Reading::Ratio("kept_bytes_sum", &["kept_positions_sum"]),
        "what a kept position takes in one cache: key and value, with their scales and zeros; the mean where caches differ",
    ),
    Figure::new(
        "memory_ratio",
        "times",
        Reading::Ratio("full_bytes", &["cache_bytes_peak"]),
        "the keys and values of all positions at 16 bits over the most that was held",
    )
    .higher_is_better(),
];

#[derive(Default)]
struct Memory {
    steps: u64,
    kept: u64,
    peak: u64,
}

impl Meter for Memory {
    fn steps(&mut self, steps: &[StepCounts]) {
        for step in steps.iter().filter(|step| !step.in_prompt) {
            let Some(held) = step.held else { continue };
            self.steps += u64::from(step.steps);
            self.kept += u64::from(step.steps) * u64::from(held.kept);
            self.peak = self.peak.max(u64::from(held.kept));
        }
    }

    fn finish(self: Box<Self>, end: &LaneEnd) -> Counted {
        let Some(bytes) = end.cache_bytes.filter(|_| self.steps > 0) else {
            return Counted::Sums(vec![None; SUMS.len()]);
        };
        let kept = self.kept * bytes.token;
        Counted::all([
            Number::Real(kept as f64 / self.steps as f64),
            Number::Count(self.peak * bytes.token),
            Number::Count(bytes.full),
            Number::Count(kept),
            Number::Count(self.kept),
        ])
    }
}
