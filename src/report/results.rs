//! Results: lines of cells under columns of the schema. Made from outcomes or read from files, joined by
//! the names of columns, and consumed by every format, comparison table and merge.

use super::cell::Cell;
use super::schema::{self, Column, Reading};
use crate::meter::Better;
use std::collections::{BTreeMap, BTreeSet};

/// Lines under columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    columns: Vec<Column>,
    lines: Vec<Line>,
}

/// One cell for each column.
pub type Line = Vec<Cell>;

impl Results {
    /// No lines yet, under these columns.
    pub fn new(columns: Vec<Column>) -> Results {
        Results { columns, lines: Vec::new() }
    }

    /// The columns, those of the schema in its order, then those that this version does not know.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Adds a line.
    ///
    /// # Panics
    /// When it has not one cell for each column.
    pub fn push(&mut self, line: Line) {
        assert_eq!(line.len(), self.columns.len(), "one cell for each column");
        self.lines.push(line);
    }

    /// Where a column stands.
    ///
    /// # Errors
    /// Names the columns that there are.
    pub fn column(&self, name: &str) -> Result<usize, String> {
        let names = || self.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(", ");
        self.find(name).ok_or_else(|| format!("no column {name:?}; there are {}", names()))
    }

    /// Where a column stands, if there is one of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The cell of a line in a column; blank where the column is missing.
    pub fn cell(&self, line: usize, column: &str) -> Cell {
        self.find(column).map_or(Cell::Blank, |at| self.lines[line][at].clone())
    }

    /// Appends the lines of other results: cells go to the column of the same name, what either lacks is
    /// blank.
    pub fn join(&mut self, other: Results) {
        for column in &other.columns {
            if self.find(&column.name).is_none() {
                self.columns.push(column.clone());
                self.lines.iter_mut().for_each(|line| line.push(Cell::Blank));
            }
        }
        let places: Vec<usize> = other.columns.iter().filter_map(|column| self.find(&column.name)).collect();
        for line in other.lines {
            let mut joined = vec![Cell::Blank; self.columns.len()];
            places.iter().zip(line).for_each(|(place, cell)| joined[*place] = cell);
            self.lines.push(joined);
        }
        self.order_columns();
    }

    /// Puts the columns of the schema into its order, before the unknown ones.
    fn order_columns(&mut self) {
        let schema = schema::columns();
        let place = |column: &Column| schema.iter().position(|known| known.name == column.name);
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        order.sort_by_key(|at| place(&self.columns[*at]).unwrap_or(schema.len()));
        if order.is_sorted() {
            return;
        }
        self.columns = order.iter().map(|at| self.columns[*at].clone()).collect();
        for line in &mut self.lines {
            *line = order.iter().map(|at| line[*at].clone()).collect();
        }
    }

