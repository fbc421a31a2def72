//! Numbers of a joint meter: one for each row and sample, added over the caches of a lane before
//! anything is made of them.
//!
//! What the caches of a model change may cancel or add up, so that a square of their sum is not a sum
//! of their squares. A cache hands on its numbers as they are; those of other caches are added to them
//! in the order of caches, and the meter's sums are made of the total.

use crate::position::Position;

/// Numbers for each step and sample.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JointRows {
    /// Numbers for each step.
    samples: usize,
    /// The layer that numbers were added for last.
    layer: Option<u32>,
    /// The numbers of step 0, of step 1, ...
    values: Vec<Value>,
    /// Whether any cache measured the step.
    measured: Vec<bool>,
    /// The first step that counts in any cache.
    from: Option<Position>,
}

/// The number of a step and sample.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Value {
    /// Over all heads.
    all: f64,
    /// Over the heads of the present layer.
    layer: f64,
    /// Squares of the layers before it.
    layers: f64,
    /// Squares of single heads.
    heads: f64,
}

impl JointRows {
    /// No step yet, `samples` numbers for each to come.
    pub fn new(samples: usize) -> JointRows {
        JointRows { samples, ..JointRows::default() }
    }

    /// The same, of a cache in this layer.
    pub fn of_layer(layer: u32, samples: usize) -> JointRows {
        JointRows { layer: Some(layer), ..JointRows::new(samples) }
    }

    /// Numbers for each step.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Adds what one head has to the number of a step and sample.
    pub fn add(&mut self, step: Position, sample: usize, value: f64) {
        assert!(sample < self.samples, "sample {sample} of {}", self.samples);
        self.make_room(step.index() + 1);
        self.measured[step.index()] = true;
        let sum = &mut self.values[step.index() * self.samples + sample];
        sum.all += value;
        sum.layer += value;
        sum.heads += value * value;
    }

    /// Says that this step counts, and all measured ones after it, whichever cache they are of.
    pub fn count_from(&mut self, step: Position) {
        self.from = Some(self.from.map_or(step, |from| from.min(step)));
    }

    /// Adds the numbers of another cache; those of a layer come one after the other.
    pub(super) fn merge(&mut self, other: &JointRows) {
        if other.samples == 0 {
            return;
        }
        self.samples = self.samples.max(other.samples);
        self.make_room(other.measured.len());
        if self.layer != other.layer {
            self.layer = other.layer;
            self.values.iter_mut().for_each(Value::end_layer);
        }
        self.values.iter_mut().zip(&other.values).for_each(|(sum, value)| sum.add(value));
        self.measured.iter_mut().zip(&other.measured).for_each(|(any, measured)| *any |= measured);
        other.from.into_iter().for_each(|step| self.count_from(step));
    }

    fn counted_values(&self) -> impl Iterator<Item = &[Value]> {
        let from = self.from.map_or(usize::MAX, Position::index);
        let rows = self.values.chunks(self.samples.max(1)).zip(&self.measured);
        rows.skip(from).filter(|(_, measured)| **measured).map(|(values, _)| values)
    }

    /// The numbers of each measured step that counts, in step order.
    pub fn counted(&self) -> impl Iterator<Item = Vec<f64>> {
        self.counted_values().map(|values| values.iter().map(|value| value.all).collect())
    }

    /// Over the same steps and samples, the sum of the squares of layers, and of those of single heads.
    pub fn counted_squares(&self) -> (f64, f64) {
        let add = |(layers, heads): (f64, f64), value: &Value| {
            (layers + value.layers + value.layer * value.layer, heads + value.heads)
        };
        self.counted_values().flatten().fold((0.0, 0.0), add)
    }

    fn make_room(&mut self, steps: usize) {
        if self.measured.len() < steps {
            self.measured.resize(steps, false);
            self.values.resize(steps * self.samples, Value::default());
        }
    }
}

impl Value {
    fn end_layer(&mut self) {
        self.layers += self.layer * self.layer;
        self.layer = 0.0;
    }

    fn add(&mut self, other: &Value) {
        self.all += other.all;
        self.layer += other.layer;
        self.layers += other.layers;
        self.heads += other.heads;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_add_up_over_caches_and_count_from_the_first_that_does() {
        let mut one = JointRows::new(2);
        one.add(Position(3), 1, 0.5);
        one.count_from(Position(3));
        let mut other = JointRows::new(2);
        other.add(Position(1), 0, 1.0);
        other.add(Position(3), 1, -0.25);
        other.add(Position(4), 0, 2.0);
        other.count_from(Position(2));
        let mut sum = JointRows::default();
        sum.merge(&one);
        sum.merge(&other);
        assert_eq!(sum.counted().collect::<Vec<_>>(), [[0.0, 0.25], [2.0, 0.0]], "step 2 was not measured");
    }

    #[test]
    fn nothing_counts_where_no_cache_says_so() {
        let mut rows = JointRows::new(1);
        rows.add(Position(0), 0, 1.0);
        assert_eq!(rows.counted().count(), 0);
    }
}
