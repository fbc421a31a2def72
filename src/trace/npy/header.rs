//! The header of an npy file: what the array is and where its bytes start. Reads no weights.

use super::literal::{Literal, parse};
use crate::trace::limits::MOST_DIMENSIONS;
use crate::trace::pickle;
use crate::trace::square::{CellType, Cells};
use std::io::Read;

/// An npy header.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::trace) struct Header {
    pub shape: Vec<usize>,
    pub descr: String,
    pub fortran: bool,
    /// Bytes before the array.
    pub len: u64,
}

/// No sane header is longer; numpy itself stops at 10,000 characters.
const MAX_HEADER: usize = 1 << 20;
const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a header from the start of a file or an archive's member.
///
/// # Errors
/// One line that says what is wrong, without the place.
pub(in crate::trace) fn read(bytes: &mut dyn Read) -> Result<Header, String> {
    let mut start = [0; 8];
    fill(bytes, &mut start)?;
    if !start.starts_with(MAGIC) {
        return Err("not an npy array: it does not start with \"\\x93NUMPY\"".to_owned());
    }
    let (len, prefix) = text_len(bytes, start[6])?;
    if len > MAX_HEADER {
        return Err(format!("the header claims {len} bytes, more than {MAX_HEADER}: not a sound npy array"));
    }
    let mut text = vec![0; len];
    fill(bytes, &mut text)?;
    let text = std::str::from_utf8(&text).map_err(|_| "the header is no text: not a sound npy array".to_owned())?;
    let header = parse(text).and_then(understand).ok_or_else(|| unsound(text))?;
    Ok(Header { len: (prefix + len) as u64, ..header })
}

fn text_len(bytes: &mut dyn Read, version: u8) -> Result<(usize, usize), String> {
    match version {
        1 => {
            let mut len = [0; 2];
            fill(bytes, &mut len)?;
            Ok((u16::from_le_bytes(len) as usize, 10))
        }
        2 | 3 => {
            let mut len = [0; 4];
            fill(bytes, &mut len)?;
            Ok((u32::from_le_bytes(len) as usize, 12))
        }
        other => Err(format!("npy format version {other}, this version reads 1, 2 and 3")),
    }
}

fn fill(bytes: &mut dyn Read, buffer: &mut [u8]) -> Result<(), String> {
    bytes.read_exact(buffer).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "truncated within the npy header".to_owned(),
        _ => error.to_string(),
    })
}

fn unsound(text: &str) -> String {
    let shown: String = text.trim_end().chars().take(80).collect();
    format!("not a sound npy header: {shown:?} (expected 'descr', 'fortran_order' and 'shape')")
}

fn understand(literal: Literal) -> Option<Header> {
    let Literal::Pairs(pairs) = literal else { return None };
    if pairs.len() != 3 {
        return None;
    }
    let value = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let descr = match value("descr")? {
        Literal::Text(text) => text.clone(),
        Literal::Sequence(_) => "a structure".to_owned(),
        _ => return None,
    };
    let Literal::Flag(fortran) = *value("fortran_order")? else { return None };
    let Literal::Sequence(shape) = value("shape")? else { return None };
    let size = |literal: &Literal| if let Literal::Number(size) = literal { Some(*size) } else { None };
    if shape.len() > MOST_DIMENSIONS {
        return None;
    }
    Some(Header { shape: shape.iter().map(size).collect::<Option<_>>()?, descr, fortran, len: 0 })
}

impl Header {
    /// Whether the array holds pickled objects, which are never read.
    pub(in crate::trace) fn is_pickled(&self) -> bool {
        self.descr.trim_start_matches(['|', '<', '>', '=']).starts_with('O')
    }

    /// Whether the array can only be a companion of the attention: token numbers, a mask, a text.
    pub(in crate::trace) fn is_no_attention(&self) -> bool {
        let kind = self.descr.trim_start_matches(['|', '<', '>', '=']).chars().next();
        self.shape.len() < 2 && !self.is_pickled() || kind.is_some_and(|kind| "iubUSMm".contains(kind))
    }

