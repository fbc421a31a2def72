//! What a user should know besides the report: on standard error, unless silence was asked for.

use kvsim::text::plain;
use std::io::Write;

/// Something was understood or done in a way that could surprise.
pub fn note(quiet: bool, trace: &str, notes: &[String]) {
    say(quiet, "note", trace, notes);
}

/// Something may be wrong.
pub fn warn(quiet: bool, trace: &str, warnings: &[String]) {
    say(quiet, "warning", trace, warnings);
}

/// Something about the report itself.
pub fn remark(quiet: bool, text: &str) {
    if !quiet {
        to_stderr("note", text);
    }
}

fn say(quiet: bool, kind: &str, trace: &str, texts: &[String]) {
    if !quiet {
        texts.iter().for_each(|text| to_stderr(kind, &format!("{trace}: {text}")));
    }
}

/// Writes one line to standard error, fit to print whatever it quotes; where that fails, there is no other
/// place to report it.
pub fn to_stderr(kind: &str, text: &str) {
    let _ = writeln!(std::io::stderr(), "{kind}: {}", plain(text));
}
