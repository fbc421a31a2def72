//! Comparison tables from results: rows by columns, one or more figures in each cell.

use super::cell::Cell;
use super::compare;
use super::people::DECIMALS;
use super::results::{Line, Results};
use super::schema::Column;
use super::text_table::TextTable;
use crate::meter::Better;
use crate::policy::table;

/// What a comparison table shows.
#[derive(Debug)]
pub struct PivotPlan {
    /// Columns whose values become row titles.
    pub rows: Vec<String>,
    /// Column whose values become column titles.
    pub columns: String,
    /// Figures shown in each cell.
    pub values: Vec<String>,
    /// A column whose value stands behind each cell in brackets, where the line has one.
    pub aside: Option<String>,
    /// Adds a row with the absolute difference of two rows, by their titles.
    pub difference: Option<(String, String)>,
    /// Whether the best figure of each column is set in bold.
    pub bold: bool,
    /// Decimals of figures.
    pub precision: usize,
}

impl Default for PivotPlan {
    fn default() -> PivotPlan {
        PivotPlan {
            rows: vec!["policy".to_owned()],
            columns: "budget".to_owned(),
            values: vec!["retained_mass".to_owned()],
            aside: None,
            difference: None,
            bold: false,
            precision: DECIMALS,
        }
    }
}

/// Results laid out: titles in order of appearance, and the line that fills each cell.
#[derive(Debug)]
pub struct Pivot<'a> {
    results: &'a Results,
    plan: &'a PivotPlan,
    values: Vec<usize>,
    row_titles: Vec<Vec<&'a Cell>>,
    column_titles: Vec<&'a Cell>,
    /// By row, then column.
    cells: Vec<Vec<Option<&'a Line>>>,
    /// Where [`PivotPlan::aside`] stands.
    aside: Option<usize>,
    /// The two rows of [`PivotPlan::difference`].
    difference: Option<(usize, usize)>,
}

