//! What a policy is told in a call. Fields may be added; none is left to be guessed: what was not
//! asked for, or what the trace does not hold, is `None`.

use crate::position::Position;

/// A position that enters a cache as its newest slot.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Admission<'a> {
    /// The position.
    pub position: Position,
    /// Its key, for policies that need keys.
    pub key: Option<&'a [f32]>,
    /// Its value, for policies that need values.
    pub value: Option<&'a [f32]>,
}

impl Admission<'_> {
    /// A position of which nothing else is known.
    pub(crate) fn of(position: Position) -> Admission<'static> {
        Admission { position, key: None, value: None }
    }
}

/// A step's rows, restricted to the kept positions, ascending; not renormalised unless the run asks for
/// it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// Position of the token that attends.
    pub step: Position,
    /// The kept positions.
    pub positions: &'a [Position],
    /// One weight for each kept position: of the row, or the mean over the cache's query heads.
    pub weights: &'a [f32],
    /// Number of weights in a whole row.
    pub row_len: usize,
    /// The rows of the query heads, for policies that need them.
    pub heads: Option<HeadRows<'a>>,
}

impl<'a> Observation<'a> {
    /// One row of `row_len` weights against the kept positions.
    pub(crate) fn new(step: Position, positions: &'a [Position], weights: &'a [f32], row_len: usize) -> Self {
        Observation { step, positions, weights, row_len, heads: None }
    }

    /// One over the number of kept positions.
    pub fn even_share(&self) -> f64 {
        1.0 / self.weights.len() as f64
    }
}

/// The rows of a cache's query heads, each restricted to the kept positions.
#[derive(Clone, Copy, Debug)]
pub struct HeadRows<'a> {
    weights: &'a [f32],
    kept: usize,
}

impl<'a> HeadRows<'a> {
    /// Rows of `kept` weights each, back to back.
    pub(crate) fn new(weights: &'a [f32], kept: usize) -> HeadRows<'a> {
        HeadRows { weights, kept }
    }

    /// The weights of each query head, in head order.
    pub fn rows(self) -> impl Iterator<Item = &'a [f32]> {
        // A cache that keeps nothing sees no row.
        self.weights.chunks_exact(self.kept.max(1))
    }
}

/// A kept set that has outgrown its budget.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Overflow<'a> {
    /// The kept positions, ascending; a slot is an index into them.
    pub kept: &'a [Position],
    /// How many have to go, at least 1.
    pub excess: usize,
}

/// A whole row, for a bound.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BoundRow<'a> {
    /// The weight of every position.
    pub weights: &'a [f32],
    /// Positions that a policy with the same budget is measured on, at most.
    pub held: usize,
}

impl<'a> BoundRow<'a> {
    /// A row of which `held` positions may be retained.
    pub(crate) fn new(weights: &'a [f32], held: usize) -> BoundRow<'a> {
        BoundRow { weights, held }
    }
}
