//! Budgets across layers: the same total as a uniform budget, dealt out in another shape.
//!
//! Shares are exact: integers in proportion, rounded by largest remainder (ties to the earlier
//! layer), so that the total is budget x layers to the unit, unless a layer falls below what its
//! policy needs and is raised to that.

use super::caches::CachePlan;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// How a lane's average budget is dealt out to layers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LayerBudgets {
    /// The same for every layer.
    #[default]
    Uniform,
    /// Linear from the first layer to the last, this many times more for the first, as in PyramidKV
    /// (arXiv 2406.02069).
    Pyramid(Decimal),
    /// Linear from the first layer to the last, this many times more for the last. The Scissorhands
    /// paper (arXiv 2305.17118) argues for this direction and gives no formula; the line is ours.
    Funnel(Decimal),
    /// In proportion to one number for each layer; the budget is the average over the layers named.
    Table(BTreeMap<u32, Decimal>),
}

/// The budget of one layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerBudget {
    /// Most positions held between steps.
    pub budget: usize,
    /// Whether it was raised to the floor, so that the total is no longer exact.
    pub raised: bool,
}

/// Ratios and table entries are below this and have at most [`DECIMALS`] decimals, and layers are at
/// most [`LAYERS`], so that products fit 128 bits.
const LARGEST: u128 = 1_000_000;
const DECIMALS: u32 = 6;
const LAYERS: usize = 1 << 16;

impl LayerBudgets {
    /// Reads `uniform`, `pyramid:RATIO`, `funnel:RATIO`, or the name of a JSON file that maps layer
    /// numbers to numbers in whose proportion the total is dealt out.
    ///
    /// # Errors
    /// When it is none of these, a ratio is below 1, or the file is no such table.
    pub fn parse(text: &OsStr) -> Result<LayerBudgets> {
        let shape = text.to_str().and_then(|text| text.split_once(':').or((text == "uniform").then_some((text, ""))));
        match shape {
            Some(("uniform", "")) => Ok(LayerBudgets::Uniform),
            Some(("pyramid", ratio)) => parse_ratio(ratio).map(LayerBudgets::Pyramid),
            Some(("funnel", ratio)) => parse_ratio(ratio).map(LayerBudgets::Funnel),
            _ => read_table(Path::new(text)),
        }
    }

    /// The shape over just the layers that have a cache of their own: a table may name others too.
    ///
    /// # Errors
    /// When a table gives nothing to any of them.
    pub fn of_layers(&self, owns_cache: impl Fn(u32) -> bool) -> Result<LayerBudgets, String> {
        let LayerBudgets::Table(table) = self else { return Ok(self.clone()) };
        let owned = |(layer, number): (&u32, &Decimal)| owns_cache(*layer).then_some((*layer, *number));
        let table: BTreeMap<u32, Decimal> = table.iter().filter_map(owned).collect();
        match table.values().all(|number| *number == Decimal::whole(0)) {
            true => Err("the table of layer budgets gives nothing to any layer that has a cache".to_owned()),
            false => Ok(LayerBudgets::Table(table)),
        }
    }

    /// The budget of a cache's layer where the average is `budget`; at least `floor`.
    ///
    /// # Errors
    /// When a table does not name the layer, or there are too many layers.
    pub fn of(&self, cache: &CachePlan, budget: usize, floor: usize) -> Result<LayerBudget, String> {
        let (shares, index) = match self {
            LayerBudgets::Uniform => return Ok(LayerBudget { budget, raised: false }),
            LayerBudgets::Pyramid(ratio) => (linear(*ratio, cache.place.count)?, cache.place.index),
            LayerBudgets::Funnel(ratio) => {
                let shares = linear(*ratio, cache.place.count)?;
                (shares.into_iter().rev().collect(), cache.place.index)
            }
            LayerBudgets::Table(table) => {
                let shares = table.values().map(|number| number.in_units(DECIMALS)).collect();
                (shares, table_index(table, cache.label.layer)?)
            }
        };
        let dealt = deal(&shares, budget)[index];
        Ok(LayerBudget { budget: dealt.max(floor), raised: dealt < floor })
    }
}

/// Deals `budget` x layers out in proportion to the shares, which are not all 0.
fn deal(shares: &[u128], budget: usize) -> Vec<usize> {
    // Positions are 32 bits wide: more budget than that is no more.
    let total = budget.min(u32::MAX as usize) as u128 * shares.len() as u128;
    let whole: u128 = shares.iter().sum();
    let mut dealt: Vec<usize> = shares.iter().map(|share| (total * share / whole) as usize).collect();
    let left = total as usize - dealt.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|layer| std::cmp::Reverse(total * shares[*layer] % whole));
    order[..left].iter().for_each(|layer| dealt[*layer] += 1);
    dealt
}

/// Shares that fall in a straight line from `ratio` to 1.
fn linear(ratio: Decimal, layers: usize) -> Result<Vec<u128>, String> {
    if layers > LAYERS {
        return Err(format!("budgets are dealt out to {LAYERS} layers at most, the trace says {layers}"));
    }
    let (first, last, steps) = (ratio.in_units(DECIMALS), Decimal::whole(1).in_units(DECIMALS), layers - 1);
    match steps as u128 {
        0 => Ok(vec![1]),
        steps => Ok((0..=steps).map(|layer| first * (steps - layer) + last * layer).collect()),
    }
}

fn table_index(table: &BTreeMap<u32, Decimal>, layer: u32) -> Result<usize, String> {
    let named = || table.keys().map(u32::to_string).collect::<Vec<_>>().join(", ");
    table
        .contains_key(&layer)
        .then(|| table.range(..layer).count())
        .ok_or_else(|| format!("the table of layer budgets has no layer {layer}, it names {}", named()))
}

