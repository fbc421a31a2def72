//! Budgets across caches: one average, dealt out in a shape.
//!
//! A shape says in what proportion caches share the total: the same for each, a straight line over
//! the layers, or numbers of a file, for each layer or for each cache. Shares are exact integers in
//! proportion; a [`Rounding`] says what becomes of the fractions. A cache that would fall below what
//! its policy needs is raised to that. Knows no policies; one that deals its budget out by itself
//! names a shape and a rounding.

mod file;
mod shape;

pub use shape::parse_ratio;

use crate::decimal::Decimal;
use crate::error::Result;
use crate::trace::StreamLabel;
use shape::{Shape, Shares};
use std::ffi::OsStr;

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

/// How a lane's average budget is dealt out to caches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheBudgets {
    shape: Shape,
    rounding: Rounding,
}

/// What becomes of the fractions of positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rounding {
    /// Every share is rounded down, and what is left goes to the largest fractions, ties to the earlier
    /// cache: the total is the average times the number of caches, to the unit. Ours.
    #[default]
    LargestRemainder,
    /// Every share is rounded down: the rule of `pyramidkv`. The total may fall short.
    Down,
}

/// The budget of one cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheBudget {
    /// Most positions held between steps.
    pub budget: usize,
    /// Whether it was raised to the floor, so that a total that was exact no longer is.
    pub raised: bool,
}

impl CacheBudgets {
    /// The same for every cache.
    pub fn uniform() -> CacheBudgets {
        CacheBudgets::default()
    }

    /// In a straight line from the first layer to the last, `ratio` times more for the first, as in
    /// PyramidKV (arXiv 2406.02069).
    pub fn pyramid(ratio: Decimal, rounding: Rounding) -> CacheBudgets {
        CacheBudgets { shape: Shape::Pyramid(ratio), rounding }
    }

    /// In proportion to these numbers, cache by cache.
    pub fn of_caches(budgets: impl IntoIterator<Item = (StreamLabel, usize)>) -> CacheBudgets {
        let whole = |(label, budget): (StreamLabel, usize)| (label, Decimal::whole(budget as u64));
        let shape = Shape::Caches(budgets.into_iter().map(whole).collect());
        CacheBudgets { shape, rounding: Rounding::default() }
    }

    /// Reads `uniform`, `pyramid:RATIO`, `funnel:RATIO`, either of the latter with `:down` after it for
    /// [`Rounding::Down`], or the name of a JSON file that maps layers (`"3"`) or caches (`"3.kv0"`) to
    /// numbers in whose proportion the total is dealt out.
    ///
    /// # Errors
    /// When it is none of these, a ratio is below 1, or the file is not such a table.
    pub fn parse(text: &OsStr) -> Result<CacheBudgets> {
        let (shape, rounding) = match text.to_str().and_then(|text| text.strip_suffix(":down")) {
            Some(shape) if Shape::is_line(shape) => (shape.as_ref(), Rounding::Down),
            _ => (text, Rounding::LargestRemainder),
        };
        Ok(CacheBudgets { shape: Shape::parse(shape)?, rounding })
    }

    /// The same shape, of which a table names only layers that have a cache of their own.
    ///
    /// # Errors
    /// When a table gives nothing to any of these.
    pub fn of_layers(&self, owns_cache: impl Fn(u32) -> bool) -> Result<CacheBudgets, String> {
        let mut shape = self.shape.clone();
        shape.keep_layers(owns_cache)?;
        Ok(CacheBudgets { shape, rounding: self.rounding })
    }

    /// Whether every cache has the same budget.
    pub fn is_uniform(&self) -> bool {
        self.shape == Shape::Uniform
    }

    /// Deals a trace of so many layers its budgets, where the average is `average`.
    ///
    /// # Errors
    /// When there are too many layers.
    pub fn deal(&self, layers: usize, average: usize) -> Result<Dealt, String> {
        let shares = self.shape.deal(layers, average, |shares| self.rounding.deal(shares, average))?;
        let may_be_raised = !matches!(shares, Shares::Same(_)) && self.rounding == Rounding::LargestRemainder;
        Ok(Dealt { shares, may_be_raised })
    }

