//! What is said to files of pickled Python objects. They are programs, so kvsim never opens them.

use crate::error::{Error, Result};
use crate::trace::Source;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// File name extensions of pickled objects.
pub(super) const EXTENSIONS: &[&str] = &["pt", "pth", "bin", "pkl", "pickle"];

/// Refuses a file of pickled objects and says how to convert it.
///
/// # Errors
/// Always.
pub(super) fn refuse(path: &Path) -> Result<Box<dyn Source>> {
    let name = path.display().to_string();
    Err(Error::data(&name, torch_file(&name)))
}

/// Whether a zip archive is what torch saves: a pickle and the storages it names.
pub(super) fn is_torch_archive(path: &Path) -> bool {
    let open = || File::open(path).map(BufReader::new).ok();
    match open().and_then(|file| ZipArchive::new(file).ok()) {
        Some(archive) => archive.file_names_raw().any(|name| name.ends_with(b".pkl")),
        // A broken one still begins with the name of its first member.
        None => open().is_some_and(|file| {
            let mut start = Vec::new();
            file.take(256).read_to_end(&mut start).is_ok() && start.windows(4).any(|four| four == b".pkl")
        }),
    }
}

/// The refusal of a file that torch saved.
pub(super) fn torch_file(name: &str) -> String {
    let to = with_extension(name, "safetensors");
    format!(
        "holds pickled objects, which can run code when they are read; convert it where you trust it:\n\
         import torch, safetensors.torch\n\
         saved = torch.load({name:?}, map_location=\"cpu\", weights_only=True)\n\
         safetensors.torch.save_file({{\"attention\": saved.contiguous()}} if torch.is_tensor(saved) else \
         {{f\"layer.{{i}}\": layer.contiguous() for i, layer in enumerate(saved)}}, {to:?})"
    )
}

/// The refusal of an array of objects that numpy saved.
pub(super) fn object_array(name: &str, member: Option<&str>) -> String {
    let member = member.map_or_else(String::new, |member| format!("[{member:?}]"));
    let to = with_extension(name, "npz");
    format!(
        "an array of pickled objects, which can run code when they are read; convert it where you trust it:\n\
         import numpy as np\n\
         layers = np.load({name:?}, allow_pickle=True){member}\n\
         np.savez({to:?}, *[np.asarray(layer, dtype=np.float32) for layer in layers])"
    )
}

/// The name of the converted file, which must not be that of the file itself.
fn with_extension(name: &str, extension: &str) -> String {
    let path = Path::new(name);
    let to = path.with_extension(extension);
    if to == path { path.with_extension(format!("converted.{extension}")) } else { to }.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_with_three_lines_of_python() {
        for problem in [torch_file("a/b.pt"), object_array("a/b.npy", None)] {
            let lines: Vec<&str> = problem.lines().collect();
            assert_eq!(lines.len(), 4);
            assert!(lines[1].starts_with("import "));
            assert!(lines[2].contains("\"a/b."));
            assert!(lines[3].contains("\"a/b.safetensors\"") || lines[3].contains("\"a/b.npz\""));
        }
    }

    #[test]
    fn the_converted_file_has_another_name() {
        let problem = object_array("b.npz", Some("arr_0"));
        assert!(problem.contains("np.load(\"b.npz\", allow_pickle=True)[\"arr_0\"]"), "{problem}");
        assert!(problem.contains("\"b.converted.npz\""), "{problem}");
    }
}
