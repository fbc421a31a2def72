//! What a user should know besides the report: on standard error, unless silence was asked for.

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
        texts.iter().for_each(|text| eprintln!("{kind}: {trace}: {text}"));
    }
}
