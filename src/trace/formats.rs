//! The table of trace formats, and the one function that opens a trace by path or name.

use super::content::{self, Content};
use super::opened::OpenedTrace;
use super::options::{ReadOption, ReadOptions};
use super::spec::{MixtureSpec, built_in_names};
use super::synthetic::SyntheticTrace;
use super::{Source, join, jsonl, npy, npz, pickle, qkv, safetensors, storage, stream_input};
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

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
        summary: "one JSON object per row, also as .jsonl.gz and .jsonl.zst; `-` reads standard input",
        options: ReadOption::LINES,
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
    OpenedTrace::open(open_as_is(name, options)?, options)
}

fn open_as_is(name: &OsStr, options: &ReadOptions) -> Result<Box<dyn Source>> {
    if !options.joined.is_empty() {
        return open_joined(name, options);
    }
    if name == "-" {
        return stream_input::open("-", &mut std::io::stdin().lock(), options);
    }
    if let Some(spec) = name.to_str().and_then(MixtureSpec::built_in) {
        options.allow_only(ReadOption::COMMON, "a built-in trace")?;
        return Ok(Box::new(SyntheticTrace::new(spec)));
    }
    open_path(Path::new(name), options)
}

/// Opens several files as one trace.
fn open_joined(first: &OsStr, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let paths: Vec<PathBuf> = std::iter::once(PathBuf::from(first)).chain(options.joined.iter().cloned()).collect();
    join::open_files(format!("{} and {} more", paths[0].display(), options.joined.len()), &paths, options)
}

fn open_path(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let Ok(metadata) = std::fs::metadata(path) else {
        let names = built_in_names().collect::<Vec<_>>().join(", ");
        return Err(Error::data(path.display().to_string(), format!("no such file, and no built-in trace ({names})")));
    };
    match metadata.file_type() {
        kind if kind.is_dir() && qkv::is_folder(path) => qkv::open_folder(path, options),
        kind if kind.is_dir() => join::open_folder(path, options),
        kind if kind.is_file() => open_file(path, options),
        _ => open_pipe(path, options),
    }
}

/// Opens what can be read once only.
fn open_pipe(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let content = match extension_of(path).as_str() {
        "npy" => Some(Content::Npy),
        "npz" => Some(Content::Zip),
        _ => None,
    };
    let name = path.display().to_string();
    match content {
        Some(content) => Err(Error::data(name, stream_input::cannot_seek(content))),
        None => stream_input::open(&name, &mut storage::open_file(path)?, options),
    }
}

/// Opens a regular file by its name, once its first bytes do not say that it is something else.
fn open_file(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let extension = extension_of(path);
    if pickle::EXTENSIONS.contains(&extension.as_str()) {
        return pickle::refuse(path);
    }
    if join::is_index(path) {
        return join::open_index(path, options);
    }
    if COMPRESSED.contains(&extension.as_str()) {
        return open_compressed(path, options);
    }
    let start = content::start(&mut storage::open_file(path)?).map_err(|error| Error::io(path, error))?;
    let content = content::of(&start);
    let format = match named_format(&extension) {
        Some(format) => format,
        None => by_content(content).filter(|_| is_nameless(path)).ok_or_else(|| unknown_format(path, content))?,
    };
    refuse_content(path, format, content)?;
    options.allow_only(format.options, &format!("a {} trace", format.name))?;
    (format.open)(path, options)
}

/// File name extensions of compressed files.
const COMPRESSED: &[&str] = &["gz", "zst"];

/// Opens compressed lines; of other formats says that they must be inflated first.
fn open_compressed(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let name = path.display().to_string();
    let inner = extension_of(Path::new(path.file_stem().unwrap_or_default()));
    match inner.as_str() {
        "jsonl" | "ndjson" => {
            let mut file = storage::open_file(path)?;
            let start = content::start(&mut file).map_err(|error| Error::io(path, error))?;
            match content::of(&start) {
                Content::Gzip | Content::Zstd => stream_input::open(&name, &mut storage::open_file(path)?, options),
                Content::Other(what) => Err(Error::data(name, what)),
                _ => Err(Error::data(name, "not compressed, as its name says: rename it, or compress it")),
            }
        }
        _ => Err(Error::data(name, "compressed: .jsonl.gz and .jsonl.zst are read, inflate any other format first")),
    }
}

/// Whether a path stands for what is open already, such as /dev/stdin: it has no name to tell a format.
fn is_nameless(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

fn named_format(extension: &str) -> Option<&'static TraceFormat> {
    FORMATS.iter().find(|format| format.extensions.contains(&extension))
}

fn by_content(content: Content) -> Option<&'static TraceFormat> {
    let name = match content {
        Content::Json => "jsonl",
        Content::Safetensors => "safetensors",
        Content::Npy => "npy",
        Content::Zip => "npz",
        _ => return None,
    };
    FORMATS.iter().find(|format| format.name == name)
}

/// Refuses a file that is not what its name says, as far as its first bytes tell.
fn refuse_content(path: &Path, format: &TraceFormat, content: Content) -> Result<()> {
    let name = path.display().to_string();
    let problem = match (content, format.name) {
        (Content::Other(what), _) => what.to_owned(),
        (Content::Unknown, _) | (Content::Json, "jsonl" | "spec") => return Ok(()),
        (Content::Zip, "npz") => return npz::check_whole(path),
        (Content::Zip, _) if pickle::is_torch_archive(path) => pickle::torch_file(&name),
        (_, known) if by_content(content).is_some_and(|format| format.name == known) => return Ok(()),
        _ => {
            let (what, extension) = content.name().unwrap_or(("something else", ""));
            format!("{what}, not {} as its name says: let its name end in {extension}", format.name)
        }
    };
    Err(Error::data(name, problem))
}

fn unknown_format(path: &Path, content: Content) -> Error {
    let all: Vec<String> =
        FORMATS.iter().flat_map(|format| format.extensions).map(|known| format!(".{known}")).collect();
    let problem = match content {
        Content::Other(what) => what.to_owned(),
        _ => format!("cannot tell the format from the name; expected one of {}", all.join(", ")),
    };
    Error::data(path.display().to_string(), problem)
}

fn extension_of(path: &Path) -> String {
    path.extension().and_then(OsStr::to_str).unwrap_or("").to_ascii_lowercase()
}

fn open_spec(path: &Path, _options: &ReadOptions) -> Result<Box<dyn Source>> {
    Ok(Box::new(SyntheticTrace::new(MixtureSpec::read(path)?)))
}
