//! Folders that vanish with the test, and safetensors files made by hand.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that is removed when the test is done with it.
pub struct Folder(TempDir);

impl Folder {
    /// An empty folder.
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder for the test"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A place in the folder, as text.
    pub fn at(&self, name: &str) -> String {
        self.path().join(name).to_str().expect("temporary folders have plain names").to_owned()
    }

    /// Writes a file and returns its place.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path().join(name), content).expect("the test writes its files");
        self.at(name)
    }

    /// Reads a file back.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("the file is there")
    }

    /// Names of all files, hidden ones too, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the folder is there");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// The bytes of a safetensors file: the length of the header, the header as it is given, the data.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

/// The entry of one tensor in a header.
pub fn tensor(dtype: &str, weights: usize, offsets: [usize; 2]) -> Value {
    json!({ "dtype": dtype, "shape": [weights], "data_offsets": offsets })
}

/// A header of these tensors, with the metadata of a trace whose rows include the token itself.
pub fn header(tensors: &[(&str, Value)]) -> String {
    let mut header = json!({ "__metadata__": { "kvsim": "1", "self": "included" } });
    tensors.iter().for_each(|(name, tensor)| header[name] = tensor.clone());
    header.to_string()
}

/// A sound trace of one stream, stored as f32, rows back to back.
pub fn trace_of(weights: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let entry = tensor("F32", weights.len(), [0, bytes.len()]);
    safetensors(&header(&[("attention.2.5", entry)]), &bytes)
}

/// Rows as JSON lines of one stream; `None` is null.
pub fn json_lines(first_step: usize, rows: &[Option<Vec<f32>>]) -> String {
    let line =
        |(index, row): (usize, &Option<Vec<f32>>)| format!("{}\n", json!({"step": first_step + index, "attn": row}));
    rows.iter().enumerate().map(line).collect()
}

/// Every place that holds this folder's package file.
pub fn package(name: &str) -> PathBuf {
    Path::new(super::binary::PACKAGE).join(name)
}