    /// Gives a column another name, and what the schema says of that.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let (Some(at), Some(column)) = (self.find(from), schema::find(to)) {
            self.columns[at] = column;
        }
    }

    /// Changes the cells of a column, where there is one of this name.
    pub(super) fn change(&mut self, column: &str, change: impl Fn(&Cell) -> Cell) {
        if let Some(at) = self.find(column) {
            self.lines.iter_mut().for_each(|line| line[at] = change(&line[at]));
        }
    }

    /// Keeps the lines that have each of these values, given by column.
    ///
    /// # Errors
    /// When a column is missing, or no line is left: names the values that there are.
    pub fn filter(&mut self, filters: &[(String, String)]) -> Result<(), String> {
        for (index, (name, wanted)) in filters.iter().enumerate() {
            let at = self.column(name)?;
            let value = Cell::read(wanted, self.columns[at].kind).unwrap_or_else(|_| Cell::text(wanted));
            let values = self.values(at, &self.lines.iter().collect::<Vec<_>>());
            self.lines.retain(|line| line[at] == value);
            if self.lines.is_empty() {
                let others = if index > 0 { " with the filters before it" } else { "" };
                return Err(format!("no line has {name}={wanted}{others}; {name} is {}", values.join(", ")));
            }
        }
        Ok(())
    }

    /// Sorts the lines by a column, blanks last; lines that tie keep their order.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn sort(&mut self, column: &str, descending: bool) -> Result<(), String> {
        let at = self.column(column)?;
        self.lines.sort_by(|a, b| match a[at].is_blank() || b[at].is_blank() || !descending {
            true => a[at].order(&b[at]),
            false => b[at].order(&a[at]),
        });
        Ok(())
    }

    /// Of lines that differ in one key alone, keeps the one whose figure is best, the first where several
    /// tie: every policy at its own best window, say.
    ///
    /// # Errors
    /// When a column is missing, `key` is not a key, or no direction of `figure` is better.
    pub fn keep_best(&mut self, key: &str, figure: &str) -> Result<(), String> {
        let (key_at, figure_at) = (self.column(key)?, self.column(figure)?);
        if !self.columns[key_at].is_key() {
            return Err(format!(
                "{key} is a figure: the best is chosen among the values of a parameter or another key"
            ));
        }
        let sign = match self.columns[figure_at].better() {
            Better::Higher => 1.0,
            Better::Lower => -1.0,
            Better::Neither => return Err(format!("no direction of {figure} is better: name another figure first")),
        };
        let is_key = |at: &usize| *at != key_at && self.columns[*at].is_key();
        let keys: Vec<usize> = (0..self.columns.len()).filter(is_key).collect();
        let mut best: BTreeMap<String, (usize, f64)> = BTreeMap::new();
        for (index, line) in self.lines.iter().enumerate() {
            let value = line[figure_at].number().map_or(f64::NEG_INFINITY, |number| sign * number);
            let group = keys.iter().map(|at| line[*at].exact() + "\n").collect();
            let leader = best.entry(group).or_insert((index, value));
            if value > leader.1 {
                *leader = (index, value);
            }
        }
        let kept: BTreeSet<usize> = best.into_values().map(|(index, _)| index).collect();
        let mut index = 0..;
        self.lines.retain(|_| kept.contains(&index.next().expect("endless")));
        Ok(())
    }

    /// The different values of a column over some lines, in order of appearance, as messages show them.
    pub(super) fn values(&self, column: usize, lines: &[&Line]) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for cell in lines.iter().map(|line| &line[column]) {
            let shown = if cell.is_blank() { "(blank)".to_owned() } else { cell.exact() };
            if !values.contains(&shown) {
                values.push(shown);
            }
        }
        values
    }

    /// Reads every derived figure from the columns that it is derived from.
    pub(super) fn derive(&mut self) {
        for at in 0..self.columns.len() {
            match self.columns[at].reading {
                Reading::Given => {}
                Reading::Ratio(part, whole) => {
                    let (part, whole) = (self.find(part), whole.iter().map(|name| self.find(name)).collect::<Vec<_>>());
                    self.lines.iter_mut().for_each(|line| line[at] = ratio(line, part, &whole));
                }
                Reading::Value(sum) => {
                    let from = self.find(sum);
                    let value = |line: &Line| from.map_or(Cell::Blank, |from| line[from].clone());
                    self.lines.iter_mut().for_each(|line| line[at] = value(line));
                }
                Reading::Recovery(bound) => self.recover(at, bound),
            }
        }
    }

    /// Retained mass over that of a bound on the same caches at the same budget.
    fn recover(&mut self, at: usize, bound: &str) {
        let [Some(policy), Some(mass)] = ["policy", "retained_mass"].map(|name| self.find(name)) else { return };
        let is_bound = |line: &&Line| line[policy] == Cell::text(bound);
        let mut best: BTreeMap<String, f64> = BTreeMap::new();
        for line in self.lines.iter().filter(is_bound) {
            if let Some(mass) = line[mass].number().filter(|mass| *mass > 0.0) {
                best.entry(self.place_of(line)).or_insert(mass);
            }
        }
        if best.is_empty() {
            return self.lines.iter_mut().for_each(|line| line[at] = Cell::Blank);
        }
        let share = |line: &Line| Some(line[mass].number()? / best.get(&self.place_of(line))?);
        let shares: Vec<Option<f64>> = self.lines.iter().map(share).collect();
        self.lines.iter_mut().zip(shares).for_each(|(line, share)| line[at] = share.into());
    }

    /// The caches that a line is about, how they were measured, the budget, and how far it is outgrown.
    fn place_of(&self, line: &Line) -> String {
        let is_place = |column: &Column| {
            column.role == schema::Role::Replayed || ["budget", "evict_every"].contains(&&*column.name)
        };
        let cells = self.columns.iter().zip(line).filter(|(column, _)| is_place(column));
        cells.map(|(_, cell)| cell.exact() + "\n").collect()
    }
}

/// One cell over the sum of others; blank where one is missing, or that is 0.
fn ratio(line: &Line, part: Option<usize>, whole: &[Option<usize>]) -> Cell {
    let number = |at: Option<usize>| line[at?].number();
    let whole: Option<f64> = whole.iter().map(|at| number(*at)).sum();
    match (number(part), whole.filter(|whole| *whole != 0.0)) {
        (Some(part), Some(whole)) => Cell::Real(part / whole),
        _ => Cell::Blank,
    }
}
