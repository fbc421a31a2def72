//! `pyramidkv`: snapkv with a budget that shrinks from the first layer to the last.
//!
//! *Idea.* Early layers spread their attention, late ones funnel it; give early layers more.
//! *Paper.* Cai et al.: PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information
//! Funneling, 2024, arXiv 2406.02069.
//! *How this differs from the paper.* As snapkv, cut at every step instead of once after the
//! prompt; the shape is set by one ratio instead of by a top-layer budget.
//! *Parameters.* snapkv's and `pyramid-ratio` (4).
//! *Cost.* As snapkv.

/// Where a cache stands among the layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerPlace {
    /// The layer's number, from 0.
    pub index: usize,
    /// Number of layers.
    pub count: usize,
}

impl LayerPlace {
    /// The place of a cache that is alone.
    pub const ONLY: LayerPlace = LayerPlace { index: 0, count: 1 };
}

/// The budget of a layer: linear from first to last, `ratio` times more for the first, `budget` on
/// average, rounded down, at least one more than the recent window.
pub fn layer_budget(budget: usize, place: LayerPlace, ratio: f64, recent_window: usize) -> usize {
    if place.count <= 1 {
        return budget;
    }
    let [budget, last, index] = [budget, place.count - 1, place.index].map(|count| count as f64);
    let share = 2.0 * budget * (ratio * last - index * (ratio - 1.0)) / ((ratio + 1.0) * last);
    (share as usize).max(recent_window + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_integer_arithmetic_for_whole_ratios() {
        for (budget, ratio, count, index) in
            (1..300).flat_map(|b| (1..9).flat_map(move |r| (2..9).flat_map(move |l| (0..l).map(move |k| (b, r, l, k)))))
        {
            let exact = 2 * budget * (ratio * (count - 1) - index * (ratio - 1)) / ((ratio + 1) * (count - 1));
            assert_eq!(layer_budget(budget, LayerPlace { index, count }, ratio as f64, 0), exact.max(1));
        }
    }
}
