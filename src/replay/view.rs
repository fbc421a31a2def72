//! What a lane takes of a step's rows: the weights of kept positions, head by head, and what the
//! policy is shown of them.

use super::options::ViewKind;
use super::step_batch::KnownRow;
use crate::kernels::{self, Gathered};
use crate::needs::Needs;
use crate::position::Position;

/// Buffers for one step after another.
pub(super) struct View {
    kind: ViewKind,
    /// Whether the policy is shown anything.
    shown: bool,
    /// Whether the policy is shown the rows of single query heads.
    shown_heads: bool,
    /// The kept weights of the row taken last.
    gathered: Vec<f32>,
    /// Sum over query heads of the gathered weights; unused where there is one head.
    head_sum: Vec<f64>,
    /// The kept weights of each query head, back to back, where the policy is shown them.
    heads: Vec<f32>,
}

/// What the policy is shown of a step.
pub(super) struct Shown<'a> {
    /// The mean over query heads of the kept weights.
    pub weights: &'a [f32],
    /// The kept weights of each query head, where they are needed.
    pub heads: Option<&'a [f32]>,
}

impl View {
    /// The view of a policy with these needs.
    pub(super) fn new(needs: Needs, kind: ViewKind) -> View {
        View {
            kind,
            shown: needs.has_any(Needs::KEPT_WEIGHTS.and(Needs::HEAD_ROWS)),
            shown_heads: needs.has(Needs::HEAD_ROWS),
            gathered: Vec::new(),
            head_sum: Vec::new(),
            heads: Vec::new(),
        }
    }

    /// Begins a step with this many positions kept.
    #[inline]
    pub(super) fn start(&mut self, kept: usize) {
        self.gathered.resize(kept, 0.0);
        self.head_sum.clear();
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
            self.head_sum.resize(self.gathered.len(), 0.0);
            kernels::accumulate(&mut self.head_sum, &self.gathered);
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

    /// What the policy is shown of the step; `None` where it looks at nothing, or there is nothing to
    /// divide by.
    #[inline]
    pub(super) fn shown(&mut self, heads: usize) -> Option<Shown<'_>> {
        if !self.shown {
            return None;
        }
        if heads > 1 {
            let mean = self.head_sum.iter().map(|sum| (sum / heads as f64) as f32);
            self.gathered.iter_mut().zip(mean).for_each(|(weight, mean)| *weight = mean);
        }
        if self.kind == ViewKind::Renormalized && !renormalize(&mut self.gathered) {
            return None;
        }
        Some(Shown { weights: &self.gathered, heads: self.shown_heads.then_some(&self.heads[..]) })
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
