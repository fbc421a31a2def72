//! A lane of a selector: nothing is evicted, and of each row it counts what is read.

use super::lane_meters::{Counts, LaneMeters};
use super::lane_site::LaneSite;
use super::row_facts::RowFacts;
use super::schedule::Schedule;
use super::section::HeadRange;
use super::step_batch::StepBatch;
use crate::meter::{Hits, LaneEnd, Reads, RowCounts, StepCounts, Tally};
use crate::needs::Needs;
use crate::policy::oracle::Oracle;
use crate::policy::selector::Selector;
use crate::policy::{Bound, BoundRow};
use crate::position::Position;

pub(super) struct SelectorLane {
    selector: Box<dyn Selector>,
    heads: HeadRange,
    schedule: Schedule,
    window: Option<usize>,
    meters: LaneMeters,
    reads: Reads,
}

impl SelectorLane {
    pub(super) fn new(site: &LaneSite<'_>, selector: Box<dyn Selector>) -> SelectorLane {
        let LaneSite { heads, schedule, window, .. } = *site;
        let meters = LaneMeters::new(site.meters, Needs::HITS.and(Needs::READS), site.counted);
        SelectorLane { selector, heads, schedule, window, meters, reads: Reads::default() }
    }

    pub(super) fn run(&mut self, batch: &StepBatch, counts: &mut Counts) {
        self.meters.swap(counts);
        for step in 0..batch.len() {
            let position = batch.position(step);
            let in_prompt = self.schedule.is_in_prompt(position);
            let known = batch.is_known(step, self.heads);
            if known {
                (0..self.heads.len()).for_each(|head| self.see(batch, step, head, in_prompt));
            }
            self.meters.add_step(StepCounts::new(in_prompt, known && !in_prompt, None));
        }
        self.meters.flush();
        self.meters.swap(counts);
    }

    /// Shows a row of the prompt, measures what is read of a later one.
    fn see(&mut self, batch: &StepBatch, step: usize, head: usize, in_prompt: bool) {
        let (row, position) = (batch.row(step, self.heads.start + head), batch.position(step));
        let alive = &row.weights[self.first_in_window(position)..];
        if in_prompt {
            // A window of the token alone leaves nothing of a row without it.
            if !alive.is_empty() {
                self.selector.prepare(head, alive);
            }
            return;
        }
        let read = self.selector.read(head, alive);
        self.reads.add(read);
        let retained = Oracle.retained(BoundRow::new(alive, read));
        let some_left = alive.len() > read;
        let counts = RowCounts::new(position, head, retained, row.facts.total, some_left, Some(hits(row.facts, read)));
        self.meters.add_row(counts, &[], None, row.weights, None);
    }

    fn first_in_window(&self, step: Position) -> usize {
        self.window.map_or(0, |window| (step.index() + 1).saturating_sub(window))
    }

    pub(super) fn finish(self) -> Tally {
        let laws = (0..self.heads.len()).filter_map(|head| self.selector.law(head)).collect();
        self.meters.finish(&LaneEnd::of_selector(self.reads, laws))
    }
}

/// How many of a row's marked positions are among the heaviest that are read.
fn hits(facts: &RowFacts, read: usize) -> Hits {
    let read = read as u32;
    Hits {
        heavy: read.min(facts.heavy),
        heavy_possible: facts.heavy,
        pivotal: read.min(facts.pivotal),
        pivotal_possible: facts.pivotal,
        peak_missed: read < facts.peaks,
    }
}
