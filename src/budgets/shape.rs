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

    /// Leaves out of a table what it says of layers without a cache of their own.
    pub(super) fn keep_layers(&mut self, owns_cache: impl Fn(u32) -> bool) -> Result<(), String> {
        let is_nothing = |number: &Decimal| *number == Decimal::whole(0);
        let nothing_left = match self {
            Shape::Layers(table) => {
                table.retain(|layer, _| owns_cache(*layer));
                table.values().all(is_nothing)
            }
            Shape::Caches(table) => {
                table.retain(|cache, _| owns_cache(cache.layer));
                table.values().all(is_nothing)
            }
            Shape::Uniform | Shape::Pyramid(_) | Shape::Funnel(_) => false,
        };
        if nothing_left {
            Err("the table of budgets gives nothing to a layer that has a cache".to_owned())
        } else {
            Ok(())
        }
    }

    /// What each cache gets of a trace with so many layers, where the average is `average`; `round` turns
    /// shares into budgets.
    pub(super) fn deal(
        &self,
        layers: usize,
        average: usize,
        round: impl Fn(&[u128]) -> Vec<usize>,
    ) -> Result<Shares, String> {
        match self {
            Shape::Uniform => Ok(Shares::Same(average)),
            Shape::Pyramid(_) | Shape::Funnel(_) if layers <= 1 => Ok(Shares::Same(average)),
            Shape::Pyramid(ratio) => Ok(Shares::ByPlace(round(&line(*ratio, layers)?))),
            Shape::Funnel(ratio) => {
                let shares: Vec<u128> = line(*ratio, layers)?.into_iter().rev().collect();
                Ok(Shares::ByPlace(round(&shares)))
            }
            Shape::Layers(table) => Ok(Shares::ByLayer(of_table(table, round))),
            Shape::Caches(table) => Ok(Shares::ByCache(of_table(table, round))),
        }
    }
}

/// Budgets that have been dealt out.
#[derive(Debug)]
pub(super) enum Shares {
    /// The same for every cache.
    Same(usize),
    /// One for each layer, in their order.
    ByPlace(Vec<usize>),
    /// One for each layer that a table names.
    ByLayer(BTreeMap<u32, usize>),
    /// One for each cache that a table names.
    ByCache(BTreeMap<StreamLabel, usize>),
}

impl Shares {
    /// What a cache gets.
    pub(super) fn of(&self, label: &StreamLabel, place: LayerPlace) -> Result<usize, String> {
        match self {
            Shares::Same(budget) => Ok(*budget),
            Shares::ByPlace(budgets) => Ok(budgets[place.index]),
            Shares::ByLayer(budgets) => named(budgets, &label.layer, "layer"),
            Shares::ByCache(budgets) => named(budgets, label, "cache"),
        }
    }
}

fn of_table<K: Ord + Clone>(table: &BTreeMap<K, Decimal>, round: impl Fn(&[u128]) -> Vec<usize>) -> BTreeMap<K, usize> {
    let shares: Vec<u128> = table.values().map(|number| number.in_units(DECIMALS)).collect();
    table.keys().cloned().zip(round(&shares)).collect()
}

fn named<K: Ord + Display>(budgets: &BTreeMap<K, usize>, key: &K, what: &str) -> Result<usize, String> {
    budgets.get(key).copied().ok_or_else(|| {
        let known = budgets.keys().map(K::to_string).collect::<Vec<_>>().join(", ");
        format!("the table of budgets has no {what} {key}, it names {known}")
    })
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
