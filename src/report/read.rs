//! Results from files: CSV, JSON or JSON lines, of this version or another, also as other programs write
//! them back.

use super::cell::Cell;
use super::results::Results;
use super::schema::{self, Column};
use crate::text;
use csv::StringRecord;
use serde_json::{Map, Value};

/// What is put first in a file of Unicode text by some programs.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads results; a problem names the line or entry.
///
/// # Errors
/// When it is none of the formats, or no result.
pub fn read(bytes: &[u8]) -> Result<Results, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut results = match text.trim_start().chars().next() {
        None => return Err("it is empty: results were not written to it".to_owned()),
        Some('[') => read_array(text)?,
        Some('{') => read_lines(text)?,
        Some(_) => read_csv(text)?,
    };
    check_known(&results)?;
    if SINCE_0_2.iter().all(|name| results.find(name).is_none()) {
        update(&mut results);
    }
    Ok(results)
}

fn not_utf8(bytes: &[u8], at: usize) -> String {
    let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    format!("line {line}: it is not UTF-8 text: save it as CSV in UTF-8")
}

/// Refuses a file without a single column of results.
fn check_known(results: &Results) -> Result<(), String> {
    let known = results.columns().iter().any(|column| column.role != schema::Role::Unknown);
    let names = || results.columns().iter().map(|column| &*column.name).collect::<Vec<_>>().join(", ");
    if known { Ok(()) } else { Err(format!("none of its columns is one of a result: there are {}", names())) }
}

/// Columns that version 0.1.0 did not have; a file with any of them is newer.
const SINCE_0_2: &[&str] =
    &["version", "kv_heads", "caches", "rows_total", "positions", "expiry", "rows_measured", "budget_sum"];

/// Version 0.1.0 called `rows_measured` `rows`, and the weakest stream `3.10`.
fn update(results: &mut Results) {
    results.rename("rows", "rows_measured");
    results.change("worst_stream", |cell| match cell {
        Cell::Text(stream) if !stream.contains('/') => Cell::text(&stream.replacen('.', "/", 1)),
        other => other.clone(),
    });
}

fn read_csv(text: &str) -> Result<Results, String> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let names: Vec<&str> = header.iter().map(text::from_csv).collect();
    let kept: Vec<usize> = (0..names.len()).filter(|at| !is_index(names[*at])).collect();
    let schema = schema::columns();
    let mut results = Results::new(columns(&schema, kept.iter().map(|at| names[*at]))?);
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        check_record(&record, &header, &schema).map_err(|problem| format!("line {line}: {problem}"))?;
        let cell = |(column, at): (&Column, &usize)| read_cell(column, text::from_csv(&record[*at]));
        let cells = results.columns().iter().zip(&kept).map(cell).collect::<Result<Vec<_>, _>>();
        results.push(cells.map_err(|problem| format!("line {line}: {problem}"))?);
    }
    Ok(results)
}

/// Whether a column numbers the lines: pandas writes one without a name, and reads that as `Unnamed: 0`.
fn is_index(name: &str) -> bool {
    name.is_empty() || name.starts_with("Unnamed: ")
}

fn check_record(record: &StringRecord, header: &StringRecord, schema: &[Column]) -> Result<(), String> {
    if is_header(record, header, schema) {
        return Err("a second header: files were laid end to end; split the file before this line and give kvsim \
                    table each part"
            .to_owned());
    }
    let (cells, columns) = (record.len(), header.len());
    if cells == columns { Ok(()) } else { Err(format!("it has {cells} cells where the header has {columns}")) }
}

/// Whether a line holds names of columns where values belong.
fn is_header(record: &StringRecord, header: &StringRecord, schema: &[Column]) -> bool {
    let named: Vec<&str> = record.iter().filter(|cell| !cell.is_empty()).collect();
    let known =
        |cell: &&str| header.iter().any(|name| name == *cell) || schema.iter().any(|column| column.name == *cell);
    named.len() > 1 && named.iter().all(known)
}

/// The columns of these names, each known or carried along.
fn columns<'a>(schema: &[Column], names: impl Iterator<Item = &'a str>) -> Result<Vec<Column>, String> {
    let mut columns: Vec<Column> = Vec::new();
    for name in names {
        let known = schema.iter().find(|column| column.name == name).cloned();
        let column = known.unwrap_or_else(|| Column::unknown(name));
        if columns.iter().any(|other| other.name == column.name) {
            return Err(format!("two columns are called {name:?}: leave one of them out"));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn read_cell(column: &Column, text: &str) -> Result<Cell, String> {
    Cell::read(text, column.kind).map_err(|problem| format!("column {}: {problem}", column.name))
}

fn read_array(text: &str) -> Result<Results, String> {
    let objects: Vec<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| format!("it is not a JSON array of objects: {error}"))?;
    of_objects(objects.into_iter().enumerate().map(|(index, object)| (format!("entry {}", index + 1), object)))
}

fn read_lines(text: &str) -> Result<Results, String> {
    let mut objects = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("line {}", index + 1);
        let object = serde_json::from_str(line)
            .map_err(|error| format!("{place}: it is not a JSON object in one line: {error}"))?;
        objects.push((place, object));
    }
    of_objects(objects.into_iter())
}

/// One line for each object; a key that one lacks is blank there.
fn of_objects(objects: impl Iterator<Item = (String, Map<String, Value>)>) -> Result<Results, String> {
    let (schema, mut all) = (schema::columns(), Results::default());
    for (place, object) in objects {
        let columns = columns(&schema, object.keys().map(String::as_str))?;
        let cell = |column: &Column, value| {
            Cell::from_json(value, column.kind).map_err(|problem| format!("{place}: {}: {problem}", column.name))
        };
        let cells = columns.iter().zip(object.values()).map(|(column, value)| cell(column, value));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let same = all.columns() == columns;
        if same {
            all.push(cells);
        } else {
            let mut one = Results::new(columns);
            one.push(cells);
            all.join(one);
        }
    }
    Ok(all)
}
