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

/// Figures without better or worse that are shown all the same.
const DESCRIBING: [&str; 2] = ["mean_kept", "peak_kept"];

/// The table for people, and how many of its columns are keys. `sums` adds whatever else was counted.
pub(super) fn for_people(results: &Results, sums: bool) -> (TextTable, usize) {
    let mut shown = keys(results);
    let keys = shown.len();
    let figures = |wanted: fn(&Column) -> bool| {
        let of_kind = move |at: &usize| wanted(&results.columns()[*at]) && !is_blank(results, *at);
        (0..results.columns().len()).filter(of_kind)
    };
    shown.extend(figures(is_read));
    if sums {
        shown.extend(figures(|column| !column.is_key() && !is_read(column)));
    }
    (table(results, &shown), keys)
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

/// Policy, budget and what else lines differ in.
fn keys(results: &Results) -> Vec<usize> {
    let mut shown: Vec<usize> = Vec::new();
    for (at, column) in results.columns().iter().enumerate().filter(|(_, column)| column.is_key()) {
        let name = &*column.name;
        let is_shown = match column.role {
            _ if ["policy", "budget"].contains(&name) => true,
            Role::Lane | Role::Unknown => varies(results, at),
            _ if FIRST.contains(&name) => varies(results, at),
            _ => varies(results, at) && tells_apart(results, at),
        };
        if is_shown {
            shown.push(at);
        }
    }
    shown
}

/// Whether a key differs between lines that trace, layer and head do not tell apart.
fn tells_apart(results: &Results, key: usize) -> bool {
    let first: Vec<usize> = FIRST.iter().filter_map(|name| results.find(name)).collect();
    let mut known: BTreeMap<String, &Cell> = BTreeMap::new();
    results.lines().iter().any(|line| {
        let place = first.iter().map(|at| line[*at].exact() + "\n").collect();
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
