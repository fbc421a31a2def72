//! The meters of one lane on one cache: hands them what the engine counts, a batch at a time, and what
//! they need beyond that, row by row.

use crate::meter::{
    KeptRow, LaneEnd, Meter, MeterEntry, MeterPlan, MeterSite, OutputRow, RowCounts, StepCounts, Tally,
};
use crate::needs::Needs;
use crate::position::Position;

/// What a lane's meters have counted, and what they are still to count.
pub(super) struct LaneMeters {
    plans: Vec<MeterPlan>,
    site: MeterSite,
    running: Running,
    counts: Counts,
    /// The step under way, where steps are recorded.
    recording: Option<Recording>,
}

/// A step that is recorded besides being counted.
struct Recording {
    running: Running,
    /// Rows that were counted before it.
    rows_before: usize,
    step: Option<StepCounts>,
}

/// What a policy's lane has.
pub(super) const OF_POLICIES: Needs = Needs::KEPT_SET.and(Needs::KEPT_WEIGHTS).and(Needs::HITS);

/// What lanes have or not, by their kind.
const OF_LANES: Needs = OF_POLICIES.and(Needs::READS);

/// What the engine has counted and meters have not. A thread's lanes, which take turns, write to the
/// same ones: they stay near.
#[derive(Default)]
pub(super) struct Counts {
    rows: Vec<RowCounts>,
    steps: Vec<StepCounts>,
}

impl LaneMeters {
    /// The meters of a plan that get by with what a lane has: one without a kept set runs fewer.
    pub(super) fn new(plans: &[MeterPlan], has: Needs, site: MeterSite) -> LaneMeters {
        let missing = OF_LANES.without(has);
        let possible = |plan: &&MeterPlan| !plan.entry.needs.has_any(missing);
        let plans: Vec<MeterPlan> = plans.iter().filter(possible).cloned().collect();
        let running = Running::start(plans.iter(), site);
        LaneMeters { plans, site, running, counts: Counts::default(), recording: None }
    }

    /// Whether a meter looks at the weights of kept positions.
    #[inline]
    pub(super) fn look_at_weights(&self) -> bool {
        self.running.needs.has(Needs::KEPT_WEIGHTS)
    }

    /// Shows what is held at the end of a step, where a meter looks at it.
    #[inline]
    pub(super) fn show_held(&mut self, step: Position, kept: &[Position]) {
        if self.running.needs.has(Needs::HELD_POSITIONS) {
            self.running.meters.iter_mut().for_each(|(_, meter)| meter.held(step, kept));
        }
    }

    /// Whether a meter looks at outputs, and whether one does at those of whole layers.
    pub(super) fn look_at_outputs(&self) -> [bool; 2] {
        [Needs::VALUES, Needs::PROJECTION].map(|need| self.running.needs.has(need))
    }

    /// Begins a step that is to be recorded.
    pub(super) fn start_recording(&mut self) {
        let by_step = self.plans.iter().filter(|plan| plan.entry.by_step);
        let running = Running::start(by_step, self.site);
        self.recording = Some(Recording { running, rows_before: self.counts.rows.len(), step: None });
    }

    /// What was counted of the step under way.
    pub(super) fn recorded(&mut self) -> Tally {
        let Recording { mut running, rows_before, step } = self.recording.take().expect("the step was begun");
        running.count(&self.counts.rows[rows_before..], step.as_slice());
        running.finish(&LaneEnd::new(None))
    }

    /// Takes in a measured row.
    #[inline]
    pub(super) fn add_row(
        &mut self,
        counts: RowCounts,
        positions: &[Position],
        weights: Option<&[f32]>,
        row: &[f32],
        output: Option<OutputRow<'_>>,
    ) {
        self.counts.rows.push(counts);
        if self.running.by_row {
            let seen = KeptRow::new(counts, positions, weights, row).handing_on(output);
            self.running.look_at(seen);
            self.recording.iter_mut().for_each(|step| step.running.look_at(seen));
        }
    }

    /// Takes in a step.
    #[inline]
    pub(super) fn add_step(&mut self, counts: StepCounts) {
        if let Some(recording) = &mut self.recording {
            recording.step = Some(counts);
        }
        match self.counts.steps.last_mut() {
            Some(last) if last.are_like(&counts) => last.steps += 1,
            _ => self.counts.steps.push(counts),
        }
    }

    /// Hands on what was counted: once a batch, so that meters cost no call a row.
    pub(super) fn flush(&mut self) {
        self.running.count(&self.counts.rows, &self.counts.steps);
        self.counts.rows.clear();
        self.counts.steps.clear();
    }

    /// Exchanges the counts, which are empty between batches.
    #[inline]
    pub(super) fn swap(&mut self, counts: &mut Counts) {
        std::mem::swap(&mut self.counts, counts);
    }

    pub(super) fn finish(mut self, end: &LaneEnd) -> Tally {
        self.flush();
        self.running.finish(end)
    }
}

/// Meters at work.
struct Running {
    meters: Vec<(&'static MeterEntry, Box<dyn Meter>)>,
    needs: Needs,
    /// Whether any looks at rows one by one.
    by_row: bool,
}

/// What makes a meter look at rows one by one.
const OF_ROWS: Needs = Needs::KEPT_WEIGHTS.and(Needs::WHOLE_ROWS);

impl Running {
    fn start<'a>(plans: impl Iterator<Item = &'a MeterPlan>, site: MeterSite) -> Running {
        let meters: Vec<_> = plans.map(|plan| (plan.entry, (plan.entry.make)(&plan.setting(site)))).collect();
        let needs = meters.iter().fold(Needs::NOTHING, |needs, (entry, _)| needs.and(entry.needs));
        Running { meters, needs, by_row: needs.has_any(OF_ROWS) }
    }

    fn look_at(&mut self, row: KeptRow<'_>) {
        for (entry, meter) in self.meters.iter_mut().filter(|(entry, _)| entry.needs.has_any(OF_ROWS)) {
            meter.row(&row.only(entry.needs));
        }
    }

    fn count(&mut self, rows: &[RowCounts], steps: &[StepCounts]) {
        for (_, meter) in &mut self.meters {
            meter.rows(rows);
            meter.steps(steps);
        }
    }

    fn finish(self, end: &LaneEnd) -> Tally {
        let mut tally = Tally::default();
        self.meters.into_iter().for_each(|(entry, meter)| tally.add(entry, meter.finish(end)));
        tally
    }
}
