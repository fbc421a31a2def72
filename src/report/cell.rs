//! One value of a report, and how it is spelled.

use crate::text;
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// One value of a report.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Not defined here, or not known: nothing is printed, which is never 0.
    Blank,
    /// Words. [`Cell::text`] makes them, so that no report holds a control character.
    Text(Arc<str>),
    /// A whole number.
    Count(u64),
    /// A number.
    Real(f64),
}

/// What the cells of a column hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CellKind {
    /// Whole numbers.
    Count,
    /// Numbers.
    Real,
    /// Words, whatever they look like.
    Text,
    /// A number or a word, whichever it looks like.
    Label,
}

impl Cell {
    /// Words, fit to print.
    pub fn text(words: &str) -> Cell {
        Cell::Text(text::plain(words).into())
    }

    /// A whole number, where there is one.
    pub fn count(count: Option<usize>) -> Cell {
        count.map_or(Cell::Blank, |count| Cell::Count(count as u64))
    }

    /// Reads a cell of a column, in any spelling that CSV files come back in: `4.0` for 4, `True`, `NaN`.
    ///
    /// # Errors
    /// When the column holds numbers and this is none.
    pub fn read(words: &str, kind: CellKind) -> Result<Cell, String> {
        let number = words.trim().parse::<f64>().ok();
        match kind {
            _ if words.is_empty() => Ok(Cell::Blank),
            CellKind::Text => Ok(Cell::text(words)),
            _ if number.is_some_and(f64::is_nan) => Ok(Cell::Blank),
            CellKind::Count => {
                whole(words.trim()).map(Cell::Count).ok_or_else(|| format!("{words:?} is not a whole number"))
            }
            CellKind::Real => {
                let finite = number.filter(|number| number.is_finite());
                finite.map(Cell::Real).ok_or_else(|| format!("{words:?} is not a number"))
            }
            CellKind::Label => Ok(Cell::label(words)),
        }
    }

    /// A number or a word, whichever it looks like. Only plain decimals are numbers: `1e3` and `inf` are words.
    fn label(words: &str) -> Cell {
        let plain_decimal = words.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match (whole(words), words.parse()) {
            (Some(count), _) => Cell::Count(count),
            (None, Ok(real)) if plain_decimal && f64::is_finite(real) => Cell::Real(real),
            _ if words == "True" || words == "False" => Cell::text(&words.to_lowercase()),
            _ => Cell::text(words),
        }
    }

    /// Reads a value of a JSON object.
    ///
    /// # Errors
    /// When it is a list or an object, or the column holds numbers and this is none.
    pub fn from_json(value: &Value, kind: CellKind) -> Result<Cell, String> {
        match value {
            Value::Null => Ok(Cell::Blank),
            Value::String(words) => Cell::read(words, kind),
            Value::Number(number) => Cell::read(&number.to_string(), kind),
            Value::Bool(truth) => Cell::read(if *truth { "true" } else { "false" }, kind),
            Value::Array(_) | Value::Object(_) => Err(format!("{value} is not a single value")),
        }
    }

    /// A quotient; blank where nothing could be counted.
    pub fn ratio(part: f64, whole: u64) -> Cell {
        if whole == 0 { Cell::Blank } else { Cell::Real(part / whole as f64) }
    }

    /// The number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Count(count) => Some(*count as f64),
            Cell::Real(real) => Some(*real),
            Cell::Blank | Cell::Text(_) => None,
        }
    }

    /// The shortest text that reads back to the same value.
    pub fn exact(&self) -> String {
        match self {
            Cell::Blank => String::new(),
            Cell::Text(text) => text.to_string(),
            Cell::Count(count) => count.to_string(),
            Cell::Real(real) => real.to_string(),
        }
    }

    /// As tables show it: numbers with so many decimals, counts without.
    pub fn rounded(&self, decimals: usize) -> String {
        match self {
            Cell::Real(real) => format!("{real:.decimals$}"),
            other => other.exact(),
        }
    }

    /// The value as JSON; blank is null.
    pub fn json(&self) -> Value {
        match self {
            Cell::Blank => Value::Null,
            Cell::Text(text) => Value::from(&**text),
            Cell::Count(count) => Value::from(*count),
            Cell::Real(real) => Value::from(*real),
        }
    }

    /// Whether nothing is here.
    pub fn is_blank(&self) -> bool {
        *self == Cell::Blank
    }

    /// Whether tables align it to the right.
    pub fn is_number(&self) -> bool {
        matches!(self, Cell::Count(_) | Cell::Real(_))
    }

    /// Numbers by value, then words, then blanks.
    pub fn order(&self, other: &Cell) -> Ordering {
        let rank = |cell: &Cell| match cell {
            Cell::Count(_) | Cell::Real(_) => 0,
            Cell::Text(_) => 1,
            Cell::Blank => 2,
        };
        let within = match (self, other) {
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (a, b) => a.number().unwrap_or(0.0).total_cmp(&b.number().unwrap_or(0.0)),
        };
        rank(self).cmp(&rank(other)).then(within)
    }
}

/// A whole number, also as `4.0`.
fn whole(words: &str) -> Option<u64> {
    let digits = words.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|byte| byte == b'0'));
    let digits = digits.map_or(words, |(digits, _)| digits);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Cell {
        value.map_or(Cell::Blank, Cell::Real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_read_back_in_the_spelling_of_other_programs() {
        let read = |words, kind| Cell::read(words, kind).expect("sound");
        assert_eq!(read("4.0", CellKind::Count), Cell::Count(4));
        assert_eq!(read("4.0", CellKind::Label), Cell::Count(4));
        assert_eq!(read("4", CellKind::Real), Cell::Real(4.0));
        assert_eq!(read("NaN", CellKind::Real), Cell::Blank);
        assert_eq!(read("", CellKind::Count), Cell::Blank);
        assert_eq!(read("3,10", CellKind::Label), Cell::text("3,10"));
        assert_eq!(read("True", CellKind::Label), Cell::text("true"));
        assert_eq!(read("1e5", CellKind::Text), Cell::text("1e5"));
        assert_eq!(read("1e5", CellKind::Label), Cell::text("1e5"));
        for words in ["4.5", "-4", "x", ".", "inf"] {
            assert!(Cell::read(words, CellKind::Count).is_err(), "{words}");
        }
        for words in ["inf", "-inf", "1e999", "x"] {
            assert!(Cell::read(words, CellKind::Real).is_err(), "{words}");
        }
    }

    #[test]
    fn numbers_order_before_words_and_words_before_blanks() {
        let mut cells = [Cell::Blank, Cell::text("all"), Cell::Count(10), Cell::Real(9.5), Cell::text("3,10")];
        cells.sort_by(Cell::order);
        let words: Vec<String> = cells.iter().map(Cell::exact).collect();
        assert_eq!(words, ["9.5", "10", "3,10", "all", ""]);
    }
}
