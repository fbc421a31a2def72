//! The least total loss with one budget of the grid for each cache: dynamic programming.

use super::{Allocation, Curves};

/// More cells than these take too long.
const MOST_CELLS: usize = 1 << 28;

/// The least loss of all allocations of at most `total` positions; of those that tie, the one whose later caches
/// have least. `None` where even the smallest budgets are more than the total, or the table would be too large.
pub fn exact(curves: &Curves, total: usize) -> Option<Allocation> {
    let unit = curves.grid().iter().copied().reduce(divisor)?;
    let columns = total / unit + 1;
    if curves.least_total() > total || columns.checked_mul(curves.caches())? > MOST_CELLS {
        return None;
    }
    // The least loss of the caches so far for each total, and the place that the last of them has there.
    let mut least = vec![0.0; columns];
    let mut chosen: Vec<Vec<u16>> = Vec::with_capacity(curves.caches());
    for cache in 0..curves.caches() {
        let (next, places) = with_cache(curves, cache, unit, &least);
        least = next;
        chosen.push(places);
    }
    let mut left = columns - 1;
    let mut places = vec![0; curves.caches()];
    for cache in (0..curves.caches()).rev() {
        places[cache] = usize::from(chosen[cache][left]);
        left -= curves.grid()[places[cache]] / unit;
    }
    Some(curves.at(&places))
}

/// One more cache: the least losses for each total, and the places of the cache that give them.
fn with_cache(curves: &Curves, cache: usize, unit: usize, before: &[f64]) -> (Vec<f64>, Vec<u16>) {
    let mut least = vec![f64::INFINITY; before.len()];
    let mut places = vec![0; before.len()];
    for (place, (budget, loss)) in curves.grid().iter().zip(curves.of_cache(cache)).enumerate() {
        for column in budget / unit..before.len() {
            let sum = before[column - budget / unit] + loss;
            if sum < least[column] {
                (least[column], places[column]) = (sum, place as u16);
            }
        }
    }
    (least, places)
}

fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every allocation, one by one.
    fn by_trying(curves: &Curves, total: usize) -> f64 {
        let mut sums = vec![(0, 0.0)];
        for cache in 0..curves.caches() {
            let with = |(used, loss): &(usize, f64)| {
                let (used, loss) = (*used, *loss);
                let pairs = curves.grid().iter().zip(curves.of_cache(cache));
                pairs.map(move |(budget, more)| (used + budget, loss + more)).collect::<Vec<_>>()
            };
            sums = sums.iter().flat_map(with).collect();
        }
        sums.iter().filter(|(used, _)| *used <= total).map(|(_, loss)| *loss).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn nothing_is_less_than_the_exact_answer() {
        let mut random = crate::trace::rng::Xoshiro128::new(3);
        for _ in 0..200 {
            let grid = vec![2, 4, 10, 12];
            let losses = (0..4).map(|_| grid.iter().map(|_| f64::from(random.below(50))).collect()).collect();
            let curves = Curves::new(grid, losses).expect("sound");
            let total = 8 + random.below(40) as usize;
            let found = exact(&curves, total).expect("the smallest budgets fit");
            assert_eq!(found.loss, by_trying(&curves, total));
            assert!(found.budgets.iter().sum::<usize>() <= total);
        }
    }

    #[test]
    fn a_total_below_the_smallest_budgets_has_no_answer() {
        let curves = Curves::new(vec![4, 8], vec![vec![1.0, 0.0]; 3]).expect("sound");
        assert_eq!(exact(&curves, 11), None);
        assert_eq!(exact(&curves, 12).map(|found| found.budgets), Some(vec![4, 4, 4]));
    }
}
