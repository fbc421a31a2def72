//! The table of output formats: each turns results, or a table made of them, into text and touches no
//! files.

use super::people::for_people;
use super::results::Results;
use super::text_table::TextTable;
use crate::text;
use serde_json::{Map, Value};
use std::path::Path;

/// An output format.
pub struct OutputFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The ending of file names that mean it.
    pub ending: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// How it is written.
    pub writer: Writer,
}

/// How a format is written.
#[derive(Clone, Copy)]
pub enum Writer {
    /// For people: from a table of words.
    People(fn(&TextTable) -> String),
    /// For programs: every column, exact numbers.
    Programs(fn(&Results) -> String),
}

/// Every output format. A new one is a function and a line here.
pub const FORMATS: &[OutputFormat] = &[
    OutputFormat {
        name: "table",
        aliases: &["text"],
        ending: "txt",
        summary: "aligned columns for people",
        writer: Writer::People(TextTable::aligned),
    },
    OutputFormat {
        name: "csv",
        aliases: &[],
        ending: "csv",
        summary: "every column, exact numbers",
        writer: Writer::Programs(csv),
    },
    OutputFormat {
        name: "json",
        aliases: &[],
        ending: "json",
        summary: "one array of objects, exact numbers",
        writer: Writer::Programs(json),
    },
    OutputFormat {
        name: "jsonl",
        aliases: &[],
        ending: "jsonl",
        summary: "one object a line, exact numbers",
        writer: Writer::Programs(jsonl),
    },
    OutputFormat {
        name: "markdown",
        aliases: &[],
        ending: "md",
        summary: "the table as markdown",
        writer: Writer::People(TextTable::markdown),
    },
];

/// The format with this name.
pub fn find(name: &str) -> Option<&'static OutputFormat> {
    FORMATS.iter().find(|format| format.name == name || format.aliases.contains(&name))
}

/// The format that a file's name ends in.
pub fn by_ending(path: &Path) -> Option<&'static OutputFormat> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    FORMATS.iter().find(|format| format.ending == ending)
}

/// What is shown to people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Whether the raw sums are shown.
    pub sums: bool,
    /// Most letters in a line of an aligned table.
    pub width: Option<usize>,
}

/// A written report.
#[derive(Debug)]
pub struct Written {
    /// The report.
    pub text: String,
    /// Columns that were left out to fit the width.
    pub left_out: Vec<String>,
}

impl OutputFormat {
    /// Writes results.
    pub fn write(&self, results: &Results, look: Look) -> Written {
        match self.writer {
            Writer::Programs(write) => Written { text: write(results), left_out: Vec::new() },
            Writer::People(write) => {
                let (mut table, spare) = for_people(results, look.sums);
                let left_out = look.width.map_or(Vec::new(), |width| table.fit(width, &spare));
                Written { text: write(&table), left_out }
            }
        }
    }
}

fn csv(results: &Results) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let in_memory = "writing to memory cannot fail";
    let names = results.columns().iter().map(|column| text::csv(&column.name).into_owned());
    writer.write_record(names).expect(in_memory);
    for line in results.lines() {
        writer.write_record(line.iter().map(csv_cell)).expect(in_memory);
    }
    String::from_utf8(writer.into_inner().expect(in_memory)).expect("cells are text")
}

/// Words are guarded; a number below zero is no formula.
fn csv_cell(cell: &super::cell::Cell) -> String {
    if cell.is_number() { cell.exact() } else { text::csv(&cell.exact()).into_owned() }
}

fn json(results: &Results) -> String {
    let objects: Vec<Value> = objects(results).collect();
    format!("{}\n", serde_json::to_string_pretty(&objects).expect("cells have no maps with other keys than text"))
}

fn jsonl(results: &Results) -> String {
    objects(results).map(|object| format!("{object}\n")).collect()
}

fn objects(results: &Results) -> impl Iterator<Item = Value> {
    results.lines().iter().map(|line| {
        let fields =
            results.columns().iter().zip(line).map(|(column, cell)| (column.name.clone().into_owned(), cell.json()));
        Value::Object(fields.collect::<Map<_, _>>())
    })
}
