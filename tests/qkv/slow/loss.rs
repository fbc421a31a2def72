//! The predicted loss of a lane: what its changes of all outputs do, by their gradients, to the log-likelihood.

use super::file::Trace;
use super::replay::{Exact, Step};

/// `changes[layer][head][sample][t]`, and the rows that count.
pub struct Changes {
    by_head: Vec<Vec<Vec<Vec<f64>>>>,
    first: usize,
    positions: usize,
    samples: usize,
}

impl Changes {
    /// From the steps of the same lane on every layer.
    pub fn new(trace: &Trace, layers: &[(Exact<'_>, Vec<Step>)]) -> Changes {
        let positions = trace.layers[0].positions();
        let after = |t: &usize| layers.iter().any(|(_, steps)| steps[*t].after_eviction.iter().any(|evicted| *evicted));
        let of_layer = |(exact, steps): &(Exact<'_>, Vec<Step>)| {
            (0..exact.layer.heads()).map(|head| of_head(trace, exact, steps, head)).collect()
        };
        Changes {
            by_head: layers.iter().map(of_layer).collect(),
            first: (0..positions).find(after).unwrap_or(positions),
            positions,
            samples: trace.gradient_samples,
        }
    }

    /// Number of rows that count.
    pub fn rows(&self) -> usize {
        self.positions - self.first
    }

    /// The change of the whole model at a row, by sample; `layer` narrows it to one.
    pub fn at(&self, sample: usize, t: usize, layer: Option<usize>) -> f64 {
        let layers = self.by_head.iter().enumerate().filter(|(index, _)| layer.is_none_or(|layer| layer == *index));
        layers.map(|(_, heads)| heads.iter().map(|head| head[sample][t]).sum::<f64>()).sum()
    }

    fn mean(&self, of: impl Fn(usize, usize) -> f64) -> Option<f64> {
        let counted = || (0..self.samples).flat_map(|sample| (self.first..self.positions).map(move |t| (sample, t)));
        let count = self.rows() * self.samples;
        (count > 0).then(|| counted().map(|(sample, t)| of(sample, t)).sum::<f64>() / count as f64)
    }

    /// Heads and layers summed, then squared: the predicted loss.
    pub fn joint(&self) -> Option<f64> {
        self.mean(|sample, t| self.at(sample, t, None).powi(2))
    }

    /// Heads summed, then squared, layers added.
    pub fn by_layer(&self) -> Option<f64> {
        self.mean(|sample, t| (0..self.by_head.len()).map(|layer| self.at(sample, t, Some(layer)).powi(2)).sum())
    }

    /// Every head squared.
    pub fn by_head(&self) -> Option<f64> {
        self.mean(|sample, t| self.by_head.iter().flatten().map(|head| head[sample][t].powi(2)).sum())
    }
}

fn of_head(trace: &Trace, exact: &Exact<'_>, steps: &[Step], head: usize) -> Vec<Vec<f64>> {
    let gradients = &exact.layer.gradients.as_ref().expect("the file has gradients")[head];
    let positions = steps.len();
    let change = |sample: usize, t: usize| {
        let moved = steps[t].kept_outputs[head].iter().zip(&exact.outputs[t][head]).map(|(kept, whole)| kept - whole);
        let gradient = gradients.row(sample * positions + t).iter().map(|g| f64::from(*g) / trace.gradient_scale);
        gradient.zip(moved).map(|(gradient, moved)| gradient * moved).sum::<f64>()
    };
    (0..trace.gradient_samples).map(|sample| (0..positions).map(|t| change(sample, t)).collect()).collect()
}
