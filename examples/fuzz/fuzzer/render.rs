//! Inputs in parts that can be damaged on their own, and the bytes that they make.

use serde_json::Value;
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The parts of an input.
#[derive(Clone)]
pub enum Content {
    /// Lines of text: JSON lines, CSV.
    Lines(Vec<String>),
    /// One JSON document.
    Json(Value),
    /// A safetensors file.
    Safetensors(Safetensors),
    /// An npy file.
    Npy(Npy),
    /// An npz file.
    Npz(Vec<Member>),
}

/// Header and data of a safetensors file.
#[derive(Clone)]
pub struct Safetensors {
    /// The header.
    pub header: Value,
    /// What follows it.
    pub data: Vec<u8>,
    /// Bytes of one number, so that damage hits numbers.
    pub width: usize,
}

/// Header and data of an npy file.
#[derive(Clone)]
pub struct Npy {
    /// Major version of the format.
    pub version: u8,
    /// The dictionary.
    pub header: String,
    /// What follows it.
    pub data: Vec<u8>,
    /// Bytes of one number.
    pub width: usize,
}

/// A member of an npz file.
#[derive(Clone)]
pub struct Member {
    /// Its name, with the extension.
    pub name: String,
    /// What it holds.
    pub array: Npy,
    /// Whether it is compressed.
    pub deflated: bool,
}

impl Content {
    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Content::Lines(lines) => lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect(),
            Content::Json(value) => value.to_string().into_bytes(),
            Content::Safetensors(file) => file.bytes(),
            Content::Npy(array) => array.bytes(),
            Content::Npz(members) => zip(members),
        }
    }
}

impl Safetensors {
    fn bytes(&self) -> Vec<u8> {
        let header = self.header.to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &self.data].concat()
    }
}

impl Npy {
    /// An array in C order.
    pub fn new(descr: &str, shape: &[usize], data: Vec<u8>) -> Npy {
        let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
        let width = descr[2..].parse().expect("types end in their size");
        Npy { version: 1, header, data, width }
    }

    fn bytes(&self) -> Vec<u8> {
        let header = format!("{}\n", self.header);
        let len = header.len() as u32;
        let len = if self.version == 1 { (len as u16).to_le_bytes().to_vec() } else { len.to_le_bytes().to_vec() };
        [b"\x93NUMPY", &[self.version, 0][..], &len, header.as_bytes(), &self.data].concat()
    }
}

/// An archive; of two members with the same name the first stays, since the writer refuses the other.
fn zip(members: &[Member]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for Member { name, array, deflated } in members {
        let method = if *deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        if zip.start_file(name, SimpleFileOptions::default().compression_method(method)).is_ok() {
            zip.write_all(&array.bytes()).expect("memory takes everything");
        }
    }
    zip.finish().expect("memory takes everything").into_inner()
}
