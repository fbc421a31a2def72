//! Layer error: how far what a layer adds to the stream is off, all its heads side by side.
//!
//! Made of all caches of a layer at once: the line of a single cache has none. A tally carries how many caches its sums
//! speak of and how many it is about, and shows them where these agree.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, LaneEnd, LayerCounts, Meter, MeterEntry, Run, output_error};
use crate::needs::Needs;
use crate::position::Position;
use crate::tensors::LayerTensors;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("layer_error", "how far what layers add to the stream is off", SUMS, FIGURES, |_| {
        Box::new(OfCache)
    })
    .run(Run::WhereOffered)
    .needs(output_error::NEEDS.and(Needs::PROJECTION))
    .of_lanes();

const SUMS: &[Sum] = &[
    Sum::real("layer_error_sum", "of the stream", "sum behind layer_error"),
    Sum::count("layer_error_rows", "rows", "rows of layers with a stream, behind layer_error"),
    Sum::real("update_error_sum", "of updates", "sum behind update_error"),
    Sum::count("update_error_rows", "rows", "rows of layers that add anything, behind update_error"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "layer_error",
        "of the stream",
        Reading::Ratio("layer_error_sum", &["layer_error_rows"]),
        "mean over the rows of layers of the length of what the layer's update is off by, over that of the stream",
    )
    .lower_is_better(),
    Figure::new(
        "update_error",
        "of the update",
        Reading::Ratio("update_error_sum", &["update_error_rows"]),
        "mean over the rows of layers of the length of what the layer's update is off by, over that of the update",
    )
    .lower_is_better(),
];

/// A row of a layer.
#[derive(Clone, Copy, Debug)]
pub struct LayerRow<'a> {
    /// Position of the token that attends.
    pub step: Position,
    /// What the layer adds when nothing is lost, before its norm.
    pub update: &'a [f32],
    /// By how much that differs, before its norm.
    pub change: &'a [f32],
    /// What stands behind its heads.
    pub tensors: &'a LayerTensors,
}

/// The sums of one layer.
#[derive(Clone, Debug, Default)]
pub struct LayerErrors {
    layer: f64,
    layer_rows: u64,
    update: f64,
    update_rows: u64,
}

impl LayerErrors {
    /// Adds a row.
    pub fn add(&mut self, row: LayerRow<'_>) {
        let (length, change) = row.lengths();
        if length > 0.0 {
            self.update += change / length;
            self.update_rows += 1;
        }
        let stream = row.tensors.residual_norm.as_ref().map_or(0.0, |norms| norms[row.step.index()]);
        if stream > 0.0 {
            self.layer += change / f64::from(stream);
            self.layer_rows += 1;
        }
    }

    /// What was counted of a layer of so many caches, in the tally of its first; of the others nothing.
    pub fn finish(&self, caches: usize) -> Counted {
        let sums = [
            Number::Real(self.layer),
            Number::Count(self.layer_rows),
            Number::Real(self.update),
            Number::Count(self.update_rows),
        ];
        Counted::OfLayers(LayerCounts::whole(sums.map(Some).to_vec(), caches))
    }

    /// The meter's entry.
    pub fn entry() -> &'static MeterEntry {
        &ENTRY
    }
}

impl LayerRow<'_> {
    /// Of what the layer adds, and of what that is off by.
    fn lengths(&self) -> (f64, f64) {
        let wide = |number: &f32| f64::from(*number);
        let Some(norm) = &self.tensors.output_norm else {
            return (length(self.update.iter().map(wide)), length(self.change.iter().map(wide)));
        };
        let mut whole: Vec<f64> = self.update.iter().map(wide).collect();
        let mut kept: Vec<f64> = whole.iter().zip(self.change).map(|(whole, change)| whole + wide(change)).collect();
        norm.apply(&mut whole);
        norm.apply(&mut kept);
        (length(whole.iter().copied()), length(whole.iter().zip(&kept).map(|(whole, kept)| whole - kept)))
    }
}

fn length(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|number| number * number).sum::<f64>().sqrt()
}

/// Stands for a cache of a layer, whose figures are made where all caches of the layer are seen.
struct OfCache;

impl Meter for OfCache {
    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::OfLayers(LayerCounts::part())
    }
}
