//! Predicted loss: what a lane's changes of all outputs do together, by their gradients, to the log-likelihood.
//!
//! The changes of the heads of a row are multiplied with the gradients of the log-likelihood of labels that the model
//! drew itself, summed over all heads of all layers, and squared: errors that cancel cost nothing. An index in nats,
//! not a bound; what it was measured to order stands in docs/validity.md.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, JointRows, KeptRow, LaneEnd, Meter, MeterEntry, Run, output_error};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("predicted_loss", "what all changes do to the log-likelihood together", SUMS, FIGURES, |_| {
        Box::new(PredictedLoss::default())
    })
    .run(Run::WhereOffered)
    .needs(output_error::NEEDS.and(Needs::GRADIENTS))
    .of_lanes()
    .joint(sums);

const SUMS: &[Sum] = &[
    Sum::real("predicted_loss_sum", "squared nats", "sum behind predicted_loss"),
    Sum::count("predicted_loss_rows", "rows", "rows after the first eviction in any cache, times samples of gradients"),
    Sum::real("predicted_loss_layers_sum", "squared nats", "sum behind predicted_loss_layers"),
    Sum::real("predicted_loss_heads_sum", "squared nats", "sum behind predicted_loss_heads"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "predicted_loss",
        "nats per row",
        Reading::Ratio("predicted_loss_sum", &["predicted_loss_rows"]),
        "mean over rows and samples of the squared change of the log-likelihood by all heads and layers together",
    )
    .lower_is_better(),
    Figure::new(
        "predicted_loss_layers",
        "nats per row",
        Reading::Ratio("predicted_loss_layers_sum", &["predicted_loss_rows"]),
        "the same with each layer squared by itself: more than predicted_loss where the errors of layers cancel",
    ),
    Figure::new(
        "predicted_loss_heads",
        "nats per row",
        Reading::Ratio("predicted_loss_heads_sum", &["predicted_loss_rows"]),
        "the same with each head squared by itself",
    ),
];

#[derive(Default)]
struct PredictedLoss {
    rows: Option<JointRows>,
}

impl Meter for PredictedLoss {
    fn row(&mut self, row: &KeptRow<'_>) {
        let Some(output) = row.output else { return };
        let Some(gradients) = output.gradients else { return };
        let rows = self.rows.get_or_insert_with(|| JointRows::of_layer(output.layer, gradients.samples()));
        let step = row.counts.step;
        for sample in 0..gradients.samples() {
            let change = output.kept.iter().zip(output.whole).map(|(kept, whole)| kept - whole);
            rows.add(step, sample, gradients.along(sample, step, change));
        }
        if row.counts.after_eviction {
            rows.count_from(step);
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::Joint(self.rows.unwrap_or_default())
    }
}

fn sums(rows: &JointRows) -> Vec<Option<Number>> {
    let joint: f64 = rows.counted().flatten().map(|change| change * change).sum();
    let (layers, heads) = rows.counted_squares();
    let count = rows.counted().flatten().count() as u64;
    let measured = rows.samples() > 0;
    [Number::Real(joint), Number::Count(count), Number::Real(layers), Number::Real(heads)]
        .map(|sum| Some(sum).filter(|_| measured))
        .to_vec()
}
