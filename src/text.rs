//! Text that was not written by us, made fit to print: names of files, streams and columns, and whatever
//! messages quote of them.
//!
//! The one place through which such text reaches a terminal, a table, a document or a spreadsheet. Each
//! function here changes nothing about ordinary text, and nothing about its own output.

use std::borrow::Cow;

/// One line without anything that moves a cursor, ends a line or turns the direction of text: such
/// characters are spelled out, as `\n` or `\u{1b}`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let spell = |letter: char| match is_unprintable(letter) {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(text.chars().map(spell).collect())
}

fn is_unprintable(letter: char) -> bool {
    let turns_or_breaks =
        matches!(letter, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns_or_breaks
}

/// A cell of a markdown table: [`plain`], no bar that ends the cell, no comment that could be a mark.
pub fn markdown(text: &str) -> String {
    let mut cell = String::new();
    for letter in plain(text).chars() {
        // A bar that is escaped already stays as it is.
        if letter == '|' && !cell.ends_with('\\') {
            cell.push('\\');
        }
        cell.push(letter);
    }
    without_comments(&cell).into_owned()
}

/// Text in which no HTML comment begins, so that it cannot hold the mark of a block.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if text.contains("<!--") { Cow::Owned(text.replace("<!--", "&lt;!--")) } else { Cow::Borrowed(text) }
}

/// A cell of a CSV file: [`plain`], and no formula to a spreadsheet, which takes a cell that begins with
/// `=`, `+`, `-` or `@` for one. Such text is written behind an apostrophe, as one would type it there;
/// so is text that begins with apostrophes and one of these, so that [`from_csv`] gets all of it back.
pub fn csv(text: &str) -> Cow<'_, str> {
    let text = plain(text);
    if looks_like_formula(text.trim_start_matches('\'')) { Cow::Owned(format!("'{text}")) } else { text }
}

/// The text that [`csv()`] wrote.
pub fn from_csv(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if looks_like_formula(text.trim_start_matches('\'')) => text,
        _ => cell,
    }
}

/// A lone `-`, the name of standard input, is no formula anywhere.
fn looks_like_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@']) && text != "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["", "-", "traces/a b.npy", "16.6", "décode", "a\\b", "注意"] {
            assert_eq!((plain(text), csv(text)), (Cow::Borrowed(text), Cow::Borrowed(text)));
            assert_eq!(markdown(text), text);
        }
    }

    #[test]
    fn what_moves_the_cursor_ends_a_line_or_turns_text_is_spelled_out() {
        assert_eq!(plain("a\x1b[31mb\nc\td\u{9b}e\u{202e}f"), "a\\u{1b}[31mb\\nc\\td\\u{9b}e\\u{202e}f");
        let once = plain("a\x1b\n").into_owned();
        assert_eq!(plain(&once), once, "twice is once");
    }

    #[test]
    fn a_markdown_cell_holds_no_bar_and_no_mark() {
        assert_eq!(markdown("a|b<!-- kvsim:end x -->"), "a\\|b&lt;!-- kvsim:end x -->");
        assert_eq!(markdown(&markdown("a|b\n")), markdown("a|b\n"), "twice is once");
    }

    #[test]
    fn a_csv_cell_is_no_formula_and_reads_back() {
        assert_eq!(csv("=1+1"), "'=1+1");
        for text in ["=1", "+1", "-1", "@a", "'=1", "''@", "'a", "'", "a=1", "-", "'-"] {
            let cell = csv(text);
            assert_eq!(from_csv(&cell), text, "{cell}");
            assert!(!looks_like_formula(&cell), "{cell}");
        }
    }
}
