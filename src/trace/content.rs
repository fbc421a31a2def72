//! What the first bytes of a file say it is, whatever its name says. Reads no traces.

use std::io::Read;

/// What a file holds, as its first bytes tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Text whose first letter opens an object.
    Json,
    Safetensors,
    Npy,
    /// A zip archive: npz, or what torch saves.
    Zip,
    Gzip,
    Zstd,
    /// Something that is never a trace: what it is, and what to do.
    Other(&'static str),
    /// Nothing is known of it.
    Unknown,
}

/// Bytes that are enough to tell.
pub(super) const ENOUGH: usize = 64;

/// Files that begin in a way of their own, and are never a trace.
const OTHERS: &[(&[u8], &str)] = &[
    (
        b"version https://git-lfs",
        "a Git LFS pointer, which stands for a file that was not fetched: fetch it with git lfs pull",
    ),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
    (
        b"\x80\x02",
        "pickled Python objects, which can run code when they are read: save arrays with numpy or safetensors",
    ),
    (
        b"\x80\x03",
        "pickled Python objects, which can run code when they are read: save arrays with numpy or safetensors",
    ),
    (
        b"\x80\x04",
        "pickled Python objects, which can run code when they are read: save arrays with numpy or safetensors",
    ),
    (
        b"\x80\x05",
        "pickled Python objects, which can run code when they are read: save arrays with numpy or safetensors",
    ),
    (b"\x89HDF\r\n", "an HDF5 file: save its arrays with numpy.savez or safetensors"),
    (b"GGUF", "a GGUF file, which holds a model and not its attention: traces/README.md says how to record some"),
    (b"PAR1", "a Parquet file: save its arrays with numpy.savez or safetensors"),
    (b"ARROW1", "an Arrow file: save its arrays with numpy.savez or safetensors"),
    (b"BZh", "compressed by bzip2: decompress it first"),
    (b"\xfd7zXZ", "compressed by xz: decompress it first"),
    (b"%PDF", "a PDF file"),
];

/// Tells what begins with these bytes.
pub(super) fn of(start: &[u8]) -> Content {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Content::Other(what);
    }
    match start {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Content::Npy,
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Content::Zip,
        [0x1f, 0x8b, ..] => Content::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Content::Zstd,
        [_, _, _, _, _, _, 0, 0, b'{', ..] => Content::Safetensors,
        _ if text.first() == Some(&b'{') => match utf_16(text) {
            true => Content::Other("UTF-16 text: save it as UTF-8"),
            false => Content::Json,
        },
        _ if text.first() == Some(&b'<') => {
            Content::Other("a web page, perhaps in place of a file that needs a login: download it again")
        }
        _ => Content::Unknown,
    }
}

/// Whether every other byte is zero, as in UTF-16 text of plain letters.
fn utf_16(text: &[u8]) -> bool {
    text.len() > 3 && text[1] == 0 && text[3] == 0
}

/// Reads the first bytes: fewer than [`ENOUGH`] only where there are no more.
pub(super) fn start(bytes: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    bytes.take(ENOUGH as u64).read_to_end(&mut start)?;
    Ok(start)
}

impl Content {
    /// What it is called in a message, and the extension that names it.
    pub(super) fn name(self) -> Option<(&'static str, &'static str)> {
        match self {
            Content::Json => Some(("JSON text", ".jsonl")),
            Content::Safetensors => Some(("a safetensors file", ".safetensors")),
            Content::Npy => Some(("an npy array", ".npy")),
            Content::Zip => Some(("a zip archive", ".npz")),
            Content::Gzip => Some(("compressed by gzip", ".jsonl.gz")),
            Content::Zstd => Some(("compressed by zstd", ".jsonl.zst")),
            Content::Other(_) | Content::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_a_file_is() {
        let cases: &[(&[u8], Content)] = &[
            (b"{\"kvsim\":1}", Content::Json),
            (b"\xef\xbb\xbf{\"kvsim\":1}", Content::Json),
            (b" \r\n{", Content::Json),
            (b"\x90\x00\x00\x00\x00\x00\x00\x00{\"a\"", Content::Safetensors),
            (b"\x93NUMPY\x01\x00", Content::Npy),
            (b"PK\x03\x04", Content::Zip),
            (b"PK\x05\x06", Content::Zip),
            (b"\x1f\x8b\x08", Content::Gzip),
            (b"\x28\xb5\x2f\xfd", Content::Zstd),
            (b"", Content::Unknown),
            (b"what", Content::Unknown),
        ];
        for (start, expected) in cases {
            assert_eq!(of(start), *expected, "{start:?}");
        }
    }

    #[test]
    fn what_is_never_a_trace_is_named() {
        let cases: &[(&[u8], &str)] = &[
            (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
            (b"\xff\xfe{\x00", "UTF-16"),
            (b"{\x00\"\x00k\x00", "UTF-16"),
            (b"\x80\x04\x95", "pickled"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"GGUF\x03\x00", "record"),
            (b"<!DOCTYPE html>", "web page"),
        ];
        for (start, expected) in cases {
            assert!(matches!(of(start), Content::Other(what) if what.contains(expected)), "{start:?}");
        }
    }
}
