//! One trace of several files: a file for each layer or for each step, a folder of them, or the shards that an
//! index lists. Decides which files belong together and checks that they do; their formats read them.

use super::content::{self, Content};
use super::options::ReadOptions;
use super::safetensors::Contents;
use super::square::{Dump, open as open_square};
use super::storage::{SharedFile, open_file};
use super::{Source, joined, npy, npz, safetensors};
use crate::error::{Error, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The name of an index of shards ends so.
const INDEX: &str = ".index.json";
/// The most files that make up one trace.
const MAX_FILES: usize = 1 << 16;
/// The longest index that is read.
const MAX_INDEX: u64 = 1 << 28;

/// Whether a file lists shards.
pub(super) fn is_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(INDEX))
}

/// Opens the files of a folder as one trace.
///
/// # Errors
/// When it holds no dumps, or they do not make up one trace.
pub(super) fn open_folder(folder: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let name = folder.display().to_string();
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = paths.map_err(|error| Error::io(folder, error))?;
    paths.sort();
    let index: Vec<PathBuf> = paths.iter().filter(|path| is_index(path)).cloned().collect();
    if let [index] = &index[..] {
        return open_index(index, options);
    }
    let files: Vec<PathBuf> = paths.iter().filter(|path| is_dump(path)).cloned().collect();
    match files.len() {
        0 => Err(Error::data(name, nothing_in(&paths))),
        _ => open_files(name, &files, options),
    }
}

fn is_dump(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !hidden && !path.is_dir() && matches!(extension(path).as_str(), "npy" | "npz" | "safetensors")
}

fn extension(path: &Path) -> String {
    path.extension().and_then(OsStr::to_str).unwrap_or("").to_ascii_lowercase()
}

fn nothing_in(paths: &[PathBuf]) -> String {
    let of_head = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kv_head_"));
    if paths.iter().any(of_head) {
        return "a folder of one layer's heads: name the folder that holds the layers".to_owned();
    }
    "a folder without .npy, .npz or .safetensors files: name the folder that holds the dump".to_owned()
}

/// Opens the shards that an index lists as one trace.
///
/// # Errors
/// When the index is not sound, or the shards do not make up one trace.
pub(super) fn open_index(index: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let name = index.display().to_string();
    let len = std::fs::metadata(index).map_err(|error| Error::io(index, error))?.len();
    if len > MAX_INDEX {
        return Err(Error::data(name, format!("an index of {len} bytes, more than the {MAX_INDEX} that are read")));
    }
    let text = std::fs::read(index).map_err(|error| Error::io(index, error))?;
    let unsound =
        || Error::data(&name, "not a sound index of shards: expected \"weight_map\" with a file for each array");
    let value: Value = serde_json::from_slice(&text).map_err(|_| unsound())?;
    let files = value.get("weight_map").and_then(Value::as_object).ok_or_else(unsound)?.values();
    let files: BTreeSet<&str> = files.map(Value::as_str).collect::<Option<_>>().ok_or_else(unsound)?;
    let folder = index.parent().unwrap_or(Path::new(""));
    let mut paths = Vec::new();
    for file in files {
        if Path::new(file).file_name() != Some(OsStr::new(file)) {
            return Err(Error::data(&name, format!("shard {file:?} is not a file beside the index")));
        }
        paths.push(folder.join(file));
    }
    open_files(name, &paths, options)
}

/// Opens files as one trace.
///
/// # Errors
/// When one of them cannot be read, or they do not make up one trace.
pub(super) fn open_files(name: String, paths: &[PathBuf], options: &ReadOptions) -> Result<Box<dyn Source>> {
    if paths.is_empty() || paths.len() > MAX_FILES {
        return Err(Error::data(name, format!("{} files are not one trace", paths.len())));
    }
    let (mut native, mut dumps) = (Vec::new(), Vec::new());
    for path in paths {
        match open_part(path, options)? {
            Contents::Native(source) => native.push(source),
            Contents::Arrays(dump) => dumps.push(dump),
        }
    }
    match (native.is_empty(), dumps.is_empty()) {
        (true, false) => open_square(joined_dump(name, paths, dumps)?, options),
        (false, true) => joined::open(name, native, options),
        _ => Err(Error::data(name, "native traces and square arrays side by side: join files of one kind")),
    }
}

fn open_part(path: &Path, options: &ReadOptions) -> Result<Contents> {
    let name = path.display().to_string();
    let start = content::start(&mut open_file(path)?).map_err(|error| Error::io(path, error))?;
    match content::of(&start) {
        Content::Npy => npy::dump(path).map(Contents::Arrays),
        Content::Zip => npz::dump(path, options).map(Contents::Arrays),
        Content::Safetensors => safetensors::contents(name, SharedFile::open(path)?, options),
        Content::Other(what) => Err(Error::data(name, what)),
        _ => Err(Error::data(name, "not a file that can be joined: .npy, .npz and .safetensors files can")),
    }
}

/// The arrays of several files; a name says the file, where names alone would not be unique.
fn joined_dump(name: String, paths: &[PathBuf], dumps: Vec<Dump>) -> Result<Dump> {
    let mut joined = Dump { file: name, format: "files", ..Dump::default() };
    let names: Vec<&str> = dumps.iter().flat_map(|dump| &dump.arrays).map(|array| array.name.as_str()).collect();
    let unique = names.iter().collect::<BTreeSet<_>>().len() == names.len() && !names.contains(&"");
    for (path, dump) in paths.iter().zip(dumps) {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let alone = dump.arrays.len() == 1;
        for mut array in dump.arrays {
            array.name = match array.name {
                name if unique => name,
                name if name.is_empty() || alone && name.starts_with("arr_") => stem.clone(),
                name => format!("{stem}/{name}"),
            };
            joined.arrays.push(array);
        }
        joined.content.extend(dump.content);
        joined.left_out.extend(dump.left_out);
        joined::add_metadata(&joined.file, &mut joined.metadata, dump.metadata)?;
    }
    Ok(joined)
}
