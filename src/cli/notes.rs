//! What a user should know besides the report: on standard error, unless silence was asked for.

use std::io::Write;

/// Something was understood or done in a way that could surprise.
pub fn note(quiet: bool, trace: &str, notes: &[String]) {
    say(quiet, "note", trace, notes);
}

/// Something may be wrong.
pub fn warn(quiet: bool, trace: &str, warnings: &[String]) {
    say(quiet, "warning", trace, warnings);
}

fn say(quiet: bool, kind: &str, trace: &str, texts: &[String]) {
    if !quiet {
        texts.iter().for_each(|text| to_stderr(&format!("{kind}: {trace}: {text}\n")));
    }
}

/// Writes to standard error; where that fails, there is nobody left to tell.
pub fn to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
