//! The table of output formats: each turns report lines into bytes and touches no files.

use super::cell::Cell;
use super::column::{Column, Role, columns};
use super::line::Line;
use super::text_table::TextTable;
use serde_json::{Map, Value};

/// An output format.
pub struct OutputFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Turns lines into text.
    pub write: fn(&[Line<'_>]) -> String,
}

/// Every output format. A new one is a function and a line here.
pub const FORMATS: &[OutputFormat] = &[
    OutputFormat { name: "table", summary: "aligned columns for people, six decimals", write: table },
    OutputFormat { name: "csv", summary: "every column, exact numbers", write: csv },
    OutputFormat { name: "json", summary: "one array of objects, exact numbers", write: json },
    OutputFormat { name: "jsonl", summary: "one object a line, exact numbers", write: jsonl },
    OutputFormat { name: "markdown", summary: "the table as markdown", write: markdown },
];

/// The format with this name.
pub fn find(name: &str) -> Option<&'static OutputFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

fn table(lines: &[Line<'_>]) -> String {
    for_people(lines).aligned()
}

fn markdown(lines: &[Line<'_>]) -> String {
    for_people(lines).markdown()
}

/// The keys that say something here, and the figures of merit.
fn for_people(lines: &[Line<'_>]) -> TextTable {
    let mut shown: Vec<(Column, Vec<Cell>)> =
        columns().into_iter().map(|column| (column, lines.iter().map(|line| column.cell(line)).collect())).collect();
    shown.retain(|(column, cells)| is_for_people(column, cells));
    TextTable {
        header: shown.iter().map(|(column, _)| column.name.to_owned()).collect(),
        right: shown.iter().map(|(_, cells)| cells.iter().any(Cell::is_number)).collect(),
        rows: (0..lines.len())
            .map(|row| shown.iter().map(|(column, cells)| shorten(column, &cells[row])).collect())
            .collect(),
    }
}

/// Keys as they are, figures with six decimals.
fn shorten(column: &Column, cell: &Cell) -> String {
    if column.role == Role::Key { cell.exact() } else { cell.rounded() }
}

fn is_for_people(column: &Column, cells: &[Cell]) -> bool {
    let varies = cells.windows(2).any(|pair| pair[0] != pair[1]);
    match column.role {
        Role::Key if ["policy", "budget"].contains(&column.name) => true,
        Role::Key => varies,
        Role::Figure(_) => column.name != "min_step_mass" && cells.iter().any(|cell| *cell != Cell::Blank),
        Role::Plain => column.name == "mean_kept",
        Role::Raw => false,
    }
}

fn csv(lines: &[Line<'_>]) -> String {
    let columns = columns();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = columns.iter().map(|column| column.name);
    let in_memory = "writing to memory cannot fail";
    writer.write_record(names).expect(in_memory);
    for line in lines {
        writer.write_record(columns.iter().map(|column| column.cell(line).exact())).expect(in_memory);
    }
    String::from_utf8(writer.into_inner().expect(in_memory)).expect("cells are text")
}

fn json(lines: &[Line<'_>]) -> String {
    let objects: Vec<Value> = objects(lines).collect();
    format!("{}\n", serde_json::to_string_pretty(&objects).expect("cells have no maps with other keys than text"))
}

fn jsonl(lines: &[Line<'_>]) -> String {
    objects(lines).map(|object| format!("{object}\n")).collect()
}

fn objects(lines: &[Line<'_>]) -> impl Iterator<Item = Value> {
    let columns = columns();
    lines.iter().map(move |line| {
        let fields = columns.iter().map(|column| (column.name.to_owned(), column.cell(line).json()));
        Value::Object(fields.collect::<Map<_, _>>())
    })
}
