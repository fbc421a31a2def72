//! Tables as the README shows them, and how numbers are written in them.

use kvsim::report::text_table::TextTable;

/// A markdown table with columns of words on the left and of numbers on the right.
pub struct Table(TextTable);

impl Table {
    /// A table whose first `words` columns hold words.
    pub fn new<const N: usize>(header: [&str; N], words: usize) -> Table {
        let right = (0..N).map(|column| column >= words).collect();
        Table(TextTable { header: header.map(str::to_owned).to_vec(), rows: Vec::new(), right })
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.0.header.len(), "a cell for each column");
        self.0.rows.push(cells.to_vec());
    }

    /// The table as text.
    pub fn markdown(&self) -> String {
        self.0.markdown()
    }
}

/// Seconds, in milliseconds.
pub fn ms(seconds: f64) -> String {
    format!("{} ms", three_digits(seconds * 1e3))
}

/// Seconds, in microseconds.
pub fn us(seconds: f64) -> String {
    format!("{} us", three_digits(seconds * 1e6))
}

/// Seconds, in nanoseconds.
pub fn ns(seconds: f64) -> String {
    format!("{} ns", three_digits(seconds * 1e9))
}

/// So many times something.
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2} x")
}

/// About three digits that mean something.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A whole number with its thousands set apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}
