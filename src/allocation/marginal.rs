//! Along the lower convex hulls of the curves, whatever saves most per position first.

use super::{Allocation, Curves};

/// The allocation of at most `total` positions, and whether it is known to lose least: nothing is left over, and
/// no cache had to stop before. `None` where even the smallest budgets are more than the total.
///
/// From the smallest budgets on, the segment of a hull that saves most loss per position is taken if it still
/// fits; one that does not fit closes its cache. Ties go to the earlier cache.
pub fn marginal(curves: &Curves, total: usize) -> Option<(Allocation, bool)> {
    let mut left = total.checked_sub(curves.least_total())?;
    let hulls: Vec<Vec<usize>> = (0..curves.caches()).map(|cache| hull(curves, cache)).collect();
    let mut reached = vec![0; curves.caches()];
    let mut is_closed = vec![false; curves.caches()];
    let mut was_closed = false;
    while let Some((cache, size)) = steepest(curves, &hulls, &reached, &is_closed) {
        if size > left {
            is_closed[cache] = true;
            was_closed = true;
        } else {
            reached[cache] += 1;
            left -= size;
        }
        if left == 0 {
            break;
        }
    }
    let places: Vec<usize> = hulls.iter().zip(reached).map(|(hull, at)| hull[at]).collect();
    Some((curves.at(&places), left == 0 && !was_closed))
}

/// The open cache whose next segment saves most per position, and the positions of that.
fn steepest(curves: &Curves, hulls: &[Vec<usize>], reached: &[usize], is_closed: &[bool]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, f64)> = None;
    for cache in (0..hulls.len()).filter(|cache| !is_closed[*cache]) {
        let Some(next) = hulls[cache].get(reached[cache] + 1) else { continue };
        let (grid, curve, at) = (curves.grid(), curves.of_cache(cache), hulls[cache][reached[cache]]);
        let size = grid[*next] - grid[at];
        let gain = (curve[at] - curve[*next]) / size as f64;
        if gain > best.map_or(0.0, |(.., most)| most) {
            best = Some((cache, size, gain));
        }
    }
    best.map(|(cache, size, _)| (cache, size))
}

/// The places of a cache's lower convex hull, from the smallest budget to the largest.
pub fn hull(curves: &Curves, cache: usize) -> Vec<usize> {
    let point = |place: usize| (curves.grid()[place] as f64, curves.of_cache(cache)[place]);
    let slope = |from: usize, to: usize| (point(to).1 - point(from).1) / (point(to).0 - point(from).0);
    let mut hull: Vec<usize> = Vec::new();
    for place in 0..curves.grid().len() {
        while let [.., before, last] = hull[..] {
            if slope(before, last) < slope(last, place) {
                break;
            }
            hull.pop();
        }
        hull.push(place);
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::super::exact::exact;
    use super::*;

    fn curves(losses: &[&[f64]]) -> Curves {
        let grid = (1..=losses[0].len()).collect();
        Curves::new(grid, losses.iter().map(|curve| curve.to_vec()).collect()).expect("sound")
    }

    #[test]
    fn a_plateau_before_a_drop_is_passed_over() {
        let curves = curves(&[&[10.0, 10.0, 0.0], &[5.0, 4.0, 3.0]]);
        assert_eq!(hull(&curves, 0), [0, 2]);
        let (found, is_best) = marginal(&curves, 4).expect("it fits");
        assert_eq!((found.budgets, found.loss, is_best), (vec![3, 1], 5.0, true));
    }

    #[test]
    fn a_segment_that_does_not_fit_closes_its_cache_and_leaves_doubt() {
        let curves = curves(&[&[10.0, 9.0, 0.0], &[5.0, 4.0, 3.5]]);
        let (found, is_best) = marginal(&curves, 3).expect("it fits");
        assert_eq!((found.budgets, found.loss, is_best), (vec![1, 2], 14.0, false));
        assert_eq!(exact(&curves, 3).map(|exact| exact.loss), Some(14.0));
    }

    #[test]
    fn where_it_says_so_it_is_as_good_as_exact() {
        let mut random = crate::trace::rng::Xoshiro128::new(5);
        let mut sure = 0;
        for _ in 0..300 {
            let losses = (0..4).map(|_| (0..5).map(|_| f64::from(random.below(60))).collect()).collect();
            let curves = Curves::new((1..=5).collect(), losses).expect("sound");
            let total = 4 + random.below(16) as usize;
            let (found, is_best) = marginal(&curves, total).expect("it fits");
            let least = exact(&curves, total).expect("it fits").loss;
            assert!(found.loss >= least);
            if is_best {
                sure += 1;
                assert!((found.loss - least).abs() < 1e-9, "{} {least}", found.loss);
            }
        }
        assert!(sure > 50, "{sure}");
    }
}
