//! What a policy may look at besides rows: keys and values as its cache holds them, and the queries of its own heads.

use crate::position::Position;
use crate::tensors::{HeadTensors, LayerTensors};

/// What a cache has, for a policy that looks at it.
#[derive(Clone, Debug)]
pub struct CacheTensors {
    /// Its query heads; they share keys and values.
    heads: Vec<HeadTensors>,
    /// For each position the mean over heads of the l1 norm of what the projection makes of its value.
    handed_on: Vec<f64>,
}

impl CacheTensors {
    /// Of the query heads of one KV head, and for policies that ask for it what stands behind them.
    pub fn new(heads: Vec<HeadTensors>, layer: Option<&LayerTensors>) -> CacheTensors {
        let handed_on = layer.map_or_else(Vec::new, |layer| handed_on(&heads, layer));
        CacheTensors { heads, handed_on }
    }

    /// What is seen in the row of a position.
    pub fn at(&self, step: Position) -> Sight<'_> {
        Sight { tensors: self, step }
    }
}

/// A sum for each of the rows of a projection that are kept side by side.
type Sums = [f64; crate::kernels::LANES];

fn handed_on(heads: &[HeadTensors], layer: &LayerTensors) -> Vec<f64> {
    let positions = heads.first().map_or(0, |head| head.values.rows.len());
    let of_head = |head: &HeadTensors, position: usize| -> f64 {
        let value = head.values.rows.row(position);
        let first = head.index * value.len();
        let tiles = layer.projection.tiles();
        let sums = tiles.map(|tile| {
            let mut sums: Sums = [0.0; crate::kernels::LANES];
            for (channel, number) in tile[first..first + value.len()].iter().zip(value) {
                sums.iter_mut().zip(channel).for_each(|(sum, weight)| *sum += f64::from(*weight) * f64::from(*number));
            }
            sums
        });
        sums.flatten().map(f64::abs).sum()
    };
    let mean = |position| heads.iter().map(|head| of_head(head, position)).sum::<f64>() / heads.len() as f64;
    (0..positions).map(mean).collect()
}

/// What a policy may look at in a step.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    tensors: &'a CacheTensors,
    /// The present row.
    pub step: Position,
}

impl<'a> Sight<'a> {
    /// The key of a position.
    pub fn key(self, position: Position) -> &'a [f32] {
        self.tensors.heads[0].keys.row(position.index())
    }

    /// The value of a position.
    pub fn value(self, position: Position) -> &'a [f32] {
        self.tensors.heads[0].values.rows.row(position.index())
    }

    /// The l2 norm of the value of a position.
    pub fn value_length(self, position: Position) -> f64 {
        self.tensors.heads[0].values.lengths[position.index()]
    }

    /// What the value of a position weighs behind the projection: the mean over the cache's heads of the l1 norm.
    pub fn handed_on(self, position: Position) -> f64 {
        self.tensors.handed_on[position.index()]
    }

    /// Number of query heads.
    pub fn heads(self) -> usize {
        self.tensors.heads.len()
    }

    /// The query of a head at a position, which is not after the present row.
    pub fn query(self, head: usize, position: Position) -> &'a [f32] {
        debug_assert!(position <= self.step, "the future is not to be seen");
        self.tensors.heads[head].queries.row(position.index())
    }

    /// What products of queries and keys are multiplied by.
    pub fn scale(self) -> f64 {
        f64::from(self.tensors.heads[0].logits.scale)
    }
}
