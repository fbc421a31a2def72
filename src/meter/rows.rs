//! Steps and rows: what the means of other meters are taken over.

use super::column::{Number, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, RowCounts, Run, StepCounts};

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("rows", "steps and rows, measured or not", SUMS, &[], |_| Box::new(Rows::default()))
        .run(Run::Always);

const SUMS: &[Sum] = &[
    Sum::count("steps", "steps", "steps measured"),
    Sum::count("rows_measured", "rows", "rows behind the means: one for each measured step and query head"),
    Sum::count("skipped_rows", "steps", "steps without usable attention"),
    Sum::count("prompt_steps", "steps", "steps of a prompt that is cut down at once: observed, not measured"),
];

#[derive(Default)]
struct Rows {
    steps: u64,
    rows: u64,
    skipped: u64,
    in_prompt: u64,
}

impl Meter for Rows {
    fn rows(&mut self, rows: &[RowCounts]) {
        self.rows += rows.len() as u64;
    }

    fn steps(&mut self, steps: &[StepCounts]) {
        for step in steps {
            let counted = match step {
                StepCounts { in_prompt: true, .. } => &mut self.in_prompt,
                StepCounts { measured: true, .. } => &mut self.steps,
                StepCounts { measured: false, .. } => &mut self.skipped,
            };
            *counted += u64::from(step.steps);
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([self.steps, self.rows, self.skipped, self.in_prompt].map(Number::Count))
    }
}
