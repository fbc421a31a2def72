//! Traces that can be read once only: standard input, named pipes, and compressed lines. What they are is told by
//! their first bytes; memory does not grow with them, as they go through temporary files.

use super::content::{self, Content};
use super::options::{ReadOption, ReadOptions};
use super::zstd::Frames;
use super::{Source, jsonl, safetensors};
use crate::error::{Error, Result};
use flate2::bufread::MultiGzDecoder;
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

/// Opens a trace that is read to its end at once.
///
/// # Errors
/// When it is not JSON lines or safetensors, or cannot be read.
pub(super) fn open(name: &str, bytes: &mut dyn Read, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let start = content::start(bytes).map_err(|error| Error::io(Path::new(name), error))?;
    let content = content::of(&start);
    let mut all = Cursor::new(start).chain(bytes);
    match content {
        Content::Gzip => open_inflated(name, MultiGzDecoder::new(BufReader::new(all)), options),
        Content::Zstd => open_inflated(name, Frames::new(BufReader::new(all)), options),
        _ => open_plain(name, content, &mut all, options),
    }
}

/// Opens compressed JSON lines, or safetensors, which are inflated on the way.
fn open_inflated(name: &str, bytes: impl Read, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let mut bytes = Inflated(bytes);
    let start = content::start(&mut bytes).map_err(|error| Error::io(Path::new(name), error))?;
    let content = content::of(&start);
    open_plain(name, content, &mut Cursor::new(start).chain(bytes), options)
}

fn open_plain(name: &str, content: Content, bytes: &mut dyn Read, options: &ReadOptions) -> Result<Box<dyn Source>> {
    match content {
        Content::Safetensors => safetensors::open_stream(name, bytes, options),
        Content::Json | Content::Unknown => {
            options.allow_only(ReadOption::LINES, "a trace of JSON lines")?;
            jsonl::open_stream(name, bytes, options)
        }
        Content::Other(what) => Err(Error::data(name, what)),
        Content::Npy | Content::Zip | Content::Gzip | Content::Zstd => Err(Error::data(name, cannot_seek(content))),
    }
}

/// What is said of a format that cannot be read from its start to its end.
pub(super) fn cannot_seek(content: Content) -> String {
    let (what, extension) = content.name().unwrap_or(("this", ""));
    format!("{what} cannot be read from a pipe or compressed: write it to a {extension} file first")
}

/// Inflated bytes; what a decoder says of them is said to be damage.
struct Inflated<R>(R);

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        use ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        self.0.read(buffer).map_err(|error| match error.kind() {
            InvalidData | InvalidInput | Other | UnexpectedEof => {
                std::io::Error::new(InvalidData, format!("damaged or cut short where it is compressed: {error}"))
            }
            _ => error,
        })
    }
}
