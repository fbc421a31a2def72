//! One value of a report, and how it is spelled.

use serde_json::Value;

/// One value of a report.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Not defined here: nothing is printed, which is never 0.
    Blank,
    /// A word.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number.
    Real(f64),
}

impl Cell {
    /// A quotient; blank where nothing could be counted.
    pub fn ratio(part: f64, whole: u64) -> Cell {
        if whole == 0 { Cell::Blank } else { Cell::Real(part / whole as f64) }
    }

    /// The shortest text that reads back to the same value.
    pub fn exact(&self) -> String {
        match self {
            Cell::Blank => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Real(real) => real.to_string(),
        }
    }

    /// Six decimals for numbers, as tables show them.
    pub fn rounded(&self) -> String {
        match self {
            Cell::Real(real) => format!("{real:.6}"),
            other => other.exact(),
        }
    }

    /// The value as JSON; blank is null.
    pub fn json(&self) -> Value {
        match self {
            Cell::Blank => Value::Null,
            Cell::Text(text) => Value::from(text.as_str()),
            Cell::Count(count) => Value::from(*count),
            Cell::Real(real) => Value::from(*real),
        }
    }

    /// Whether tables align it to the right.
    pub fn is_number(&self) -> bool {
        matches!(self, Cell::Count(_) | Cell::Real(_))
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Cell {
        value.map_or(Cell::Blank, Cell::Real)
    }
}