impl<'a> Pivot<'a> {
    /// Lays results out.
    ///
    /// # Errors
    /// When a column is unknown, there is no line, a figure is not a number, several lines would fill
    /// one cell, or lines that do not compare would stand side by side.
    pub fn new(results: &'a Results, plan: &'a PivotPlan) -> Result<Pivot<'a>, String> {
        let columns = |names: &[String]| names.iter().map(|name| results.column(name)).collect::<Result<Vec<_>, _>>();
        let (rows, column, values) = (columns(&plan.rows)?, results.column(&plan.columns)?, columns(&plan.values)?);
        let mut pivot = Pivot {
            results,
            plan,
            values,
            row_titles: Vec::new(),
            column_titles: Vec::new(),
            cells: Vec::new(),
            aside: plan.aside.as_ref().map(|name| results.column(name)).transpose()?,
            difference: None,
        };
        for line in results.lines() {
            pivot.check_numbers(line)?;
            pivot.place(rows.iter().map(|row| &line[*row]).collect(), &line[column], line)?;
        }
        if pivot.cells.is_empty() {
            return Err("there is no line to show".to_owned());
        }
        let lines: Vec<&Line> = pivot.cells.iter().flatten().flatten().copied().collect();
        compare::check(results, &lines, &[rows, vec![column]].concat())?;
        if let Some((a, b)) = &plan.difference {
            pivot.difference = Some((pivot.row_called(a)?, pivot.row_called(b)?));
        }
        Ok(pivot)
    }

    fn check_numbers(&self, line: &Line) -> Result<(), String> {
        match self.values.iter().find(|at| matches!(line[**at], Cell::Text(_))) {
            None => Ok(()),
            Some(at) => Err(format!("{} is {:?}, not a number", self.results.columns()[*at].name, line[*at].exact())),
        }
    }

    fn place(&mut self, row: Vec<&'a Cell>, column: &'a Cell, line: &'a Line) -> Result<(), String> {
        let at_row = index_of(&mut self.row_titles, row);
        let at_column = index_of(&mut self.column_titles, column);
        self.cells.resize_with(self.row_titles.len(), Vec::new);
        self.cells.iter_mut().for_each(|cells| cells.resize(self.column_titles.len(), None));
        match self.cells[at_row][at_column].replace(line) {
            None => Ok(()),
            Some(other) => Err(self.clash(other, line)),
        }
    }

    /// Two lines for one cell: says which keys tell them apart.
    fn clash(&self, a: &Line, b: &Line) -> String {
        let varies = |(at, column): (usize, &'a Column)| (column.is_key() && a[at] != b[at]).then_some(&*column.name);
        let varying: Vec<&str> = self.results.columns().iter().enumerate().filter_map(varies).collect();
        let Some(first) = varying.first() else {
            return "two lines of the results are the same: the same file twice?".to_owned();
        };
        format!(
            "several lines would fill one cell; they differ in {}: add one to --rows or choose with --filter {first}=...",
            varying.join(", "),
        )
    }

    fn row_called(&self, wanted: &str) -> Result<usize, String> {
        let titles = || (0..self.row_titles.len()).map(|row| self.row_title(row)).collect::<Vec<_>>().join(" ");
        let found = (0..self.row_titles.len()).find(|row| self.row_title(*row) == wanted);
        found.ok_or_else(|| format!("no row {wanted:?}; there are {}", titles()))
    }

    fn row_title(&self, row: usize) -> String {
        self.row_titles[row].iter().map(|title| title.exact()).collect::<Vec<_>>().join(",")
    }

    fn column_title(&self, title: &Cell) -> String {
        let name = &self.plan.columns;
        if title.is_blank() { format!("no {name}") } else { format!("{name} {}", title.exact()) }
    }

    /// Number of columns that hold row titles.
    fn keys(&self) -> usize {
        self.plan.rows.len()
    }

    /// The columns of the table that can be spared, those to go first first: figures from the last on.
    pub fn spare(&self) -> Vec<usize> {
        (self.keys() + 1..self.keys() + self.column_titles.len()).rev().collect()
    }

    /// The table as people read it.
    pub fn table(&self) -> TextTable {
        let mut header = self.plan.rows.clone();
        header.extend(self.column_titles.iter().map(|title| self.column_title(title)));
        let mut rows: Vec<Vec<String>> = (0..self.row_titles.len()).map(|row| self.row(row)).collect();
        rows.extend(self.difference.map(|(a, b)| self.difference_row(a, b)));
        let right = (0..header.len()).map(|column| column >= self.keys()).collect();
        TextTable { header, rows, right }
    }

    fn row(&self, row: usize) -> Vec<String> {
        let titles = self.row_titles[row].iter().map(|title| title.exact());
        titles.chain((0..self.column_titles.len()).map(|column| self.cell(row, column))).collect()
    }

    fn cell(&self, row: usize, column: usize) -> String {
        let figure = |value: usize| {
            let text = self.value(row, column, value).rounded(self.plan.precision);
            if self.plan.bold && self.is_best(row, column, value) { format!("**{text}**") } else { text }
        };
        joined((0..self.values.len()).map(figure).collect()) + &self.aside(row, column)
    }

    /// What stands in brackets behind a cell.
    fn aside(&self, row: usize, column: usize) -> String {
        let line = self.cells[row].get(column).copied().flatten();
        let cell = self.aside.zip(line).map(|(at, line)| &line[at]).filter(|cell| !cell.is_blank());
        cell.map_or(String::new(), |cell| format!(" ({})", cell.exact()))
    }

    fn difference_row(&self, a: usize, b: usize) -> Vec<String> {
        let mut text = vec![String::new(); self.keys()];
        text[0] = "difference".to_owned();
        for column in 0..self.column_titles.len() {
            let figure = |value| self.difference(a, b, column, value).rounded(self.plan.precision);
            text.push(joined((0..self.values.len()).map(figure).collect()));
        }
        text
    }

    fn difference(&self, a: usize, b: usize, column: usize, value: usize) -> Cell {
        match (self.value(a, column, value), self.value(b, column, value)) {
            (Cell::Count(a), Cell::Count(b)) => Cell::Count(a.abs_diff(b)),
            (a, b) => a.number().zip(b.number()).map(|(a, b)| (a - b).abs()).into(),
        }
    }

    /// The table as programs read it: a column for each title and figure, exact numbers.
    pub fn results(&self) -> Results {
        let name = |title: &Cell, value: &String| match self.values.len() {
            1 => self.column_title(title),
            _ => format!("{} {value}", self.column_title(title)),
        };
        let titles = self.column_titles.iter();
        let figures = titles.flat_map(|title| self.plan.values.iter().map(move |value| name(title, value)));
        let names = self.plan.rows.iter().cloned().chain(figures);
        let mut table = Results::new(names.map(|name| Column::unknown(&name)).collect());
        for row in 0..self.row_titles.len() {
            let titles = self.row_titles[row].iter().map(|title| (*title).clone());
            table.push(titles.chain(self.figures(|column, value| self.value(row, column, value))).collect());
        }
        if let Some((a, b)) = self.difference {
            let titles = (0..self.keys()).map(|at| if at == 0 { Cell::text("difference") } else { Cell::Blank });
            table.push(titles.chain(self.figures(|column, value| self.difference(a, b, column, value))).collect());
        }
        table
    }

    fn figures(&self, cell: impl Fn(usize, usize) -> Cell) -> Vec<Cell> {
        let places =
            (0..self.column_titles.len()).flat_map(|column| (0..self.values.len()).map(move |at| (column, at)));
        places.map(|(column, value)| cell(column, value)).collect()
    }

    fn value(&self, row: usize, column: usize, value: usize) -> Cell {
        let line = self.cells[row].get(column).copied().flatten();
        line.map_or(Cell::Blank, |line| line[self.values[value]].clone())
    }

    /// Whether a figure is the best of its column as printed; bounds do not compete.
    fn is_best(&self, row: usize, column: usize, value: usize) -> bool {
        let sign = match self.results.columns()[self.values[value]].better() {
            Better::Higher => 1.0,
            Better::Lower => -1.0,
            Better::Neither => return false,
        };
        let printed = |row: usize| {
            let text = self.value(row, column, value).rounded(self.plan.precision);
            text.parse::<f64>().ok().map(|number| sign * number)
        };
        let Some(own) = printed(row).filter(|_| self.competes(row) && self.row_titles.len() > 1) else {
            return false;
        };
        let rivals = (0..self.row_titles.len()).filter(|other| self.competes(*other) && self.are_alike(row, *other));
        rivals.filter_map(printed).all(|other| other <= own)
    }

    /// Whether two rows differ in policy and parameters only, so that one can be better.
    fn are_alike(&self, a: usize, b: usize) -> bool {
        let is_of_policy =
            |name: &str| self.results.find(name).is_some_and(|at| self.results.columns()[at].is_of_policy());
        let titles = self.plan.rows.iter().zip(self.row_titles[a].iter().zip(&self.row_titles[b]));
        titles.filter(|(name, _)| !is_of_policy(name)).all(|(_, (a, b))| a == b)
    }

    fn competes(&self, row: usize) -> bool {
        let entry = self.row_titles[row].iter().find_map(|title| table::find(&title.exact()));
        entry.is_none_or(|entry| !entry.is_bound() && entry.budgeted)
    }
}

/// Figures of one cell; nothing where there is none.
fn joined(figures: Vec<String>) -> String {
    if figures.iter().all(String::is_empty) {
        return String::new();
    }
    let shown = |figure: String| if figure.is_empty() { "-".to_owned() } else { figure };
    figures.into_iter().map(shown).collect::<Vec<_>>().join(" / ")
}

fn index_of<T: PartialEq>(titles: &mut Vec<T>, title: T) -> usize {
    titles.iter().position(|known| *known == title).unwrap_or_else(|| {
        titles.push(title);
        titles.len() - 1
    })
}
