//! What a meter is shown of a lane's rows and steps.

use crate::needs::Needs;
use crate::policy::selector::Law;
use crate::position::Position;
use crate::tensors::Gradients;

/// What the engine counts of one measured row: a step of one query head.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct RowCounts {
    /// Position of the token that attends.
    pub step: Position,
    /// Place of the query head among those of the cache.
    pub head: u32,
    /// Weight on kept positions.
    pub retained: f64,
    /// Weight on all positions.
    pub total: f64,
    /// Whether the lane had evicted before this row.
    pub after_eviction: bool,
    /// What was kept of the positions that matter; `None` without a kept set.
    pub hits: Option<Hits>,
}

/// How many of a row's marked positions are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Hits {
    /// Kept positions among the row's k heaviest.
    pub heavy: u32,
    /// The k heaviest positions, fewer in a shorter row.
    pub heavy_possible: u32,
    /// Kept positions above 1 / row length.
    pub pivotal: u32,
    /// Positions above 1 / row length.
    pub pivotal_possible: u32,
    /// Whether a position with more than a tenth is not kept.
    pub peak_missed: bool,
}

/// One measured row against the kept set.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KeptRow<'a> {
    /// What the engine counted of it.
    pub counts: RowCounts,
    /// The kept positions, ascending.
    pub positions: &'a [Position],
    /// The weight of each kept position, where [`Needs::KEPT_WEIGHTS`] was declared.
    pub weights: Option<&'a [f32]>,
    /// The weight of every position, where [`Needs::WHOLE_ROWS`] was declared.
    pub row: Option<&'a [f32]>,
    /// What its head hands on, where values were declared and the row is one that outputs are measured of.
    pub output: Option<OutputRow<'a>>,
}

/// What a query head hands on in one row.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OutputRow<'a> {
    /// The layer that it is in.
    pub layer: u32,
    /// With every position.
    pub whole: &'a [f64],
    /// With what is kept.
    pub kept: &'a [f64],
    /// Sum over all positions of weight times length of the value.
    pub value_mass: f64,
    /// The same over what is kept.
    pub kept_value_mass: f64,
    /// Gradients at the head's output, where they were declared.
    pub gradients: Option<&'a Gradients>,
}

impl<'a> KeptRow<'a> {
    /// A row with its weights.
    pub(crate) fn new(
        counts: RowCounts,
        positions: &'a [Position],
        weights: Option<&'a [f32]>,
        row: &'a [f32],
    ) -> KeptRow<'a> {
        KeptRow { counts, positions, weights, row: Some(row), output: None }
    }

    /// The same with what its head hands on.
    pub(crate) fn handing_on(self, output: Option<OutputRow<'a>>) -> KeptRow<'a> {
        KeptRow { output, ..self }
    }

    /// The row without what was not asked for.
    pub(crate) fn only(self, needs: Needs) -> KeptRow<'a> {
        KeptRow {
            weights: self.weights.filter(|_| needs.has(Needs::KEPT_WEIGHTS)),
            row: self.row.filter(|_| needs.has(Needs::WHOLE_ROWS)),
            output: self.output.filter(|_| needs.has(Needs::VALUES)),
            ..self
        }
    }
}

/// What happened in a step of a lane, and in the steps after it in which the same happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StepCounts {
    /// Number of steps.
    pub steps: u32,
    /// Whether the step belongs to a prompt that is cut down at its end: observed, not measured.
    pub in_prompt: bool,
    /// Whether its rows were measured.
    pub measured: bool,
    /// The kept set; `None` where there is none.
    pub held: Option<Held>,
}

/// What a selector read of the rows of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Reads {
    /// Positions read, over all rows.
    pub sum: u64,
    /// Most positions read of a row.
    pub most: u64,
}

impl Reads {
    /// Counts a row of which so many positions were read.
    pub(crate) fn add(&mut self, read: usize) {
        self.sum += read as u64;
        self.most = self.most.max(read as u64);
    }
}

/// What became of the kept set in one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Held {
    /// Positions held at the end of the step.
    pub kept: u32,
    /// Positions evicted.
    pub evicted: u32,
    /// Positions that left because no later row can attend to them.
    pub expired: u32,
}

impl RowCounts {
    /// What the engine counts of a row.
    #[inline]
    pub(crate) fn new(
        step: Position,
        head: usize,
        retained: f64,
        total: f64,
        after_eviction: bool,
        hits: Option<Hits>,
    ) -> RowCounts {
        RowCounts { step, head: head as u32, retained, total, after_eviction, hits }
    }
}

impl StepCounts {
    /// What happened in a step.
    #[inline]
    pub(crate) fn new(in_prompt: bool, measured: bool, held: Option<Held>) -> StepCounts {
        StepCounts { steps: 1, in_prompt, measured, held }
    }

    /// Whether the same happened in a step as in these.
    #[inline]
    pub(crate) fn are_like(&self, step: &StepCounts) -> bool {
        StepCounts { steps: step.steps, ..*self } == *step
    }
}

impl Held {
    /// What became of the kept set.
    #[inline]
    pub(crate) fn new(kept: usize, evicted: usize, expired: usize) -> Held {
        Held { kept: kept as u32, evicted: evicted as u32, expired: expired as u32 }
    }
}

/// What is known of a lane when its last step is over.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LaneEnd {
    /// Bytes of policy state and kept positions, at the most slots held; `None` without a kept set.
    pub state_bytes: Option<u64>,
    /// What a selector read.
    pub reads: Reads,
    /// The laws that a selector's choices follow, one for each query head that has one.
    pub laws: Vec<Law>,
}

impl LaneEnd {
    /// The end of a lane.
    pub(crate) fn new(state_bytes: Option<u64>) -> LaneEnd {
        LaneEnd { state_bytes, reads: Reads::default(), laws: Vec::new() }
    }

    /// The end of a selector's lane.
    pub(crate) fn of_selector(reads: Reads, laws: Vec<Law>) -> LaneEnd {
        LaneEnd { state_bytes: None, reads, laws }
    }
}
