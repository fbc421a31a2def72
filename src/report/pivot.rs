//! Comparison tables from written results: rows by columns, one or more figures in each cell.
//!
//! Works on the text of CSV files, so that results from many runs can be laid side by side; knows
//! of columns only what the table of columns says.

use super::column::{Better, Role, find};
use super::text_table::TextTable;
use crate::policy::parameter::PARAMETERS;
use crate::policy::table;

/// Results read from CSV: lines of text by column name.
#[derive(Debug, Default)]
pub struct Results {
    header: Vec<String>,
    lines: Vec<Vec<String>>,
}

/// What a comparison table shows.
#[derive(Debug, Default)]
pub struct PivotPlan {
    /// Columns whose values become row titles.
    pub rows: Vec<String>,
    /// Column whose values become column titles.
    pub columns: String,
    /// Figures shown in each cell.
    pub values: Vec<String>,
    /// Lines are kept where every such column has the value.
    pub filters: Vec<(String, String)>,
    /// Adds a row with the absolute difference of two rows, by their titles.
    pub difference: Option<(String, String)>,
    /// Whether the best figure of each column is set in bold.
    pub bold: bool,
}

impl Results {
    /// Reads CSV text and appends its lines; all files must have the same columns.
    ///
    /// # Errors
    /// When it is no CSV, or has other columns than what was read before.
    pub fn append(&mut self, text: &[u8]) -> Result<(), String> {
        let mut reader = csv::Reader::from_reader(text);
        let header: Vec<String> =
            reader.headers().map_err(|error| error.to_string())?.iter().map(String::from).collect();
        if self.header.is_empty() {
            self.header = header;
        } else if self.header != header {
            return Err("its columns are not those of the files before it".to_owned());
        }
        for record in reader.records() {
            self.lines.push(record.map_err(|error| error.to_string())?.iter().map(String::from).collect());
        }
        Ok(())
    }

    /// The comparison table.
    ///
    /// # Errors
    /// When a column is unknown, no line is left, a figure is no number, or several lines would
    /// fill one cell.
    pub fn pivot(&self, plan: &PivotPlan) -> Result<TextTable, String> {
        let pivot = Pivot::new(self, plan)?;
        let mut table = pivot.table()?;
        if let Some((a, b)) = &plan.difference {
            table.rows.push(pivot.difference(a, b)?);
        }
        Ok(table)
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        self.header
            .iter()
            .position(|column| column == name)
            .ok_or_else(|| format!("no column {name:?}; there are {}", self.header.join(", ")))
    }
}

/// A pivot under way: titles in order of appearance, and the line that fills each cell.
struct Pivot<'a> {
    results: &'a Results,
    plan: &'a PivotPlan,
    values: Vec<usize>,
    row_titles: Vec<Vec<&'a str>>,
    column_titles: Vec<&'a str>,
    /// By row, then column.
    cells: Vec<Vec<Option<&'a Vec<String>>>>,
}

