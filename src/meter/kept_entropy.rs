//! Kept entropy: how evenly the kept weights of a row are spread.
//!
//! The entropy of the kept weights divided by their sum, in nats: 0 where one position has all of it,
//! the logarithm of the number of kept positions where all have the same. A row that keeps no weight
//! has none and counts nowhere. The logarithm is part of the program, so that every machine agrees.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, KeptRow, LaneEnd, Meter, MeterEntry};
use crate::needs::Needs;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("kept_entropy", "how evenly the kept weights of a row are spread", SUMS, FIGURES, |_| {
        Box::new(KeptEntropy::default())
    })
    .needs(Needs::KEPT_SET.and(Needs::KEPT_WEIGHTS));

const SUMS: &[Sum] = &[
    Sum::real("kept_entropy_sum", "nats", "sum behind kept_entropy"),
    Sum::count("kept_entropy_rows", "rows", "rows behind kept_entropy: those that keep any weight"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "kept_entropy",
    "nats",
    Reading::Ratio("kept_entropy_sum", &["kept_entropy_rows"]),
    "mean over rows of the entropy of the kept weights, divided by their sum",
)];

#[derive(Default)]
struct KeptEntropy {
    sum: f64,
    rows: u64,
}

impl Meter for KeptEntropy {
    fn row(&mut self, row: &KeptRow<'_>) {
        let weights = row.weights.expect("declared in the entry's needs");
        if let Some(entropy) = entropy(weights) {
            self.sum += entropy;
            self.rows += 1;
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([Number::Real(self.sum), Number::Count(self.rows)])
    }
}

/// The entropy of weights divided by their sum S: ln S - (sum of w ln w) / S.
fn entropy(weights: &[f32]) -> Option<f64> {
    let positive = || weights.iter().map(|weight| f64::from(*weight)).filter(|weight| *weight > 0.0);
    let sum: f64 = positive().sum();
    let of_weights: f64 = positive().map(|weight| weight * libm::log(weight)).sum();
    // Rounding alone could take it below nothing.
    (sum > 0.0).then(|| (libm::log(sum) - of_weights / sum).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_weights_have_the_logarithm_of_their_number_and_zeros_change_nothing() {
        for count in [1_usize, 2, 7, 256] {
            let weights = [vec![0.125_f32; count], vec![0.0; 5]].concat();
            let found = entropy(&weights).expect("there is weight");
            assert!((found - (count as f64).ln()).abs() < 1e-14, "{count}: {found}");
        }
        assert_eq!(entropy(&[0.0, 0.0]), None);
        assert_eq!(entropy(&[]), None);
        assert!((1..1000).all(|part| entropy(&[part as f32 / 1001.0]).is_some_and(|entropy| entropy >= 0.0)));
    }

    /// Values of -p ln p - q ln q to more digits than a float holds.
    #[test]
    fn two_weights_have_the_entropy_that_a_table_says() {
        for (weights, wanted) in [
            ([0.75_f32, 0.25], 0.562_335_144_618_808_4),
            ([0.375, 0.125], 0.562_335_144_618_808_4),
            ([0.9375, 0.0625], 0.233_791_658_706_459_3),
        ] {
            let found = entropy(&weights).expect("there is weight");
            assert!((found - wanted).abs() < 1e-15, "{weights:?}: {found}");
        }
    }
}
