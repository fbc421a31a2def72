//! Consecutive steps of a section: the rows of its query heads, each its own, and the facts of each row.

use super::layer_outputs::LayerRows;
use super::outputs::{WholeOutput, WholeOutputs};
use super::row_facts::RowFacts;
use super::section::HeadRange;
use crate::position::Position;
use crate::tensors::HeadTensors;
use crate::trace::RowBlock;
use std::sync::Arc;

/// Consecutive steps of a section.
#[derive(Default)]
pub(super) struct StepBatch {
    pub(super) heads: Vec<HeadRows>,
    /// What the heads have, where outputs are measured.
    pub(super) tensors: Option<Arc<[HeadTensors]>>,
    /// What the layer adds, where it is measured.
    pub(super) layer: Option<LayerRows>,
}

/// The rows of one query head in a batch.
#[derive(Default)]
pub(super) struct HeadRows {
    pub(super) rows: RowBlock,
    /// One entry per row, `None` where there is no information.
    pub(super) facts: Vec<Option<RowFacts>>,
    /// What the head hands on, where that is measured.
    pub(super) outputs: WholeOutputs,
}

/// A row with its facts.
#[derive(Clone, Copy)]
pub(super) struct KnownRow<'a> {
    pub weights: &'a [f32],
    pub facts: &'a RowFacts,
}

impl StepBatch {
    /// Rows of all heads, and the weights in them.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.len() * self.heads(), self.heads.iter().map(|head| head.rows.weights()).sum())
    }

    /// Number of steps.
    pub(super) fn len(&self) -> usize {
        self.heads.first().map_or(0, |head| head.rows.len())
    }

    /// Position of the token that attends in this step of the batch.
    #[inline]
    pub(super) fn position(&self, step: usize) -> Position {
        self.heads[0].rows.row(step).step
    }

    /// Number of query heads.
    #[inline]
    pub(super) fn heads(&self) -> usize {
        self.heads.len()
    }

    /// All of them.
    pub(super) fn all(&self) -> HeadRange {
        HeadRange { start: 0, end: self.heads() }
    }

    /// Whether this step has a row for every one of these heads.
    #[inline]
    pub(super) fn is_known(&self, step: usize, heads: HeadRange) -> bool {
        self.heads[heads.start..heads.end].iter().all(|head| head.facts[step].is_some())
    }

    /// Channels of a value of these heads, where outputs are measured.
    pub(super) fn value_width(&self, heads: HeadRange) -> Option<usize> {
        self.tensors.as_ref().and_then(|tensors| tensors.get(heads.start)).map(|head| head.values.rows.width())
    }

    /// The output of a head in a step, where it is measured.
    #[inline]
    pub(super) fn output(&self, step: usize, head: usize) -> Option<WholeOutput<'_>> {
        self.heads[head].outputs.get(step, &self.tensors.as_ref()?[head])
    }

    /// The row of a head in a step that [is known](StepBatch::is_known).
    #[inline]
    pub(super) fn row(&self, step: usize, head: usize) -> KnownRow<'_> {
        let head = &self.heads[head];
        let facts = head.facts[step].as_ref().expect("asked for in known steps only");
        KnownRow { weights: head.rows.row(step).weights, facts }
    }
}