impl<'a> Pivot<'a> {
    fn new(results: &'a Results, plan: &'a PivotPlan) -> Result<Pivot<'a>, String> {
        let rows = plan.rows.iter().map(|name| results.column(name)).collect::<Result<Vec<_>, _>>()?;
        let column = results.column(&plan.columns)?;
        let values = plan.values.iter().map(|name| results.column(name)).collect::<Result<Vec<_>, _>>()?;
        let mut pivot =
            Pivot { results, plan, values, row_titles: Vec::new(), column_titles: Vec::new(), cells: Vec::new() };
        for line in filtered(results, &plan.filters)? {
            let title: Vec<&str> = rows.iter().map(|row| line[*row].as_str()).collect();
            pivot.place(title, &line[column], line)?;
        }
        if pivot.cells.is_empty() {
            return Err("no line is left to show".to_owned());
        }
        pivot.check_comparable()?;
        Ok(pivot)
    }

    fn place(&mut self, row: Vec<&'a str>, column: &'a str, line: &'a Vec<String>) -> Result<(), String> {
        let at_row = index_of(&mut self.row_titles, row);
        let at_column = index_of(&mut self.column_titles, column);
        self.cells.resize_with(self.row_titles.len(), Vec::new);
        self.cells.iter_mut().for_each(|cells| cells.resize(self.column_titles.len(), None));
        match self.cells[at_row][at_column].replace(line) {
            None => Ok(()),
            Some(other) => Err(self.clash(other, line)),
        }
    }

    /// Refuses lines that differ in what was replayed or how it was measured where no title says so.
    fn check_comparable(&self) -> Result<(), String> {
        let (shown, hidden): (Vec<usize>, Vec<usize>) =
            (0..self.results.header.len()).filter(|at| self.is_of_trace(*at)).partition(|at| self.is_shown(*at));
        let mut firsts: Vec<&Vec<String>> = Vec::new();
        for line in self.cells.iter().flatten().flatten() {
            let alike = |first: &&&Vec<String>| shown.iter().all(|at| first[*at] == line[*at]);
            let Some(first) = firsts.iter().find(alike) else {
                firsts.push(line);
                continue;
            };
            if let Some(at) = hidden.iter().find(|at| first[**at] != line[**at]) {
                let name = &self.results.header[*at];
                return Err(format!(
                    "lines that differ in {name} would stand side by side: add it to --rows or choose with --filter {name}=..."
                ));
            }
        }
        Ok(())
    }

    fn is_shown(&self, column: usize) -> bool {
        let name = &self.results.header[column];
        self.plan.rows.contains(name) || self.plan.columns == *name
    }

    /// Whether a column says what was replayed and how it was measured, rather than by which lane.
    fn is_of_trace(&self, column: usize) -> bool {
        let name = self.results.header[column].as_str();
        name != "budget" && !is_of_policy(name) && find(name).is_some_and(|column| column.role == Role::Key)
    }

    /// Two lines for one cell: says which columns tell them apart.
    fn clash(&self, a: &[String], b: &[String]) -> String {
        let is_key = |name: &str| find(name).is_none_or(|column| column.role == Role::Key);
        let varies = |(at, name): (usize, &'a String)| (a[at] != b[at] && is_key(name)).then_some(name.as_str());
        let varying: Vec<&str> = self.results.header.iter().enumerate().filter_map(varies).collect();
        if varying.is_empty() {
            return "two lines of the results are the same: the same file twice?".to_owned();
        }
        format!(
            "several lines would fill one cell; they differ in {}: add one to --rows or choose with --filter {}=...",
            varying.join(", "),
            varying[0]
        )
    }

    fn table(&self) -> Result<TextTable, String> {
        let mut header = self.plan.rows.clone();
        header.extend(self.column_titles.iter().map(|title| self.column_title(title)));
        let rows = (0..self.row_titles.len()).map(|row| self.row(row)).collect::<Result<Vec<_>, _>>()?;
        let right = (0..header.len()).map(|column| column >= self.plan.rows.len()).collect();
        Ok(TextTable { header, rows, right })
    }

    fn column_title(&self, title: &str) -> String {
        let name = &self.plan.columns;
        if title.is_empty() { format!("no {name}") } else { format!("{name} {title}") }
    }

    fn row(&self, row: usize) -> Result<Vec<String>, String> {
        let mut text: Vec<String> = self.row_titles[row].iter().map(|title| (*title).to_owned()).collect();
        for column in 0..self.column_titles.len() {
            text.push(self.cell(row, column)?);
        }
        Ok(text)
    }

    fn cell(&self, row: usize, column: usize) -> Result<String, String> {
        let figure = |value: usize| -> Result<String, String> {
            let Some(number) = self.number(row, column, value)? else { return Ok(String::new()) };
            let text = format!("{number:.6}");
            let best = self.plan.bold && self.is_best(row, column, value)?;
            Ok(if best { format!("**{text}**") } else { text })
        };
        let figures = (0..self.values.len()).map(figure).collect::<Result<Vec<_>, _>>()?;
        if figures.iter().all(String::is_empty) {
            return Ok(String::new());
        }
        let shown = |figure: String| if figure.is_empty() { "-".to_owned() } else { figure };
        Ok(figures.into_iter().map(shown).collect::<Vec<_>>().join(" / "))
    }

    fn number(&self, row: usize, column: usize, value: usize) -> Result<Option<f64>, String> {
        let Some(line) = self.cells[row].get(column).copied().flatten() else { return Ok(None) };
        let text = &line[self.values[value]];
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| format!("{} is {text:?}, not a number", self.plan.values[value]))
    }

    /// Whether a figure is the best of its column as printed; bounds do not compete.
    fn is_best(&self, row: usize, column: usize, value: usize) -> Result<bool, String> {
        let Some(Role::Figure(better)) = find(&self.plan.values[value]).map(|column| column.role) else {
            return Ok(false);
        };
        if !self.competes(row) || self.row_titles.len() < 2 {
            return Ok(false);
        }
        let sign = if better == Better::Higher { 1.0 } else { -1.0 };
        let printed = |number: f64| (sign * number * 1e6).round();
        let Some(own) = self.number(row, column, value)?.map(printed) else { return Ok(false) };
        for other in (0..self.row_titles.len()).filter(|other| self.competes(*other) && self.are_alike(row, *other)) {
            if self.number(other, column, value)?.map(printed).is_some_and(|other| other > own) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two rows differ in policy and parameters only, so that one can be better.
    fn are_alike(&self, a: usize, b: usize) -> bool {
        let titles = self.plan.rows.iter().zip(self.row_titles[a].iter().zip(&self.row_titles[b]));
        titles.filter(|(name, _)| !is_of_policy(name)).all(|(_, (a, b))| a == b)
    }

    fn competes(&self, row: usize) -> bool {
        let entry = self.row_titles[row].iter().find_map(|title| table::find(title));
        entry.is_none_or(|entry| !entry.is_bound() && entry.budgeted)
    }

    fn difference(&self, a: &str, b: &str) -> Result<Vec<String>, String> {
        let find = |wanted: &str| {
            let holds = |title: &Vec<&str>| title.join(",") == wanted;
            let titles = || self.row_titles.iter().map(|title| title.join(",")).collect::<Vec<_>>().join(" ");
            self.row_titles.iter().position(holds).ok_or_else(|| format!("no row {wanted:?}; there are {}", titles()))
        };
        let (a, b) = (find(a)?, find(b)?);
        let mut text = vec![String::new(); self.plan.rows.len()];
        text[0] = "difference".to_owned();
        for column in 0..self.column_titles.len() {
            let figure = |value: usize| -> Result<String, String> {
                let pair = (self.number(a, column, value)?, self.number(b, column, value)?);
                Ok(if let (Some(a), Some(b)) = pair { format!("{:.6}", (a - b).abs()) } else { String::new() })
            };
            text.push((0..self.values.len()).map(figure).collect::<Result<Vec<_>, _>>()?.join(" / "));
        }
        Ok(text)
    }
}

/// Whether a column names the policy or one of its parameters.
fn is_of_policy(name: &str) -> bool {
    name == "policy" || PARAMETERS.iter().any(|parameter| parameter.column == name)
}

fn filtered<'a>(results: &'a Results, filters: &[(String, String)]) -> Result<Vec<&'a Vec<String>>, String> {
    let filters =
        filters.iter().map(|(name, value)| Ok((results.column(name)?, value))).collect::<Result<Vec<_>, String>>()?;
    let passes = |line: &&Vec<String>| filters.iter().all(|(column, value)| line[*column] == **value);
    Ok(results.lines.iter().filter(passes).collect())
}

fn index_of<T: PartialEq>(titles: &mut Vec<T>, title: T) -> usize {
    titles.iter().position(|known| *known == title).unwrap_or_else(|| {
        titles.push(title);
        titles.len() - 1
    })
}