    /// How a weight is stored; `file` and `member` are named in the remedy.
    ///
    /// # Errors
    /// One line that says why this is no weight, and what to do.
    pub(in crate::trace) fn cells(&self, file: &str, member: Option<&str>) -> Result<Cells, String> {
        let (order, kind) = self.descr.split_at_checked(1).unwrap_or(("", ""));
        let cell = match kind {
            _ if self.is_pickled() => return Err(pickle::object_array(file, member)),
            "f2" => CellType::F16,
            "f4" => CellType::F32,
            "f8" => CellType::F64,
            "V2" => {
                return Err(
                    self.dtype_problem("what numpy makes of bfloat16: save .astype(np.float32), or safetensors")
                );
            }
            _ => return Err(self.dtype_problem("must be float16, float32 or float64: save .astype(np.float32)")),
        };
        match order {
            "<" | "=" => Ok(Cells { cell, big_endian: false }),
            ">" => Ok(Cells { cell, big_endian: true }),
            _ => Err(self.dtype_problem("does not say its byte order: save .astype(np.float32)")),
        }
    }

    fn dtype_problem(&self, problem: &str) -> String {
        format!("dtype {:?}, {problem}", self.descr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u8, text: &str) -> Vec<u8> {
        let mut bytes = [MAGIC, &[version, 0]].concat();
        match version {
            1 => bytes.extend((text.len() as u16).to_le_bytes()),
            _ => bytes.extend((text.len() as u32).to_le_bytes()),
        }
        bytes.extend(text.bytes());
        bytes
    }

    fn described(descr: &str) -> Header {
        Header { shape: vec![2, 2], descr: descr.to_owned(), fortran: false, len: 0 }
    }

    #[test]
    fn every_version_is_read() {
        let text = "{'shape': (2, 2), 'fortran_order': True, 'descr': '>f8'}";
        for (version, prefix) in [(1, 10), (2, 12), (3, 12)] {
            let found = read(&mut header(version, text).as_slice()).expect("sound");
            let len = (prefix + text.len()) as u64;
            assert_eq!(found, Header { shape: vec![2, 2], descr: ">f8".to_owned(), fortran: true, len });
        }
    }

    #[test]
    fn an_unsound_header_is_refused_in_one_line() {
        let sound = header(1, "{'shape': (2, 2), 'fortran_order': True, 'descr': '>f8'}");
        let huge = [MAGIC, &[2, 0], &u32::MAX.to_le_bytes()].concat();
        let cases = [
            (b"PK\x03\x04    ".to_vec(), "not an npy array"),
            (sound[..30].to_vec(), "truncated"),
            (sound[..9].to_vec(), "truncated"),
            (huge, "claims 4294967295 bytes"),
            (header(4, "{}"), "version 4"),
            (header(1, "{'shape': (2, 2), 'descr': '<f4'}"), "not a sound npy header"),
            (header(1, "{'shape': (-2, 2), 'fortran_order': True, 'descr': '<f4'}"), "not a sound npy header"),
            (header(1, "__import__('os')"), "not a sound npy header"),
        ];
        for (bytes, expected) in cases {
            let problem = read(&mut bytes.as_slice()).expect_err("unsound");
            assert!(problem.contains(expected) && !problem.contains('\n'), "{problem}");
        }
    }

    #[test]
    fn floats_of_either_byte_order_are_weights() {
        let cells = |descr| described(descr).cells("x.npy", None).expect("weights");
        assert_eq!(cells("<f2"), Cells { cell: CellType::F16, big_endian: false });
        assert_eq!(cells(">f4"), Cells { cell: CellType::F32, big_endian: true });
        assert_eq!(cells("=f8"), Cells { cell: CellType::F64, big_endian: false });
    }

    #[test]
    fn what_is_no_weight_is_refused_with_a_remedy() {
        for (descr, expected) in [
            ("|V2", "bfloat16"),
            ("<V2", "bfloat16"),
            ("|u1", "must be float16"),
            ("<i8", "must be float16"),
            ("<c8", "must be float16"),
            ("|f4", "byte order"),
            ("", "must be float16"),
            ("a structure", "must be float16"),
            ("|O", "np.load(\"x.npy\", allow_pickle=True)"),
        ] {
            let problem = described(descr).cells("x.npy", None).expect_err("no weight");
            assert!(problem.contains(expected), "{descr}: {problem}");
        }
    }
}
