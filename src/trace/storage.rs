//! Where the bytes of a trace are: its file, a temporary copy, or memory.
//!
//! A file is opened once, however many streams are read side by side: each reads at a place of its own, so
//! that no number of streams or threads runs out of handles.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Bytes that can be read from any place, any number of times side by side.
#[derive(Clone)]
pub(super) enum Storage {
    /// The user's file, or a copy that goes away with the trace.
    File(SharedFile),
    /// A copy in memory.
    Memory(SharedBytes),
}

/// A file that several readers share.
#[derive(Clone)]
pub(super) struct SharedFile(Arc<File>);

/// Bytes in memory that several readers share.
#[derive(Clone)]
pub(super) struct SharedBytes(Arc<Vec<u8>>);

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes(Arc::new(bytes))
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<File> for SharedFile {
    fn from(file: File) -> SharedFile {
        SharedFile(Arc::new(file))
    }
}

impl SharedFile {
    /// Opens a file of the user's.
    pub(super) fn open(path: &Path) -> Result<SharedFile> {
        open_file(path).map(SharedFile::from)
    }

    /// Reads some bytes from a place on; 0 is the end.
    pub(super) fn read_at(&self, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(&*self.0, buffer, at);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(&*self.0, buffer, at);
    }

    /// Bytes in the file.
    pub(super) fn len(&self) -> std::io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// A reader of its own, at a place in the file.
    pub(super) fn reader(&self, at: u64) -> FileReader {
        FileReader { file: self.clone(), at }
    }
}

/// One reader of a file that others read too.
pub(super) struct FileReader {
    file: SharedFile,
    at: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.len()?.checked_add_signed(by),
        };
        self.at = at.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Bytes that can be read from any place.
pub(super) trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

impl Storage {
    /// A reader at the start of the bytes.
    pub(super) fn open(&self) -> Box<dyn Bytes> {
        match self {
            Storage::File(file) => Box::new(file.reader(0)),
            Storage::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
        }
    }
}

/// Opens a file of the user's.
pub(super) fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::io(path, error))
}

/// An empty copy without a name, in the folder for temporary files: it is gone once it is closed.
pub(super) fn new_copy() -> Result<File> {
    tempfile::tempfile().map_err(|error| Error::io(&std::env::temp_dir(), error))
}

/// What is said where a copy cannot be written, most often for lack of room.
pub(super) fn copy_failed(error: &std::io::Error) -> std::io::Error {
    let folder = std::env::temp_dir();
    let text = format!(
        "the temporary copy in {:?} cannot be written: {error} (TMPDIR names another folder)",
        folder.display()
    );
    std::io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn readers_of_one_file_do_not_move_each_other() {
        let mut copy = new_copy().expect("a temporary file");
        copy.write_all(b"abcdef").expect("written");
        let file = SharedFile::from(copy);
        let (mut first, mut second) = (file.reader(0), file.reader(3));
        let (mut some, mut others) = ([0; 2], [0; 2]);
        first.read_exact(&mut some).expect("read");
        second.read_exact(&mut others).expect("read");
        assert_eq!((&some, &others), (b"ab", b"de"));
        first.read_exact(&mut some).expect("read");
        assert_eq!((&some, file.len().expect("a file")), (b"cd", 6));
        assert_eq!(second.read(&mut others).expect("read"), 1, "the end is the file's");
    }
}
