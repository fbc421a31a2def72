//! Aligned text and markdown from cells: the layout only, whatever the content.

use crate::text;

/// A table of words: a header, rows, and which columns align to the right.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    /// Column titles.
    pub header: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// Whether a column aligns to the right.
    pub right: Vec<bool>,
}

/// Spaces between two columns.
const GAP: usize = 2;

/// Narrower than this no column is drawn.
const NARROWEST: usize = 3;

impl TextTable {
    /// Columns two spaces apart.
    pub fn aligned(&self) -> String {
        self.map(|cell| text::plain(cell).into_owned())
            .render(|cells| format!("{}\n", cells.join(&" ".repeat(GAP)).trim_end()), None)
    }

    /// A markdown table, padded so that its source is a table too.
    pub fn markdown(&self) -> String {
        let table = self.map(text::markdown);
        let rule = |(width, right): (&usize, &bool)| {
            if *right { format!("{}:", "-".repeat(width - 1)) } else { "-".repeat(*width) }
        };
        let rule: Vec<String> = table.widths().iter().zip(&table.right).map(rule).collect();
        table.render(|cells| format!("| {} |\n", cells.join(" | ")), Some(rule))
    }

    /// Makes the aligned table fit a width: leaves out columns that can be spared, in the order given,
    /// then cuts the widest cells short. Returns the titles of what was left out.
    pub fn fit(&mut self, width: usize, spare: &[usize]) -> Vec<String> {
        *self = self.map(|cell| text::plain(cell).into_owned());
        let widths = self.widths();
        let without = |count: usize| -> Vec<usize> {
            (0..widths.len()).filter(|column| !spare[..count].contains(column)).collect()
        };
        let fits = |kept: &[usize]| line_width(&kept.iter().map(|column| widths[*column]).collect::<Vec<_>>()) <= width;
        let count = (0..=spare.len()).find(|count| fits(&without(*count))).unwrap_or(spare.len());
        let kept = without(count);
        let left_out = (0..widths.len()).filter(|column| !kept.contains(column));
        let left_out: Vec<String> = left_out.map(|column| self.header[column].clone()).collect();
        self.keep(&kept);
        while self.width() > width {
            let widths = self.widths();
            let widest = (0..widths.len()).rev().max_by_key(|column| widths[*column]);
            let Some(column) = widest.filter(|column| widths[*column] > NARROWEST) else { break };
            let over = self.width() - width;
            self.cut(column, widths[column].saturating_sub(over).max(NARROWEST).max(second(&widths)));
        }
        left_out
    }

    fn keep(&mut self, columns: &[usize]) {
        for row in self.rows.iter_mut().chain([&mut self.header]) {
            *row = columns.iter().map(|column| row[*column].clone()).collect();
        }
        self.right = columns.iter().map(|column| self.right[*column]).collect();
    }

    fn width(&self) -> usize {
        line_width(&self.widths())
    }

    /// Cuts the cells of a column down to a width, the last letter a sign of it.
    fn cut(&mut self, column: usize, width: usize) {
        for cell in self.rows.iter_mut().chain([&mut self.header]).map(|row| &mut row[column]) {
            if cell.chars().count() > width {
                *cell = cell.chars().take(width - 1).chain(['…']).collect();
            }
        }
    }

    /// The same table with other words in its cells.
    fn map(&self, change: impl Fn(&str) -> String) -> TextTable {
        let changed = |row: &Vec<String>| row.iter().map(|cell| change(cell)).collect();
        TextTable {
            header: changed(&self.header),
            rows: self.rows.iter().map(changed).collect(),
            right: self.right.clone(),
        }
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
            cells.max().unwrap_or(0).max(NARROWEST)
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

fn line_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The second largest, below which cutting the widest column alone makes no sense; 1 less than the
/// largest where two are equal.
fn second(widths: &[usize]) -> usize {
    let most = widths.iter().max().copied().unwrap_or(0);
    let next = widths.iter().filter(|width| **width < most).max().copied().unwrap_or(0);
    if widths.iter().filter(|width| **width == most).count() > 1 { most - 1 } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let words = |row: [&str; 4]| row.map(str::to_owned).to_vec();
        TextTable {
            header: words(["trace", "policy", "first", "second"]),
            rows: vec![words(["a name of some length", "h2o", "0.500000", "0.250000"])],
            right: vec![false, false, true, true],
        }
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_then_shorter_cells() {
        let lines = |width| {
            let mut table = table();
            let left_out = table.fit(width, &[3]);
            let text = table.aligned();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            (left_out, text)
        };
        assert_eq!(lines(80).0, [""; 0]);
        assert_eq!(lines(46).0, ["second"]);
        let (left_out, text) = lines(30);
        assert_eq!(left_out, ["second"]);
        assert_eq!(text, "trace         policy     first\na name of s…  h2o     0.500000\n");
    }

    #[test]
    fn what_a_cell_holds_cannot_break_the_table() {
        let mut table = table();
        table.rows[0][0] = "a|b\nc\x1b[1m".to_owned();
        let (text, markdown) = (table.aligned(), table.markdown());
        assert_eq!((text.lines().count(), markdown.lines().count()), (2, 3), "{text}{markdown}");
        assert!(markdown.contains("| a\\|b\\nc\\u{1b}[1m | h2o "), "{markdown}");
    }
}
