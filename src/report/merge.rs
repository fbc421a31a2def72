//! Lines that are about parts of one whole become one line: what shards, and runs over several layers or
//! heads, have counted.

use super::cell::Cell;
use super::identity::label;
use super::results::{Line, Results};
use super::schema::{Column, Merge, Role};
use std::collections::BTreeSet;

impl Results {
    /// Merges the lines whose keys agree, in order of appearance: sums are added, extremes kept, figures
    /// read anew from the sums, and `layer` and `head` name the parts.
    ///
    /// The figures are those of one run over all parts: to the digit where the parts stand in the
    /// order of that run, since floats are added in the order of the lines. A sum that one of the parts
    /// lacks is blank, and so is what is read from it.
    ///
    /// # Errors
    /// When two lines are about the same part, or a part is a combination that may hold another.
    pub fn merge(&self) -> Result<Results, String> {
        let mut groups: Vec<(String, Vec<&Line>)> = Vec::new();
        for line in self.lines() {
            let key = self.merge_key(line);
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, lines)) => lines.push(line),
                None => groups.push((key, vec![line])),
            }
        }
        let mut merged = Results::new(self.columns().to_vec());
        for (_, lines) in &groups {
            merged.push(self.merge_lines(lines)?);
        }
        merged.derive();
        Ok(merged)
    }

    /// What must agree for two lines to be parts of one.
    fn merge_key(&self, line: &Line) -> String {
        let must_agree = |column: &Column| column.merge == Merge::Key && column.role != Role::Unknown;
        let cells = self.columns().iter().zip(line).filter(|(column, _)| must_agree(column));
        cells.map(|(_, cell)| cell.exact() + "\n").collect()
    }

    fn merge_lines(&self, lines: &[&Line]) -> Result<Line, String> {
        if let [only] = lines {
            return Ok((*only).clone());
        }
        let parts: Vec<Part> = lines.iter().map(|line| self.part(line)).collect();
        check_disjoint(&parts)?;
        let [layer, head] = united(&parts);
        let cell = |(at, column): (usize, &Column)| {
            let cells = || lines.iter().map(|line| &line[at]);
            match column.merge {
                Merge::Key => agreed(cells()),
                Merge::Part if column.name == "layer" => layer.clone(),
                Merge::Part => head.clone(),
                Merge::Add => sum(cells()),
                Merge::Least => extreme(cells(), f64::min),
                Merge::Most => extreme(cells(), f64::max),
                Merge::Whole | Merge::Derived | Merge::Weakest => Cell::Blank,
            }
        };
        let mut line: Line = self.columns().iter().enumerate().map(cell).collect();
        if let (Some((mass, stream)), [Some(mass_at), Some(stream_at)]) =
            (self.weakest(lines, &parts), ["worst_retained_mass", "worst_stream"].map(|name| self.find(name)))
        {
            (line[mass_at], line[stream_at]) = (Cell::Real(mass), Cell::text(&stream));
        }
        Ok(line)
    }

    fn part(&self, line: &Line) -> Part {
        ["layer", "head"].map(|name| self.find(name).map_or(String::new(), |at| line[at].exact()))
    }

    /// The weakest of the lines, or of the streams that they name as their weakest.
    fn weakest(&self, lines: &[&Line], parts: &[Part]) -> Option<(f64, String)> {
        let at = |name| self.find(name);
        let own = |(line, part): (&&Line, &Part)| {
            let named = at("worst_retained_mass").zip(at("worst_stream"));
            let named = named.and_then(|(mass, stream)| Some((line[mass].number()?, line[stream].exact())));
            named.or_else(|| Some((line[at("retained_mass")?].number()?, part.join("/"))))
        };
        let all: Option<Vec<(f64, String)>> = lines.iter().zip(parts).map(own).collect();
        all?.into_iter().reduce(|least, next| if next.0 < least.0 { next } else { least })
    }
}

/// The layer and the head of a line, as it names them.
type Part = [String; 2];

fn check_disjoint(parts: &[Part]) -> Result<(), String> {
    for (at, part) in parts.iter().enumerate() {
        let overlaps = |other: &&Part| may_overlap(&other[0], &part[0]) && may_overlap(&other[1], &part[1]);
        if let Some(other) = parts[..at].iter().find(overlaps) {
            let [a, b] = [other, part].map(|part| part.join("/"));
            return Err(format!("layer/head {a} and {b} may hold the same caches: merge each part once"));
        }
    }
    Ok(())
}

fn may_overlap(a: &str, b: &str) -> bool {
    match (members(a), members(b)) {
        (Some(a), Some(b)) => a.iter().any(|one| b.contains(one)),
        _ => true,
    }
}

/// The layers or heads that a name stands for; `None` for `all`, and for what does not list them.
fn members(name: &str) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for part in name.split(',') {
        match part.split_once("..").map(|(first, last)| Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))) {
            None if part != "all" && !part.contains([' ', '/']) => drop(all.insert(part.to_owned())),
            Some(Some((first, last))) if last.saturating_sub(first) < MOST => {
                all.extend((first..=last).map(|one| one.to_string()));
            }
            _ => return None,
        }
    }
    Some(all)
}

/// More members than this are no list of layers or heads.
const MOST: u32 = 1 << 16;

/// How the parts are called together: layers and heads, or where these do not multiply, each pair.
fn united(parts: &[Part]) -> [Cell; 2] {
    let [layers, heads] = [0, 1].map(|at| {
        let mut names: Vec<&str> = Vec::new();
        for part in parts {
            if !names.contains(&&*part[at]) {
                names.push(&part[at]);
            }
        }
        names
    });
    let multiply = layers.len() * heads.len() == parts.len();
    let pairs = || parts.iter().map(|part| part.join("/")).collect::<Vec<_>>().join(",");
    [label(&layers.join(",")), if multiply { label(&heads.join(",")) } else { Cell::text(&pairs()) }]
}

/// The value that all have; blank where they differ.
fn agreed<'a>(mut cells: impl Iterator<Item = &'a Cell>) -> Cell {
    let first = cells.next().cloned().unwrap_or(Cell::Blank);
    if cells.all(|cell| *cell == first) { first } else { Cell::Blank }
}

/// Numbers added in the order of the lines; blank where one is missing.
fn sum<'a>(cells: impl Iterator<Item = &'a Cell>) -> Cell {
    let add = |sum: Cell, cell: &Cell| match (&sum, cell) {
        (Cell::Count(a), Cell::Count(b)) => a.checked_add(*b).map_or(Cell::Blank, Cell::Count),
        (a, b) => a.number().zip(b.number()).map(|(a, b)| a + b).into(),
    };
    cells.cloned().reduce(|sum, cell| add(sum, &cell)).unwrap_or(Cell::Blank)
}

/// The least or the greatest of the numbers that there are.
fn extreme<'a>(cells: impl Iterator<Item = &'a Cell>, pick: fn(f64, f64) -> f64) -> Cell {
    let numbers: Vec<&Cell> = cells.filter(|cell| !cell.is_blank()).collect();
    let best = numbers.iter().filter_map(|cell| cell.number()).reduce(pick);
    numbers.into_iter().find(|cell| cell.number() == best).cloned().unwrap_or(Cell::Blank)
}
