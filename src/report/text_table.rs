//! Aligned text and markdown from cells: the layout only, whatever the content.

/// A table of words: a header, rows, and which columns align to the right.
#[derive(Debug, Default)]
pub struct TextTable {
    /// Column titles.
    pub header: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// Whether a column aligns to the right.
    pub right: Vec<bool>,
}

impl TextTable {
    /// Columns two spaces apart.
    pub fn aligned(&self) -> String {
        self.render(|cells| format!("{}\n", cells.join("  ").trim_end()), None)
    }

    /// A markdown table, padded so that its source is a table too.
    pub fn markdown(&self) -> String {
        let rule = |(width, right): (&usize, &bool)| {
            if *right { format!("{}:", "-".repeat(width - 1)) } else { "-".repeat(*width) }
        };
        let widths = self.widths();
        let rule: Vec<String> = widths.iter().zip(&self.right).map(rule).collect();
        self.render(|cells| format!("| {} |\n", cells.join(" | ")), Some(rule))
    }

    fn render(&self, line: impl Fn(&[String]) -> String, rule: Option<Vec<String>>) -> String {
        let widths = self.widths();
        let mut text = line(&self.pad(&self.header, &widths));
        text.extend(rule.map(|rule| line(&rule)));
        text.extend(self.rows.iter().map(|row| line(&self.pad(row, &widths))));
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&self.header]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(3)
        };
        (0..self.header.len()).map(width).collect()
    }

    fn pad(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let pad = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if self.right[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        };
        row.iter().enumerate().map(pad).collect()
    }
}
