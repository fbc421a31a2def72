//! Tables of budgets in JSON files: `{"0": 100, "1": 60}` by layer, `{"3.kv0": 80, "3.kv1": 40}` by
//! cache.

use super::shape::{DECIMALS, LARGEST, MOST, Shape, parse_number};
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::trace::StreamLabel;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::path::Path;

pub(super) fn read_table(path: &Path) -> Result<Shape> {
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

pub(super) fn parse_table(bytes: &[u8]) -> Result<Shape, String> {
    let entries: Map<String, Value> = serde_json::from_slice(bytes)
        .map_err(|error| format!("not a table of budgets such as {{\"0\": 100, \"1\": 60}}: {error}"))?;
    let numbers = entries.iter().map(|(key, number)| parse_entry(key, number)).collect::<Result<Vec<Decimal>, _>>()?;
    if numbers.len() > MOST || numbers.iter().all(|number| *number == Decimal::whole(0)) {
        return Err(format!("the budgets of {} layers or caches do not add up to anything", numbers.len()));
    }
    let layer = |key: &String| key.parse::<u32>();
    if entries.keys().all(|key| layer(key).is_ok()) {
        let layers = entries.keys().map(|key| layer(key).expect("looked at before"));
        return once_each(layers.zip(numbers)).map(Shape::Layers);
    }
    let caches: Vec<StreamLabel> = entries.keys().map(parse_cache).collect::<Result<_, String>>()?;
    once_each(caches.into_iter().zip(numbers)).map(Shape::Caches)
}

/// A table; one that spells a layer or a cache in two ways ("3" and "03") says nothing sure of it.
fn once_each<K: Ord + Display>(entries: impl Iterator<Item = (K, Decimal)>) -> Result<BTreeMap<K, Decimal>, String> {
    let mut table = BTreeMap::new();
    for (key, number) in entries {
        match table.entry(key) {
            Entry::Occupied(known) => return Err(format!("it names {} twice", known.key())),
            Entry::Vacant(place) => place.insert(number),
        };
    }
    Ok(table)
}

fn parse_cache(key: &String) -> Result<StreamLabel, String> {
    StreamLabel::parse(key).ok_or_else(|| match key.parse::<u32>() {
        Ok(_) => format!("it names layer {key} beside caches: name layers (\"3\") or caches (\"3.kv0\"), not both"),
        Err(_) => format!("{key:?} is neither a layer (\"3\") nor a cache (\"3.kv0\")"),
    })
}

fn parse_entry(key: &str, number: &Value) -> Result<Decimal, String> {
    // Unlike the JSON it came from, this spelling never has an exponent.
    let text = number.as_f64().map(|number| number.to_string());
    text.as_deref().and_then(parse_number).ok_or_else(|| {
        format!("the budget of {key:?} is not a number from 0 to {LARGEST} with at most {DECIMALS} decimals")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_make_no_sense_are_refused() {
        for text in ["[1]", "{}", r#"{"0": 0}"#, r#"{"a": 1}"#, r#"{"0": -1}"#, r#"{"0": "1"}"#, r#"{"0": 1e30}"#] {
            assert!(parse_table(text.as_bytes()).is_err(), "{text}");
        }
        let both = parse_table(br#"{"3": 1, "3.kv0": 1}"#).expect_err("layers and caches");
        assert!(both.contains("not both"), "{both}");
        for text in [r#"{"3": 1, "03": 2}"#, r#"{"3.kv0": 1, "03.kv0": 2}"#] {
            let twice = parse_table(text.as_bytes()).expect_err("one of the two");
            assert!(twice.starts_with("it names 3"), "{twice}");
        }
        let neither = parse_table(br#"{"3.kv0": 1, "first": 1}"#).expect_err("a word");
        assert_eq!(neither, "\"first\" is neither a layer (\"3\") nor a cache (\"3.kv0\")");
    }
}
