//! The table of trace formats, and the one function that opens a trace by path or name.

use super::spec::{MixtureSpec, built_in_names};
use super::synthetic::SyntheticTrace;
use super::{Source, jsonl, safetensors};
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::path::Path;

/// A trace format: how it is recognised and opened.
pub struct TraceFormat {
    /// Name, as `inspect` prints it.
    pub name: &'static str,
    /// File name extensions, without the dot.
    pub extensions: &'static [&'static str],
    /// One line for help.
    pub summary: &'static str,
    /// Opens a file of this format.
    pub open: fn(&Path) -> Result<Box<dyn Source>>,
}

/// Every trace format. A new one is its own file and a line here.
pub const FORMATS: &[TraceFormat] = &[
    TraceFormat {
        name: "safetensors",
        extensions: &["safetensors"],
        summary: "packed rows, one tensor attention.{layer}.{head} per stream; the native format",
        open: safetensors::open,
    },
    TraceFormat {
        name: "jsonl",
        extensions: &["jsonl", "ndjson"],
        summary: "one JSON object per row; `-` reads it from standard input",
        open: jsonl::open,
    },
    TraceFormat {
        name: "spec",
        extensions: &["json"],
        summary: "a synthetic mixture, generated as it is replayed",
        open: open_spec,
    },
];

/// Opens a trace: a built-in name, `-` for JSON lines on standard input, or a file.
///
/// # Errors
/// When there is no such trace, or what is there is not a trace.
pub fn open(name: &OsStr) -> Result<Box<dyn Source>> {
    if name == "-" {
        return jsonl::read_stdin();
    }
    if let Some(spec) = name.to_str().and_then(MixtureSpec::built_in) {
        return Ok(Box::new(SyntheticTrace::new(spec)));
    }
    let path = Path::new(name);
    if !path.exists() {
        let names = built_in_names().collect::<Vec<_>>().join(", ");
        return Err(Error::data(path.display().to_string(), format!("no such file, and no built-in trace ({names})")));
    }
    (format_of(path)?.open)(path)
}

fn format_of(path: &Path) -> Result<&'static TraceFormat> {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or("").to_ascii_lowercase();
    let known = |format: &&TraceFormat| format.extensions.contains(&extension.as_str());
    FORMATS.iter().find(known).ok_or_else(|| {
        let all: Vec<String> =
            FORMATS.iter().flat_map(|format| format.extensions).map(|known| format!(".{known}")).collect();
        let problem = format!("cannot tell the format from the name; expected one of {}", all.join(", "));
        Error::data(path.display().to_string(), problem)
    })
}

fn open_spec(path: &Path) -> Result<Box<dyn Source>> {
    Ok(Box::new(SyntheticTrace::new(MixtureSpec::read(path)?)))
}
