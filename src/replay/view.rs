//! What a lane takes of a step's rows: the weights of kept positions, head by head, and what the
//! policy is shown of them.

use super::options::ViewKind;
use super::step_batch::KnownRow;
use crate::keeping::Combine;
use crate::kernels::{self, Gathered};
use crate::needs::Needs;
use crate::position::Position;

/// Buffers for one step after another.
pub(super) struct View {
    kind: ViewKind,
    combine: Combine,
    /// Whether the policy is shown anything.
    shown: bool,
    /// Whether the policy is shown the rows of single query heads.
    shown_heads: bool,
    /// The kept weights of the row taken last.
    gathered: Vec<f32>,
    /// Sum over query heads of the gathered weights; unused where there is one head.
    head_sum: Vec<f64>,
    /// Their maximum, where that is shown.
    head_max: Vec<f32>,
    /// The kept weights of each query head, back to back, where the policy is shown them.
    heads: Vec<f32>,
}

/// What a policy is shown of a step.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Shown<'a> {
    /// The kept weights of the query heads, combined.
    pub weights: &'a [f32],
    /// The kept weights of each query head, back to back, where they are needed.
    pub heads: Option<&'a [f32]>,
    /// What a row sums to at most, in rows.
    pub scale: f64,
    /// Whether the rows of the heads count one by one.
    pub each: bool,
}

impl<'a> Shown<'a> {
    /// A row of a single head.
    pub fn row(weights: &'a [f32]) -> Shown<'a> {
        Shown { weights, heads: Some(weights), scale: 1.0, each: false }
    }
}

impl View {
    /// The view of a policy with these needs.
    pub(super) fn new(needs: Needs, kind: ViewKind, combine: Combine) -> View {
        View {
            kind,
            combine,
            shown: needs.has_any(Needs::KEPT_WEIGHTS.and(Needs::HEAD_ROWS)),
            shown_heads: needs.has(Needs::HEAD_ROWS) || combine == Combine::Each,
            gathered: Vec::new(),
            head_sum: Vec::new(),
            head_max: Vec::new(),
            heads: Vec::new(),
        }
    }

    /// Begins a step with this many positions kept.
    #[inline]
    pub(super) fn start(&mut self, kept: usize) {
        self.gathered.resize(kept, 0.0);
        self.head_sum.clear();
        self.head_max.clear();
        self.heads.clear();
    }

    /// Measures what is kept of a head's row; the weights too where the policy, its row or `wanted` asks
    /// for them.
    #[inline]
    pub(super) fn take(
        &mut self,
        KnownRow { weights: row, facts }: KnownRow<'_>,
        kept: &[Position],
        wanted: bool,
    ) -> (Gathered, Option<&[f32]>) {
        if self.shown || wanted || facts.has_peaks_or_ties() {
            let found = kernels::gather(row, kept, facts.kept_limits(), &mut self.gathered);
            (found, Some(&self.gathered))
        } else {
            (kernels::measure(row, kept, facts.kept_limits()), None)
        }
    }

    /// Keeps the row taken last for what the policy will be shown, as one of several heads.
    #[inline]
    pub(super) fn add_head(&mut self, of: usize) {
        if self.shown && of > 1 {
            self.combine_head();
        }
        if self.shown_heads {
            let start = self.heads.len();
            self.heads.extend_from_slice(&self.gathered);
            if self.kind == ViewKind::Renormalized {
                // A head that keeps no weight shows zeros.
                renormalize(&mut self.heads[start..]);
            }
        }
    }

    #[inline]
    fn combine_head(&mut self) {
        if self.combine == Combine::Max {
            self.head_max.resize(self.gathered.len(), 0.0);
            self.head_max.iter_mut().zip(&self.gathered).for_each(|(most, weight)| *most = most.max(*weight));
        } else {
            self.head_sum.resize(self.gathered.len(), 0.0);
            kernels::accumulate(&mut self.head_sum, &self.gathered);
        }
    }

    /// Puts the rows of several heads, combined, in the place of the last one.
    #[inline]
    fn show_combined(&mut self, heads: usize) {
        let divisor = match self.combine {
            Combine::Max => return self.gathered.copy_from_slice(&self.head_max),
            Combine::Sum => 1.0,
            Combine::Mean | Combine::Each => heads as f64,
        };
        let combined = self.head_sum.iter().map(|sum| (sum / divisor) as f32);
        self.gathered.iter_mut().zip(combined).for_each(|(weight, combined)| *weight = combined);
    }

    /// What the policy is shown of the step; `None` where it looks at nothing, or there is nothing to
    /// divide by.
    #[inline]
    pub(super) fn shown(&mut self, heads: usize) -> Option<Shown<'_>> {
        if !self.shown {
            return None;
        }
        if heads > 1 {
            self.show_combined(heads);
        }
        if self.kind == ViewKind::Renormalized && !renormalize(&mut self.gathered) {
            return None;
        }
        let summed = self.combine == Combine::Sum && self.kind == ViewKind::Raw;
        Some(Shown {
            weights: &self.gathered,
            heads: self.shown_heads.then_some(&self.heads[..]),
            scale: if summed { heads as f64 } else { 1.0 },
            each: self.combine == Combine::Each,
        })
    }
}

/// Divides weights by their sum; leaves them, and says so, where it is 0.
fn renormalize(weights: &mut [f32]) -> bool {
    let kept = kernels::sum(weights);
    if kept > 0.0 {
        weights.iter_mut().for_each(|weight| *weight = (f64::from(*weight) / kept) as f32);
    }
    kept > 0.0
}
