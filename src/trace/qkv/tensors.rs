//! The numbers behind rows: queries, keys, values, gradients and projections, read into memory for whoever measures
//! outputs with them.
//!
//! Heads that share a KV head find its keys and values where the first of them left them, and nothing stays in memory
//! longer than somebody holds it.

use super::layer::Layer;
use super::matrix::Matrix as Stored;
use super::source::QkvTrace;
use crate::error::Result;
use crate::kernels::{KeyPanel, Logits};
use crate::needs::Needs;
use crate::tensors::{Gradients, HeadTensors, LayerTensors, Matrix, OutputNorm, Values};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

/// Numbers that somebody holds, by layer and KV head.
type Shared<T> = Mutex<BTreeMap<(usize, usize), Weak<T>>>;

/// What heads share.
#[derive(Default)]
pub(super) struct SharedTensors {
    keys: Shared<Matrix>,
    values: Shared<Values>,
}

fn shared<T>(all: &Shared<T>, at: (usize, usize), read: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
    // Held while it is read, so that no two threads read the same.
    let mut all = all.lock().expect("no reader of tensors panics");
    if let Some(known) = all.get(&at).and_then(Weak::upgrade) {
        return Ok(known);
    }
    let read = Arc::new(read()?);
    all.insert(at, Arc::downgrade(&read));
    Ok(read)
}

fn numbers(stored: &Stored) -> Result<Matrix> {
    Ok(Matrix::new(stored.width, stored.read_all()?))
}

impl QkvTrace {
    /// What the trace holds besides rows.
    pub(super) fn holds(&self) -> Needs {
        let has = |of: fn(&Layer) -> bool, need: Needs| if self.layers.iter().all(of) { need } else { Needs::NOTHING };
        Needs::WHOLE_ROWS
            .and(Needs::QUERIES)
            .and(Needs::KEYS)
            .and(Needs::VALUES)
            .and(has(|layer| layer.output.is_some(), Needs::PROJECTION))
            .and(has(|layer| !layer.gradients.is_empty(), Needs::GRADIENTS))
    }

    /// What a query head has; gradients where they are needed.
    pub(super) fn tensors_of_head(&self, stream: usize, needs: Needs) -> Result<HeadTensors> {
        let (index, head) = self.streams[stream];
        let layer = &self.layers[index];
        let cache = head / layer.heads_of_a_cache();
        let SharedTensors { keys, values } = &self.tensors;
        let gradients = layer.gradients.get(head).filter(|_| needs.has(Needs::GRADIENTS));
        let gradients = gradients.map(|stored| {
            Ok(Arc::new(Gradients::new(numbers(stored)?, layer.queries[0].rows, self.said("gradient_scale", 1.0))))
        });
        Ok(HeadTensors {
            layer: layer.number,
            index: head,
            logits: self.logits(index, head),
            window: layer.settings.window,
            queries: Arc::new(numbers(&layer.queries[head])?),
            keys: shared(keys, (index, cache), || numbers(&layer.keys[cache]))?,
            values: shared(values, (index, cache), || Ok(Values::new(numbers(&layer.values[cache])?)))?,
            gradients: gradients.transpose()?,
        })
    }

    /// What stands behind the heads of a layer, where there is a projection.
    pub(super) fn tensors_of_layer(&self, number: u32) -> Result<Option<LayerTensors>> {
        let Some(layer) = self.layers.iter().find(|layer| layer.number == number) else { return Ok(None) };
        let Some(output) = &layer.output else { return Ok(None) };
        let mut projection = KeyPanel::new(output.rows, output.width);
        output.for_each_rows(|first, rows| projection.set(first, rows))?;
        let gain = layer.output_norm.as_ref().map(Stored::read_all).transpose()?;
        Ok(Some(LayerTensors {
            projection: Arc::new(projection),
            output_norm: gain.map(|gain| OutputNorm { gain, epsilon: self.said("output_norm_epsilon", 0.0) }),
            residual_norm: layer.residual_norm.as_ref().map(Stored::read_all).transpose()?,
        }))
    }

    /// What is done to the scores of a query head.
    pub(super) fn logits(&self, layer: usize, head: usize) -> Logits {
        let settings = &self.layers[layer].settings;
        Logits { scale: settings.scale, softcap: settings.softcap, sink: self.sinks[layer].get(head).copied() }
    }

    /// A number of the metadata, which was checked when the trace was opened.
    fn said(&self, key: &str, otherwise: f64) -> f64 {
        self.info.metadata.get(key).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }
}
