//! What a policy is told in a call. Fields may be added; none is left to be guessed: what was not
//! asked for, or what the trace does not hold, is `None`.

use super::sight::Sight;
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

impl<'a> Admission<'a> {
    /// A position with its key and value.
    pub(crate) fn seen(position: Position, sight: Sight<'a>) -> Admission<'a> {
        Admission { position, key: Some(sight.key(position)), value: Some(sight.value(position)) }
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
    /// One weight for each kept position: of the row, or of the rows of the cache's query heads combined.
    pub weights: &'a [f32],
    /// What a row sums to at most, in rows: the number of heads where their rows are summed, else 1.
    pub scale: f64,
    /// Number of weights in a whole row.
    pub row_len: usize,
    /// The rows of the query heads, for policies that need them.
    pub heads: Option<HeadRows<'a>>,
    /// Whether the rows of the heads count one by one, in place of `weights`.
    pub(crate) each: bool,
}

impl<'a> Observation<'a> {
    /// One row of `row_len` weights against the kept positions.
    pub(crate) fn new(step: Position, positions: &'a [Position], weights: &'a [f32], row_len: usize) -> Self {
        Observation { step, positions, weights, scale: 1.0, row_len, heads: None, each: false }
    }

    /// What a kept position would have if all had the same: one over their number, times the scale.
    pub fn even_share(&self) -> f64 {
        self.scale / self.weights.len() as f64
    }

    /// What a position would have if all of the row had the same.
    pub fn even_share_of_row(&self) -> f64 {
        self.scale / self.row_len as f64
    }

    /// The rows that count: the combined one, or under [`Combine::Each`](crate::keeping::Combine::Each) every
    /// head's own, in head order. Policies that [add](super::entry::PolicyEntry::adds) go by these.
    pub fn rows(&self) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        let each = self.heads.filter(|_| self.each);
        let combined = if each.is_none() { Some(self.weights) } else { None };
        combined.into_iter().chain(each.into_iter().flat_map(HeadRows::rows))
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
    /// What may be looked at, for policies that need it.
    pub(crate) sight: Option<Sight<'a>>,
}

impl<'a> Overflow<'a> {
    /// Of a cache of which nothing but rows is known.
    pub(crate) fn of(kept: &'a [Position], excess: usize) -> Overflow<'a> {
        Overflow { kept, excess, sight: None }
    }

    /// Keys, values and queries of the cache.
    ///
    /// # Panics
    /// When the policy's entry does not say that it needs them.
    pub fn sight(&self) -> Sight<'a> {
        self.sight.expect("declared in the entry's needs")
    }
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
