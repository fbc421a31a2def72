//! What of results is shown to people: the keys that say something here, and the figures.

use super::cell::Cell;
use super::results::Results;
use super::schema::{Column, Role};
use super::text_table::TextTable;
use crate::meter::Better;
use std::collections::BTreeMap;

/// Decimals of figures unless said otherwise.
pub const DECIMALS: usize = 6;

/// Keys that are shown whenever lines differ in them; other keys only where these tell too little.
const FIRST: [&str; 3] = ["trace", "layer", "head"];

/// Keys that are always shown.
const LANE: [&str; 2] = ["policy", "budget"];

/// Keys that say how caches are kept, each with what is done where nothing is said: shown wherever anything else
/// is.
const KEPT: [(&str, &str); 5] =
    [("scope", "head"), ("combine", "mean"), ("evict_every", "1"), ("page", "1"), ("prompt", "stream")];

/// Figures without better or worse that are shown all the same.
const DESCRIBING: [&str; 2] = ["mean_kept", "peak_kept"];

/// The table for people, and which of its columns can be spared, those to go first first: keys that tell
/// no lines apart, then figures from the last on. `sums` adds whatever else was counted.
pub(super) fn for_people(results: &Results, sums: bool) -> (TextTable, Vec<usize>) {
    let (mut shown, spare_keys) = keys(results);
    let keys = shown.len();
    let figures = |wanted: fn(&Column) -> bool| {
        let of_kind = move |at: &usize| wanted(&results.columns()[*at]) && !is_blank(results, *at);
        (0..results.columns().len()).filter(of_kind)
    };
    shown.extend(figures(is_read));
    if sums {
        shown.extend(figures(|column| !column.is_key() && !is_read(column)));
    }
    let spare_keys = (0..keys).rev().filter(|at| spare_keys.contains(&shown[*at]));
    let spare = spare_keys.chain((keys + 1..shown.len()).rev()).collect();
    (table(results, &shown), spare)
}

fn is_read(column: &Column) -> bool {
    DESCRIBING.contains(&&*column.name) || matches!(column.role, Role::Figure(Better::Higher | Better::Lower))
}

fn is_blank(results: &Results, column: usize) -> bool {
    results.lines().iter().all(|line| line[column].is_blank())
}

fn varies(results: &Results, column: usize) -> bool {
    results.lines().windows(2).any(|pair| pair[0][column] != pair[1][column])
}

/// Policy, budget and what else lines differ in, and which of these tell no lines apart.
fn keys(results: &Results) -> (Vec<usize>, Vec<usize>) {
    let (mut shown, mut spare) = (Vec::new(), Vec::new());
    for (at, column) in results.columns().iter().enumerate().filter(|(_, column)| column.is_key()) {
        let always = LANE.contains(&&*column.name);
        let unusual = is_unusual(results, at);
        if !always && !unusual.unwrap_or_else(|| varies(results, at)) {
            continue;
        }
        let needed = always
            || FIRST.contains(&&*column.name)
            || match column.role {
                Role::Lane => tells_apart(results, at, &[&FIRST[..], &LANE].concat()),
                _ => tells_apart(results, at, &FIRST),
            };
        if needed || unusual == Some(true) || column.role != Role::Replayed {
            shown.push(at);
        }
        if !needed {
            spare.push(at);
        }
    }
    (shown, spare)
}

/// Whether any line says something unusual in a key that says how caches are kept; `None` of any other key.
fn is_unusual(results: &Results, column: usize) -> Option<bool> {
    let usual = KEPT.iter().find(|(name, _)| results.columns()[column].name == *name)?.1;
    let mut cells = results.lines().iter().map(|line| &line[column]);
    Some(cells.any(|cell| !cell.is_blank() && cell.exact() != usual))
}

/// Whether a key differs between lines that other columns do not tell apart.
fn tells_apart(results: &Results, key: usize, others: &[&str]) -> bool {
    let others: Vec<usize> = others.iter().filter_map(|name| results.find(name)).collect();
    let mut known: BTreeMap<String, &Cell> = BTreeMap::new();
    results.lines().iter().any(|line| {
        let place = others.iter().map(|at| line[*at].exact() + "\n").collect();
        *known.entry(place).or_insert(&line[key]) != &line[key]
    })
}

fn table(results: &Results, shown: &[usize]) -> TextTable {
    let columns = || shown.iter().map(|at| &results.columns()[*at]);
    let is_number = |at: &usize| results.lines().iter().any(|line| line[*at].is_number());
    let cell = |line: &[Cell], at: usize| {
        if results.columns()[at].is_key() { line[at].exact() } else { line[at].rounded(DECIMALS) }
    };
    TextTable {
        header: columns().map(|column| column.name.clone().into_owned()).collect(),
        right: shown.iter().map(is_number).collect(),
        rows: results.lines().iter().map(|line| shown.iter().map(|at| cell(line, *at)).collect()).collect(),
    }
}