fn parse_ratio(text: &str) -> Result<Decimal> {
    let ratio = parse_number(text).filter(|ratio| ratio.in_units(DECIMALS) >= Decimal::whole(1).in_units(DECIMALS));
    ratio.ok_or_else(|| Error::usage(format!("{text:?} is no ratio: a number from 1 up to {LARGEST} is needed")))
}

/// A number that is neither too large nor too fine.
fn parse_number(text: &str) -> Option<Decimal> {
    let number = Decimal::parse(text).filter(|number| number.decimals() <= DECIMALS)?;
    (number.in_units(DECIMALS) <= LARGEST * 10_u128.pow(DECIMALS)).then_some(number)
}

fn read_table(path: &Path) -> Result<LayerBudgets> {
    if !path.exists() {
        let name = path.display();
        return Err(Error::usage(format!(
            "layer budget {:?} is none of uniform, pyramid:RATIO, funnel:RATIO, and no file of that name is there",
            name.to_string()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    parse_table(&bytes).map_err(|problem| Error::data(path.display().to_string(), problem))
}

fn parse_table(bytes: &[u8]) -> Result<LayerBudgets, String> {
    let entries: Map<String, Value> = serde_json::from_slice(bytes)
        .map_err(|error| format!("no table of layer budgets such as {{\"0\": 100, \"1\": 60}}: {error}"))?;
    let table = entries.iter().map(|(layer, number)| parse_entry(layer, number));
    let table = table.collect::<Result<BTreeMap<u32, Decimal>, String>>()?;
    if table.len() > LAYERS || table.values().all(|number| *number == Decimal::whole(0)) {
        return Err(format!("the budgets of {} layers do not add up to anything", table.len()));
    }
    Ok(LayerBudgets::Table(table))
}

fn parse_entry(layer: &str, number: &Value) -> Result<(u32, Decimal), String> {
    let index = layer.parse().map_err(|_| format!("{layer:?} is no layer number"))?;
    // Unlike the JSON it came from, this spelling never has an exponent.
    let text = number.as_f64().map(|number| number.to_string());
    let number = text.as_deref().and_then(parse_number);
    let number = number.ok_or_else(|| {
        format!("the budget of layer {layer} is no number from 0 up to {LARGEST} with at most {DECIMALS} decimals")
    })?;
    Ok((index, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::pyramidkv::{LayerPlace, layer_budget};
    use crate::trace::{Head, StreamLabel};

    fn cache(index: usize, count: usize) -> CachePlan {
        let label = StreamLabel { layer: index as u32, head: Head::Number(0) };
        CachePlan { label, streams: vec![index], place: LayerPlace { index, count }, window: None }
    }

    fn dealt(budgets: &LayerBudgets, budget: usize, layers: usize, floor: usize) -> Vec<usize> {
        let of = |layer| budgets.of(&cache(layer, layers), budget, floor).expect("a layer of the table").budget;
        (0..layers).map(of).collect()
    }

    fn parsed(text: &str) -> LayerBudgets {
        LayerBudgets::parse(OsStr::new(text)).expect("sound")
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

    #[test]
    fn a_pyramid_is_that_of_pyramidkv_but_for_the_rounding() {
        for (layer, budget) in dealt(&parsed("pyramid:4"), 128, 30, 1).into_iter().enumerate() {
            let floored = layer_budget(128, LayerPlace { index: layer, count: 30 }, 4.0, 0);
            assert!(budget == floored || budget == floored + 1, "layer {layer}: {budget} beside {floored}");
        }
    }

    #[test]
    fn the_largest_remainder_gets_the_unit_and_ties_go_to_the_earlier_layer() {
        let table = |text: &str| parse_table(text.as_bytes()).expect("sound");
        assert_eq!(dealt(&table(r#"{"0": 1, "1": 1, "2": 1, "3": 5}"#), 5, 4, 0), [3, 3, 2, 12]);
        assert_eq!(dealt(&table(r#"{"1": 0.5, "0": 1.5}"#), 5, 2, 0), [8, 2]);
    }

    #[test]
    fn a_table_whose_average_is_the_budget_is_taken_as_it_stands() {
        let table = parse_table(br#"{"0": 100, "1": 60, "2": 20}"#).expect("sound");
        assert_eq!(dealt(&table, 60, 3, 1), [100, 60, 20]);
        assert_eq!(dealt(&table, 30, 3, 1), [50, 30, 10]);
    }

    #[test]
    fn a_layer_below_the_floor_is_raised_and_said_to_be() {
        let funnel = parsed("funnel:9");
        let of = |layer| funnel.of(&cache(layer, 3), 40, 33).expect("sound");
        assert_eq!(of(0), LayerBudget { budget: 33, raised: true });
        assert_eq!(of(2), LayerBudget { budget: 72, raised: false });
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_word() {
        for text in ["pyramid:0.5", "pyramid:", "funnel:x", "funnel:-2", "pyramid:1e3", "no such file", "uniform:2"] {
            assert!(LayerBudgets::parse(OsStr::new(text)).is_err(), "{text}");
        }
        for text in ["[1]", "{}", r#"{"0": 0}"#, r#"{"a": 1}"#, r#"{"0": -1}"#, r#"{"0": "1"}"#, r#"{"0": 1e30}"#] {
            assert!(parse_table(text.as_bytes()).is_err(), "{text}");
        }
        let table = parse_table(br#"{"0": 1, "2": 1}"#).expect("sound");
        let problem = table.of(&cache(1, 3), 10, 1).expect_err("layer 1 is not there");
        assert_eq!(problem, "the table of layer budgets has no layer 1, it names 0, 2");
    }
}
