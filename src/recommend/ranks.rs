//! Ranks: who cannot be told from the best of a group shares its rank.

use super::resample::Interval;

/// The ranks of candidates in the order of their figure, the best first, from what was drawn of each.
///
/// Each is compared, draw by draw, with the first of the rank before it: where the interval of the difference
/// lies above 0 a new rank begins, that of the place.
pub(super) fn shared(drawn: &[Vec<f64>]) -> Vec<usize> {
    let mut ranks: Vec<usize> = Vec::new();
    let mut leader = 0;
    for (place, values) in drawn.iter().enumerate() {
        if is_clearly_more(values, &drawn[leader]) {
            leader = place;
        }
        ranks.push(leader + 1);
    }
    ranks
}

fn is_clearly_more(values: &[f64], than: &[f64]) -> bool {
    Interval::of(values.iter().zip(than).map(|(value, least)| value - least).collect()).low > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_is_with_the_first_of_a_rank() {
        let spread = |middle: f64| (0..100).map(|at| middle + f64::from(at % 2) - 0.5).collect::<Vec<_>>();
        let noise = |middle: f64| (0..100).map(|at| middle - f64::from(at % 2) + 0.5).collect::<Vec<_>>();
        assert_eq!(shared(&[spread(1.0), spread(1.1)]), [1, 2], "they go up and down together");
        assert_eq!(shared(&[spread(1.0), noise(1.1), noise(1.9), noise(2.2), spread(9.0)]), [1, 1, 1, 4, 5]);
    }
}
