//! Pooling of scores over neighbouring columns.

/// How neighbours are pooled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pool {
    /// Their mean; zeros stand beyond the ends and count.
    Mean,
    /// Their maximum; nothing stands beyond the ends.
    Max,
}

impl Pool {
    /// What the parameter's word means.
    pub(super) fn from_word(word: &str) -> Pool {
        if word == "max" { Pool::Max } else { Pool::Mean }
    }

    /// Every score pooled with `kernel / 2` neighbours on each side; `kernel` is odd.
    pub(super) fn pooled(self, scores: &[f64], kernel: usize) -> Vec<f64> {
        let reach = kernel / 2;
        let around = |at: usize| {
            let near = &scores[at.saturating_sub(reach)..scores.len().min(at.saturating_add(reach + 1))];
            match self {
                Pool::Mean => near.iter().sum::<f64>() / kernel as f64,
                Pool::Max => near.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            }
        };
        (0..scores.len()).map(around).collect()
    }
}
