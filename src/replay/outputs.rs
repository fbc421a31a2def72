//! What the query heads of a section hand on when nothing is lost, found once for all lanes.
//!
//! An output is the weighted sum of the values over the sum of the weights, a learned sink's included. What is kept is
//! divided by what is kept, by the same routine over fewer positions: nothing lost is no difference at all.

use super::caches::CachePlan;
use super::layer_outputs::{LayerRows, whole_updates};
use super::section::HeadRange;
use super::step_batch::{HeadRows, StepBatch};
use crate::error::Result;
use crate::kernels::{exp_below_zero, logit, product, weighted_values};
use crate::needs::Needs;
use crate::policy::sight::CacheTensors;
use crate::position::Position;
use crate::tensors::{HeadTensors, LayerTensors};
use crate::trace::Source;
use std::sync::Arc;

/// The numbers behind a section, and which rows are measured with them.
pub(super) struct SectionOutputs {
    heads: Arc<[HeadTensors]>,
    layer: Option<Arc<LayerTensors>>,
    /// What meters look at.
    measured: Needs,
    every: usize,
}

/// The outputs of one head's rows in a batch.
#[derive(Default)]
pub(super) struct WholeOutputs {
    width: usize,
    /// One after the other; zeros where a row is not measured so.
    outputs: Vec<f64>,
    beside: Vec<Beside>,
}

/// What else is known of a row whose output is measured.
#[derive(Clone, Copy, Default)]
struct Beside {
    measured: bool,
    value_mass: f64,
    sink: f64,
}

/// The output of one row.
#[derive(Clone, Copy)]
pub(super) struct WholeOutput<'a> {
    /// What its head has.
    pub head: &'a HeadTensors,
    /// With every position.
    pub output: &'a [f64],
    /// Sum over all positions of weight times length of the value.
    pub value_mass: f64,
    /// Weight of the learned sink.
    pub sink: f64,
}

impl SectionOutputs {
    /// Of the streams of a section; `None` where nobody looks at more than rows.
    pub(super) fn open(
        source: &dyn Source,
        section: &CachePlan,
        needs: [Needs; 2],
        every: usize,
    ) -> Result<Option<SectionOutputs>> {
        let [measured, of_policies] = needs;
        let needs = measured.and(of_policies);
        if !needs.has_any(Needs::OF_TRACES) {
            return Ok(None);
        }
        let heads = section.streams.iter().map(|stream| source.head_tensors(*stream, needs));
        let heads: Option<Vec<HeadTensors>> = heads.collect::<Result<Vec<_>>>()?.into_iter().collect();
        let Some(heads) = heads else { return Ok(None) };
        let layer = if needs.has(Needs::PROJECTION) { layer_of(source, &heads)? } else { None };
        Ok(Some(SectionOutputs { heads: heads.into(), layer: layer.map(Arc::new), measured, every }))
    }

    /// What a policy sees of the cache of these heads.
    pub(super) fn of_cache(&self, heads: HeadRange, needs: Needs) -> CacheTensors {
        let layer = self.layer.as_deref().filter(|_| needs.has(Needs::PROJECTION));
        CacheTensors::new(self.heads[heads.start..heads.end].to_vec(), layer)
    }

    /// Finds the outputs of a batch's rows.
    pub(super) fn find(&self, batch: &mut StepBatch) {
        if !self.measured.has(Needs::VALUES) {
            return;
        }
        for (head, rows) in self.heads.iter().zip(&mut batch.heads) {
            find_of_head(head, rows, self.every);
        }
        batch.tensors = Some(Arc::clone(&self.heads));
        let width: usize = self.heads.iter().map(|head| head.values.rows.width()).sum();
        let layer = self
            .layer
            .as_ref()
            .filter(|layer| self.measured.has(Needs::PROJECTION) && layer.projection.width() == width);
        batch.layer = layer.map(|tensors| {
            let updates = whole_updates(tensors, batch);
            LayerRows { tensors: Arc::clone(tensors), updates }
        });
    }
}

/// What stands behind heads of one layer.
fn layer_of(source: &dyn Source, heads: &[HeadTensors]) -> Result<Option<LayerTensors>> {
    let Some(first) = heads.first().filter(|first| heads.iter().all(|head| head.layer == first.layer)) else {
        return Ok(None);
    };
    source.layer_tensors(first.layer)
}

fn find_of_head(head: &HeadTensors, rows: &mut HeadRows, every: usize) {
    let HeadRows { rows, facts, outputs } = rows;
    outputs.width = head.values.rows.width();
    outputs.outputs.clear();
    outputs.outputs.resize(facts.len() * outputs.width, 0.0);
    outputs.beside.clear();
    for (index, output) in outputs.outputs.chunks_exact_mut(outputs.width).enumerate() {
        let row = rows.row(index);
        let measured = facts[index].is_some() && row.step.index().is_multiple_of(every);
        outputs.beside.push(if measured {
            find_of_row(head, row.step, row.weights, output)
        } else {
            Beside::default()
        });
    }
}

fn find_of_row(head: &HeadTensors, step: Position, row: &[f32], output: &mut [f64]) -> Beside {
    let sink = sink_weight(head, step, row);
    let kept = weighted_values(row, |slot| slot, head.values.rows.numbers(), output);
    divide(output, kept + sink);
    let value_mass = row.iter().zip(&head.values.lengths).map(|(weight, length)| f64::from(*weight) * length).sum();
    Beside { measured: true, value_mass, sink }
}

/// Divides a weighted sum by the weights behind it; nothing weighed stays 0.
pub(super) fn divide(output: &mut [f64], weights: f64) {
    if weights > 0.0 {
        output.iter_mut().for_each(|number| *number /= weights);
    }
}

/// The weight of a learned sink in a row: by how far its logit is from that of the heaviest position.
fn sink_weight(head: &HeadTensors, step: Position, row: &[f32]) -> f64 {
    let Some(sink) = head.logits.sink else { return 0.0 };
    let heaviest = (0..row.len()).reduce(|most, at| if row[at] > row[most] { at } else { most });
    let Some(heaviest) = heaviest else { return 0.0 };
    let score = product(head.queries.row(step.index()), head.keys.row(heaviest));
    let above = f64::from(sink) - f64::from(logit(score, head.logits));
    if above <= 0.0 {
        return f64::from(row[heaviest]) * exp_below_zero(above);
    }
    // It weighs more than any position: what they leave of 1 is exact enough.
    1.0 - row.iter().map(|weight| f64::from(*weight)).sum::<f64>()
}

impl WholeOutputs {
    /// The output of a row; zeros where it is not measured.
    pub(super) fn output(&self, index: usize) -> &[f64] {
        &self.outputs[index * self.width..(index + 1) * self.width]
    }

    /// The output of a row, where it is measured.
    #[inline]
    pub(super) fn get<'a>(&'a self, index: usize, head: &'a HeadTensors) -> Option<WholeOutput<'a>> {
        let Beside { measured, value_mass, sink } = *self.beside.get(index)?;
        measured.then(|| WholeOutput { head, output: self.output(index), value_mass, sink })
    }
}