    /// The budget of one cache where the average is `average`; at least `floor`.
    ///
    /// # Errors
    /// As [`CacheBudgets::deal`] and [`Dealt::of`].
    pub fn of(
        &self,
        label: &StreamLabel,
        place: LayerPlace,
        average: usize,
        floor: usize,
    ) -> Result<CacheBudget, String> {
        self.deal(place.count, average)?.of(label, place, floor)
    }
}

/// The budgets of all caches of a trace: dealt once, read for each cache.
#[derive(Debug)]
pub struct Dealt {
    shares: Shares,
    /// Whether a share that is raised makes an exact total inexact.
    may_be_raised: bool,
}

impl Dealt {
    /// The budget of a cache, at least `floor` where caches differ.
    ///
    /// # Errors
    /// When a table does not name the cache.
    pub fn of(&self, label: &StreamLabel, place: LayerPlace, floor: usize) -> Result<CacheBudget, String> {
        let dealt = self.shares.of(label, place)?;
        match self.shares {
            Shares::Same(_) => Ok(CacheBudget { budget: dealt, raised: false }),
            _ => Ok(CacheBudget { budget: dealt.max(floor), raised: self.may_be_raised && dealt < floor }),
        }
    }
}

impl Rounding {
    /// Deals `budget` x shares out in proportion to the shares, which are not all 0.
    fn deal(self, shares: &[u128], budget: usize) -> Vec<usize> {
        // Positions are 32 bits wide: more budget than that is no more.
        let total = budget.min(u32::MAX as usize) as u128 * shares.len() as u128;
        let whole: u128 = shares.iter().sum();
        let mut dealt: Vec<usize> = shares.iter().map(|share| (total * share / whole) as usize).collect();
        if self == Rounding::LargestRemainder {
            let left = total as usize - dealt.iter().sum::<usize>();
            let mut order: Vec<usize> = (0..shares.len()).collect();
            order.sort_by_key(|index| std::cmp::Reverse(total * shares[*index] % whole));
            order[..left].iter().for_each(|index| dealt[*index] += 1);
        }
        dealt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Head;

    fn dealt(budgets: &CacheBudgets, budget: usize, layers: usize, floor: usize) -> Vec<usize> {
        let of = |index: usize| {
            let label = StreamLabel { layer: index as u32, head: Head::Number(0) };
            budgets.of(&label, LayerPlace { index, count: layers }, budget, floor).expect("a layer of the table")
        };
        (0..layers).map(|layer| of(layer).budget).collect()
    }

    fn parsed(text: &str) -> CacheBudgets {
        CacheBudgets::parse(OsStr::new(text)).expect("sound")
    }

    fn table(text: &str) -> CacheBudgets {
        CacheBudgets { shape: file::parse_table(text.as_bytes()).expect("sound"), rounding: Rounding::default() }
    }

    #[test]
    fn totals_are_exact_whatever_the_shape() {
        for text in ["uniform", "pyramid:4", "pyramid:1", "pyramid:2.5", "funnel:2", "funnel:20"] {
            for (budget, layers) in [(100, 1), (100, 7), (33, 30), (1, 3), (1023, 32)] {
                let total: usize = dealt(&parsed(text), budget, layers, 0).iter().sum();
                assert_eq!(total, budget * layers, "{text} of {budget} over {layers}");
            }
        }
    }

    #[test]
    fn a_funnel_is_a_pyramid_upside_down_where_nothing_is_rounded() {
        assert_eq!(dealt(&parsed("pyramid:3"), 100, 5, 1), [150, 125, 100, 75, 50]);
        assert_eq!(dealt(&parsed("funnel:3"), 100, 5, 1), [50, 75, 100, 125, 150]);
    }

    /// floor(2 b (r (L - 1) - k (r - 1)) / ((r + 1) (L - 1))), the published formula.
    #[test]
    fn rounded_down_a_pyramid_is_the_published_formula() {
        for (budget, ratio, layers) in
            (1..300).flat_map(|b| (1..9_usize).flat_map(move |r| (2..9_usize).map(move |l| (b, r, l))))
        {
            let last = layers - 1;
            let formula = |k: usize| 2 * budget * (ratio * last - k * (ratio - 1)) / ((ratio + 1) * last);
            let wanted: Vec<usize> = (0..layers).map(formula).collect();
            assert_eq!(dealt(&parsed(&format!("pyramid:{ratio}:down")), budget, layers, 0), wanted);
        }
    }

    #[test]
    fn the_two_roundings_of_a_pyramid_differ_by_one_at_most() {
        let down = dealt(&parsed("pyramid:4:down"), 128, 30, 1);
        for (layer, budget) in dealt(&parsed("pyramid:4"), 128, 30, 1).into_iter().enumerate() {
            assert!(budget == down[layer] || budget == down[layer] + 1, "layer {layer}: {budget} beside {down:?}");
        }
    }

    #[test]
    fn the_largest_remainder_gets_the_unit_and_ties_go_to_the_earlier_layer() {
        assert_eq!(dealt(&table(r#"{"0": 1, "1": 1, "2": 1, "3": 5}"#), 5, 4, 0), [3, 3, 2, 12]);
        assert_eq!(dealt(&table(r#"{"1": 0.5, "0": 1.5}"#), 5, 2, 0), [8, 2]);
    }

    #[test]
    fn a_table_whose_average_is_the_budget_is_taken_as_it_stands() {
        let table = table(r#"{"0": 100, "1": 60, "2": 20}"#);
        assert_eq!(dealt(&table, 60, 3, 1), [100, 60, 20]);
        assert_eq!(dealt(&table, 30, 3, 1), [50, 30, 10]);
    }

    #[test]
    fn a_table_may_name_caches_instead_of_layers() {
        let table = table(r#"{"3.kv1": 30, "3.kv0": 10, "10.kv0": 20}"#);
        let of = |cache: &str| {
            let label = StreamLabel::parse(cache).expect("a label");
            table.of(&label, LayerPlace { index: 0, count: 2 }, 20, 1).map(|dealt| dealt.budget)
        };
        assert_eq!([of("3.kv0"), of("3.kv1"), of("10.kv0")], [Ok(10), Ok(30), Ok(20)]);
        let problem = of("10.kv1").expect_err("it is not in the table");
        assert_eq!(problem, "the table of budgets has no cache 10.kv1, it names 3.kv0, 3.kv1, 10.kv0");
    }

    #[test]
    fn a_cache_below_the_floor_is_raised_and_said_to_be() {
        let label = StreamLabel { layer: 0, head: Head::Number(0) };
        let of = |text: &str, index| parsed(text).of(&label, LayerPlace { index, count: 3 }, 40, 33).expect("sound");
        assert_eq!(of("funnel:9", 0), CacheBudget { budget: 33, raised: true });
        assert_eq!(of("funnel:9", 2), CacheBudget { budget: 72, raised: false });
        assert_eq!(of("funnel:9:down", 0), CacheBudget { budget: 33, raised: false }, "no total that was exact");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_word() {
        for text in [
            "pyramid:0.5",
            "pyramid:",
            "funnel:x",
            "funnel:-2",
            "pyramid:1e3",
            "no such file",
            "uniform:2",
            "uniform:down",
            "pyramid:2:up",
        ] {
            assert!(CacheBudgets::parse(OsStr::new(text)).is_err(), "{text}");
        }
        let table = table(r#"{"0": 1, "2": 1}"#);
        let label = StreamLabel { layer: 1, head: Head::Number(0) };
        let problem = table.of(&label, LayerPlace { index: 1, count: 3 }, 10, 1).expect_err("layer 1 is not there");
        assert_eq!(problem, "the table of budgets has no layer 1, it names 0, 2");
    }
}
