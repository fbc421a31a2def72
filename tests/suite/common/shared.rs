//! The larger recorded traces, which not every machine has.

use std::io::Write;
use std::path::PathBuf;

/// Names the folder that holds them under traces/.
pub const VARIABLE: &str = "KVSIM_SHARED";

/// A shared trace; `None`, with a word about it, where the variable names no folder.
#[track_caller]
pub fn trace(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        // Written past the macros, whose words the test harness keeps to itself when a test passes.
        let _ = writeln!(std::io::stderr(), "skipped: {VARIABLE} does not name the folder that holds traces/{name}");
        return None;
    };
    let path = PathBuf::from(folder).join("traces").join(name);
    assert!(path.exists(), "{VARIABLE} is set, but {} is not there", path.display());
    Some(path)
}
