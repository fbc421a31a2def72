//! The table of trace formats, and the one function that opens a trace by path or name.

use super::opened::OpenedTrace;
use super::options::{ReadOption, ReadOptions};
use super::spec::{MixtureSpec, built_in_names};
use super::synthetic::SyntheticTrace;
use super::{Source, jsonl, npy, npz, pickle, qkv, safetensors};
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
    /// The options that it can honour.
    pub options: &'static [ReadOption],
    /// Opens a file of this format.
    pub open: fn(&Path, &ReadOptions) -> Result<Box<dyn Source>>,
}

/// Every trace format. A new one is its own file and a line here.
pub const FORMATS: &[TraceFormat] = &[
    TraceFormat {
        name: "safetensors",
        extensions: &["safetensors"],
        summary: "packed rows, one tensor attention.{layer}.{head} per stream (the native format); queries, keys and \
                  values, from which rows are rebuilt; or square arrays",
        options: ReadOption::ALL,
        open: safetensors::open,
    },
    TraceFormat {
        name: "npy",
        extensions: &["npy"],
        summary: "a square array, [rows, columns] to [layers, 1, heads, rows, columns], or [steps, heads, 1, columns]",
        options: ReadOption::ALL,
        open: npy::open,
    },
    TraceFormat {
        name: "npz",
        extensions: &["npz"],
        summary: "square arrays, one for each layer with its number in the name, or one for all",
        options: ReadOption::ALL,
        open: npz::open,
    },
    TraceFormat {
        name: "kvp",
        extensions: &[],
        summary: "a folder of queries, keys and values, layer_N/kv_head_N/attention_tensors.safetensors",
        options: ReadOption::COMMON,
        open: qkv::open_folder,
    },
    TraceFormat {
        name: "jsonl",
        extensions: &["jsonl", "ndjson"],
        summary: "one JSON object per row; `-` reads it from standard input",
        options: ReadOption::COMMON,
        open: jsonl::open,
    },
    TraceFormat {
        name: "spec",
        extensions: &["json"],
        summary: "a synthetic mixture, generated as it is replayed",
        options: ReadOption::COMMON,
        open: open_spec,
    },
];

/// Opens a trace: a built-in name, `-` for JSON lines on standard input, or a file.
///
/// # Errors
/// When there is no such trace, or what is there is not a trace.
pub fn open(name: &OsStr, options: &ReadOptions) -> Result<Box<dyn Source>> {
    OpenedTrace::new(open_as_is(name, options)?, options)
}

fn open_as_is(name: &OsStr, options: &ReadOptions) -> Result<Box<dyn Source>> {
    if name == "-" {
        options.allow_only(ReadOption::COMMON, "standard input")?;
        return jsonl::read_stdin();
    }
    if let Some(spec) = name.to_str().and_then(MixtureSpec::built_in) {
        options.allow_only(ReadOption::COMMON, "a built-in trace")?;
        return Ok(Box::new(SyntheticTrace::new(spec)));
    }
    open_file(Path::new(name), options)
}

fn open_file(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    if !path.exists() {
        let names = built_in_names().collect::<Vec<_>>().join(", ");
        return Err(Error::data(path.display().to_string(), format!("no such file, and no built-in trace ({names})")));
    }
    let extension = extension_of(path);
    if pickle::EXTENSIONS.contains(&extension.as_str()) {
        return pickle::refuse(path);
    }
    let format = format_of(path, &extension)?;
    options.allow_only(format.options, &format!("a {} trace", format.name))?;
    (format.open)(path, options)
}

fn extension_of(path: &Path) -> String {
    path.extension().and_then(OsStr::to_str).unwrap_or("").to_ascii_lowercase()
}

fn format_of(path: &Path, extension: &str) -> Result<&'static TraceFormat> {
    // The one format that is a folder has no extension.
    let known = |format: &&TraceFormat| match path.is_dir() {
        true => format.extensions.is_empty(),
        false => format.extensions.contains(&extension),
    };
    FORMATS.iter().find(known).ok_or_else(|| {
        let all: Vec<String> =
            FORMATS.iter().flat_map(|format| format.extensions).map(|known| format!(".{known}")).collect();
        let problem = format!("cannot tell the format from the name; expected one of {}", all.join(", "));
        Error::data(path.display().to_string(), problem)
    })
}

fn open_spec(path: &Path, _options: &ReadOptions) -> Result<Box<dyn Source>> {
    Ok(Box::new(SyntheticTrace::new(MixtureSpec::read(path)?)))
}
