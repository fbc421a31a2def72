//! The kept set: how many positions are held, and how they leave.

use super::column::{Figure, Merge, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, Run, StepCounts};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("kept", "how many positions are held, and how they leave", SUMS, FIGURES, |_| {
        Box::new(Kept::default())
    })
    .run(Run::ByDefault)
    .needs(Needs::KEPT_SET)
    .of_lanes();

const SUMS: &[Sum] = &[
    Sum::count("eviction_calls", "calls", "times that the policy had to evict"),
    Sum::count("evicted", "positions", "positions evicted"),
    Sum::count("expired", "positions", "positions that left because no later row can attend to them"),
    Sum::count("kept_sum", "positions", "sum behind mean_kept, over steps + skipped_rows"),
    Sum::count("peak_kept", "positions", "most positions held after eviction").merged_by(Merge::Most),
    Sum::count("prompt_peak", "positions", "most positions held while the prompt was read, before a cut")
        .merged_by(Merge::Most),
    Sum::count("state_bytes", "bytes", "policy state and 4 bytes a position, at the most slots held"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "mean_kept",
    "positions",
    Reading::Ratio("kept_sum", &["steps", "skipped_rows"]),
    "mean over steps of the positions held after eviction",
)];

#[derive(Default)]
struct Kept {
    calls: u64,
    evicted: u64,
    expired: u64,
    kept: u64,
    peak: u64,
    /// Where there are rows of a prompt.
    prompt_peak: Option<u64>,
}

impl Meter for Kept {
    fn steps(&mut self, steps: &[StepCounts]) {
        for step in steps {
            let (Some(held), steps) = (step.held, u64::from(step.steps)) else { continue };
            self.calls += steps * u64::from(held.evicted > 0);
            self.evicted += steps * u64::from(held.evicted);
            self.expired += steps * u64::from(held.expired);
            if step.in_prompt {
                self.prompt_peak = self.prompt_peak.max(Some(u64::from(held.kept) + u64::from(held.evicted)));
            } else {
                self.kept += steps * u64::from(held.kept);
                self.peak = self.peak.max(u64::from(held.kept));
            }
        }
    }

    fn finish(self: Box<Self>, end: &LaneEnd) -> Counted {
        let counted = [self.calls, self.evicted, self.expired, self.kept, self.peak].map(Some);
        let rest = [self.prompt_peak, end.state_bytes];
        Counted::Sums(counted.into_iter().chain(rest).map(|count| count.map(Number::Count)).collect())
    }
}
