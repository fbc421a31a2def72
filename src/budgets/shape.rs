//! The proportion in which caches share a total.

use super::LayerPlace;
use super::file::read_table;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::trace::StreamLabel;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;

/// Ratios and table entries are below this and have at most [`DECIMALS`] decimals, and shares are at
/// most [`MOST`], so that products fit 128 bits.
pub(super) const LARGEST: u128 = 1_000_000;
pub(super) const DECIMALS: u32 = 6;
pub(super) const MOST: usize = 1 << 16;

/// In what proportion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Shape {
    /// The same for every cache.
    #[default]
    Uniform,
    /// Linear from the first layer to the last, this many times more for the first.
    Pyramid(Decimal),
    /// Linear from the first layer to the last, this many times more for the last. The Scissorhands
    /// paper (arXiv 2305.17118) argues for this direction and gives no formula; the line is ours.
    Funnel(Decimal),
    /// One number for each layer; the budget is the average over the layers named.
    Layers(BTreeMap<u32, Decimal>),
    /// One number for each cache; the budget is the average over the caches named.
    Caches(BTreeMap<StreamLabel, Decimal>),
}

impl Shape {
    pub(super) fn parse(text: &OsStr) -> Result<Shape> {
        let shape = text.to_str().and_then(|text| text.split_once(':').or((text == "uniform").then_some((text, ""))));
        let ratio = |text| parse_ratio(text).map_err(Error::Usage);
        match shape {
            Some(("uniform", "")) => Ok(Shape::Uniform),
            Some(("pyramid", text)) => ratio(text).map(Shape::Pyramid),
            Some(("funnel", text)) => ratio(text).map(Shape::Funnel),
            _ => read_table(Path::new(text)),
        }
    }

    /// Whether the text is that of a line over the layers.
    pub(super) fn is_line(text: &str) -> bool {
        text.split_once(':').is_some_and(|(name, _)| name == "pyramid" || name == "funnel")
    }

    /// Whether the number of layers decides.
    pub(super) fn is_over_layers(&self) -> bool {
        matches!(self, Shape::Pyramid(_) | Shape::Funnel(_))
    }

    /// All shares, and which of them is a cache's.
    pub(super) fn shares(&self, label: &StreamLabel, place: LayerPlace) -> Result<(Vec<u128>, usize), String> {
        match self {
            Shape::Uniform => Ok((vec![1], 0)),
            Shape::Pyramid(ratio) => Ok((line(*ratio, place.count)?, place.index)),
            Shape::Funnel(ratio) => Ok((line(*ratio, place.count)?.into_iter().rev().collect(), place.index)),
            Shape::Layers(table) => of_table(table, &label.layer, "layer"),
            Shape::Caches(table) => of_table(table, label, "cache"),
        }
    }
}

/// Shares that fall in a straight line from `ratio` to 1.
fn line(ratio: Decimal, layers: usize) -> Result<Vec<u128>, String> {
    if layers > MOST {
        return Err(format!("budgets are dealt out to {MOST} layers at most, the trace says {layers}"));
    }
    let (first, last, steps) = (ratio.in_units(DECIMALS), Decimal::whole(1).in_units(DECIMALS), layers - 1);
    match steps as u128 {
        0 => Ok(vec![1]),
        steps => Ok((0..=steps).map(|layer| first * (steps - layer) + last * layer).collect()),
    }
}

fn of_table<K: Ord + Display>(table: &BTreeMap<K, Decimal>, key: &K, what: &str) -> Result<(Vec<u128>, usize), String> {
    let named = || table.keys().map(K::to_string).collect::<Vec<_>>().join(", ");
    let index = table.keys().position(|known| known == key);
    let index = index.ok_or_else(|| format!("the table of budgets has no {what} {key}, it names {}", named()))?;
    Ok((table.values().map(|number| number.in_units(DECIMALS)).collect(), index))
}

/// Reads the ratio of a line: a number from 1 on, not too large and not too fine.
///
/// # Errors
/// Says what is needed.
pub fn parse_ratio(text: &str) -> Result<Decimal, String> {
    let ratio = parse_number(text).filter(|ratio| ratio.in_units(DECIMALS) >= Decimal::whole(1).in_units(DECIMALS));
    ratio.ok_or_else(|| {
        format!("{text:?} is not a ratio: a number from 1 to {LARGEST} with at most {DECIMALS} decimals is needed")
    })
}

/// A number that is neither too large nor too fine.
pub(super) fn parse_number(text: &str) -> Option<Decimal> {
    let number = Decimal::parse(text).filter(|number| number.decimals() <= DECIMALS)?;
    (number.in_units(DECIMALS) <= LARGEST * 10_u128.pow(DECIMALS)).then_some(number)
}
