//! Files that are being written beside the place they are for, and what becomes of them when the command is
//! interrupted.
//!
//! SIGINT, SIGTERM and SIGHUP remove them and then do what they always do. After SIGKILL one stays behind; the
//! next command that writes to the same folder removes it: as long as somebody writes a file, it is locked.

use std::fs::{DirEntry, File, Permissions, TryLockError};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::{Builder, NamedTempFile};

/// How their names begin.
const PREFIX: &str = ".kvsim-";

/// The unfinished files of a command.
#[derive(Clone, Default)]
pub struct Unfinished {
    paths: Arc<Mutex<Vec<PathBuf>>>,
}

impl Unfinished {
    /// A new file in a folder, with no more permissions than these, after what is left of killed commands
    /// there has gone.
    ///
    /// # Errors
    /// When the folder does not let a file be made, or the system hands out no signal handler.
    pub fn create_in(&self, folder: &Path, permissions: Option<&Permissions>) -> Result<NamedTempFile> {
        remove_leftovers(folder);
        let mut builder = Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(permissions.cloned().unwrap_or(Permissions::from_mode(0o666)));
        }
        // Held while the file is made: a signal that is being handled waits for it, or lets no more be made.
        let mut paths = lock(&self.paths);
        if paths.is_empty() {
            self.remove_on_signals()?;
        }
        loop {
            let file = builder.tempfile_in(folder)?;
            // Between the making and the locking another command may have taken it for a leftover.
            if is_locked_by_us(file.as_file()) && file.path().exists() {
                paths.push(file.path().to_owned());
                return Ok(file);
            }
        }
    }

    #[cfg(unix)]
    fn remove_on_signals(&self) -> Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let ignored = ignored_signals();
        let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        let mut signals = signal_hook::iterator::Signals::new(heeded)?;
        let paths = Arc::clone(&self.paths);
        std::thread::Builder::new().spawn(move || {
            for signal in signals.forever() {
                let paths = lock(&paths);
                paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        })?;
        Ok(())
    }

    #[cfg(not(unix))]
    fn remove_on_signals(&self) -> Result<()> {
        Ok(())
    }
}

fn lock(paths: &Mutex<Vec<PathBuf>>) -> MutexGuard<'_, Vec<PathBuf>> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals that whoever started the command wants ignored (nohup, a job in the background), a bit for each;
/// none where the system does not say.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

/// Where the file system knows no locks, nothing is ever taken for a leftover.
fn is_locked_by_us(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Removes the files of commands that were killed; what cannot be looked at stays.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_leftover(&entry) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_leftover(entry: &DirEntry) -> bool {
    let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
    let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
    is_ours && is_file() && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn leftovers_go_and_files_that_are_being_written_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(".kvsim-left"), "half a rep").expect("written");
        std::fs::write(folder.path().join("kvsim-mine"), "whole").expect("written");
        let (mine, others) = (Unfinished::default(), Unfinished::default());
        let first = mine.create_in(folder.path(), None).expect("made");
        let second = others.create_in(folder.path(), None).expect("made");
        let mut found = names(folder.path());
        found.sort();
        let name = |file: &NamedTempFile| file.path().file_name().expect("a name").to_string_lossy().into_owned();
        let mut wanted = vec![name(&first), name(&second), "kvsim-mine".to_owned()];
        wanted.sort();
        assert_eq!(found, wanted);
    }
}
