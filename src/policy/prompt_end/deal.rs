//! Which columns have the highest scores: of one cache, or of the caches of a layer together.

use super::{Look, by_layer, with_window};
use std::cmp::Ordering;

/// A score, its column, and the cache that it is of.
type Ranked = (f64, usize, usize);

/// The highest first; at a tie the higher column, then the higher cache.
fn higher_first(a: &Ranked, b: &Ranked) -> Ordering {
    b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2))
}

fn ranked(scores: &[f64], cache: usize) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = scores.iter().enumerate().map(|(column, score)| (*score, column, cache)).collect();
    ranked.sort_unstable_by(higher_first);
    ranked
}

/// The columns of the `count` highest scores.
pub(super) fn highest(scores: &[f64], count: usize) -> Vec<usize> {
    ranked(scores, 0).iter().take(count).map(|(_, column, _)| *column).collect()
}

/// Each cache keeps its own highest; `of_prefix` says how many of the prefix, `None` where it keeps all.
pub(super) fn each_its_own(looks: &[Look], of_prefix: &[Option<usize>]) -> Vec<Option<Vec<usize>>> {
    let keep = |(look, count): (&Look, &Option<usize>)| {
        let count = (*count)?;
        Some(with_window(highest(&look.scores, count), look))
    };
    looks.iter().zip(of_prefix).map(keep).collect()
}

/// The caches of a layer share what they may keep of the prefix: each is sure of the share `sure` of its own
/// part, and the rest goes to the highest of what the others leave. A cache that keeps everything takes no part.
pub(super) fn shared_in_layers(
    looks: &[Look],
    layers: &[u32],
    of_prefix: &[Option<usize>],
    sure: f64,
) -> Vec<Option<Vec<usize>>> {
    let mut kept: Vec<Option<Vec<usize>>> = vec![None; looks.len()];
    for team in by_layer(layers) {
        let (mut rest, mut left) = (Vec::new(), 0);
        for (cache, count) in team.iter().filter_map(|cache| Some((*cache, of_prefix[*cache]?))) {
            let certain = (sure * count as f64).floor() as usize;
            let mut all = ranked(&looks[cache].scores, cache);
            rest.extend(all.split_off(certain.min(all.len())));
            kept[cache] = Some(all.into_iter().map(|(_, column, _)| column).collect());
            left += count - certain;
        }
        rest.sort_unstable_by(higher_first);
        for (_, column, cache) in rest.into_iter().take(left) {
            kept[cache].iter_mut().for_each(|kept| kept.push(column));
        }
    }
    kept.into_iter().zip(looks).map(|(kept, look)| kept.map(|kept| with_window(kept, look))).collect()
}

/// How many columns of the prefix each cache may keep beside its window of `window`; `None` where all fit.
pub(super) fn of_prefix(looks: &[Look], budgets: &[usize], window: usize) -> Vec<Option<usize>> {
    let count = |(look, budget): (&Look, &usize)| (look.columns > *budget).then(|| budget - window);
    looks.iter().zip(budgets).map(count).collect()
}
