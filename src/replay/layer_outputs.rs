//! What a layer adds to the stream, and by how much a lane changes that: all heads of the layer side by side.
//!
//! The projection of a difference is the difference of projections, so that what a lane changes is projected, many
//! rows in one product, and no change is exactly none.

use super::kept_outputs::Changes;
use super::section::SetPlace;
use super::step_batch::StepBatch;
use crate::kernels::{ScoreRow, products};
use crate::meter::{LayerErrors, LayerRow, Tally};
use crate::tensors::LayerTensors;
use std::sync::Arc;

/// What a layer adds in each row of a batch.
pub(super) struct LayerRows {
    pub tensors: Arc<LayerTensors>,
    /// Before its norm, where it has one; zeros where a row is not measured.
    pub updates: Vec<f32>,
}

/// The projections of some rows, one after the other.
fn project(tensors: &LayerTensors, rows: &[f32]) -> Vec<f32> {
    let projection = &tensors.projection;
    let mut projected = vec![0.0; rows.len() / projection.width() * projection.len()];
    let scores = projected.chunks_exact_mut(projection.len());
    let mut places: Vec<ScoreRow<'_>> = scores.map(|scores| ScoreRow { from: 0, scores }).collect();
    products(rows, projection, &mut places, &mut Vec::new());
    projected
}

/// What the layer adds in each row of a batch when nothing is lost.
pub(super) fn whole_updates(tensors: &LayerTensors, batch: &StepBatch) -> Vec<f32> {
    let mut outputs = Vec::with_capacity(batch.len() * tensors.projection.width());
    for step in 0..batch.len() {
        for head in 0..batch.heads() {
            outputs.extend(batch.heads[head].outputs.output(step).iter().map(|number| *number as f32));
        }
    }
    project(tensors, &outputs)
}

/// The figures that a lane's sets make together, layer by layer.
pub(super) struct LayerLane {
    /// Those of each section.
    errors: Vec<LayerErrors>,
    /// Whether a batch was measured.
    measured: bool,
}

impl LayerLane {
    /// Of a lane with kept sets in these places.
    pub(super) fn new(places: &[SetPlace]) -> LayerLane {
        let sections = places.iter().map(|place| place.section + 1).max().unwrap_or(0);
        LayerLane { errors: vec![LayerErrors::default(); sections], measured: false }
    }

    /// Adds what the lane changes in a batch of each section; `changes` are those of its sets.
    pub(super) fn measure(&mut self, batches: &[StepBatch], places: &[SetPlace], changes: &[&Changes]) {
        self.measured = true;
        for (section, (errors, batch)) in self.errors.iter_mut().zip(batches).enumerate() {
            let sets = places.iter().zip(changes).filter(|(place, _)| place.section == section);
            let changes: Vec<&Changes> = sets.map(|(_, changes)| *changes).collect();
            measure(errors, batch, &changes);
        }
    }

    /// Puts the figures of each section into the tally of its first set.
    pub(super) fn finish(self, places: &[SetPlace], tallies: &mut [Tally]) {
        if !self.measured {
            return;
        }
        for (section, errors) in self.errors.iter().enumerate() {
            let sets = || places.iter().filter(|place| place.section == section);
            if let Some(first) = places.iter().position(|place| place.section == section) {
                tallies[first].replace(LayerErrors::entry(), errors.finish(sets().count()));
            }
        }
    }
}

/// Adds to the figures of a lane what it changes in a batch; `changes` are those of its kept sets there, in the order
/// of heads.
fn measure(errors: &mut LayerErrors, batch: &StepBatch, changes: &[&Changes]) {
    let Some(layer) = &batch.layer else { return };
    let measured: Vec<usize> =
        (0..batch.len()).filter(|step| changes.iter().all(|changes| changes.measured[*step])).collect();
    let of_steps = measured.iter().flat_map(|step| changes.iter().map(|changes| changes.of_step(*step)));
    let rows: Vec<f32> = of_steps.flatten().copied().collect();
    let width = layer.tensors.projection.len();
    for (step, change) in measured.iter().zip(project(&layer.tensors, &rows).chunks_exact(width)) {
        errors.add(LayerRow {
            step: batch.position(*step),
            update: &layer.updates[step * width..(step + 1) * width],
            change,
            tensors: &layer.tensors,
        });
    }
}
