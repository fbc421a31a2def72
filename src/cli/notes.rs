//! What a user should know besides the report: on standard error, unless silence was asked for.

use kvsim::experiment::{Remark, Severity};
use kvsim::text::plain;
use std::io::Write;

/// Prints what a user should know.
pub fn listener(quiet: bool) -> impl FnMut(Remark) {
    move |remark| {
        if !quiet {
            to_stderr(&remark.to_string());
        }
    }
}

/// Something was understood or done in a way that could surprise.
pub fn note(quiet: bool, trace: &str, notes: &[String]) {
    tell(quiet, Severity::Note, trace, notes);
}

/// Something may be wrong.
pub fn warn(quiet: bool, trace: &str, warnings: &[String]) {
    tell(quiet, Severity::Warning, trace, warnings);
}

/// Something about the report itself.
pub fn remark(quiet: bool, text: &str) {
    if !quiet {
        to_stderr(&format!("note: {text}"));
    }
}

fn tell(quiet: bool, severity: Severity, trace: &str, texts: &[String]) {
    let remark = |text: &String| Remark { severity, trace: trace.to_owned(), text: text.clone() };
    texts.iter().map(remark).for_each(listener(quiet));
}

/// Writes one line to standard error, fit to print whatever it quotes; where that fails, there is no other
/// place to report it.
pub fn to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", plain(text));
}
