//! Writes small files byte by byte, as the libraries of the field write them.

use half::{bf16, f16};
use std::io::{Cursor, Write};
use std::path::PathBuf;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A folder that goes away with the test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(TempDir::new().expect("a temporary folder"))
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("in the folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("written");
        path
    }
}

/// The bytes of cells, by the type that npy calls so; `bf16` is not one of them.
pub fn cells(dtype: &str, weights: &[f32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = match dtype.trim_start_matches(['<', '>']) {
        "f2" => weights.iter().flat_map(|weight| f16::from_f32(*weight).to_le_bytes()).collect(),
        "f4" => weights.iter().flat_map(|weight| weight.to_le_bytes()).collect(),
        "f8" => weights.iter().flat_map(|weight| f64::from(*weight).to_le_bytes()).collect(),
        "bf16" => weights.iter().flat_map(|weight| bf16::from_f32(*weight).to_le_bytes()).collect(),
        other => panic!("no type {other}"),
    };
    if dtype.starts_with('>') {
        let size = bytes.len() / weights.len();
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    bytes
}

/// An npy file around bytes.
pub fn npy_of(descr: &str, fortran: bool, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({sizes}), }}");
    let padding = 63 - (10 + header.len()) % 64;
    header.push_str(&" ".repeat(padding));
    header.push('\n');
    let len = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", len.as_slice(), header.as_bytes(), bytes].concat()
}

/// An npy file in C order.
pub fn npy(descr: &str, shape: &[usize], weights: &[f32]) -> Vec<u8> {
    npy_of(descr, false, shape, &cells(descr, weights))
}

/// An npy file in Fortran order, of weights given in C order.
pub fn npy_fortran(descr: &str, shape: &[usize], weights: &[f32]) -> Vec<u8> {
    let reordered: Vec<f32> = (0..weights.len()).map(|at| weights[in_c_order(at, shape)]).collect();
    npy_of(descr, true, shape, &cells(descr, &reordered))
}

/// Where the cell that is at `at` in Fortran order is in C order.
fn in_c_order(at: usize, shape: &[usize]) -> usize {
    let mut rest = at;
    let indices: Vec<usize> = shape
        .iter()
        .map(|size| {
            let index = rest % size;
            rest /= size;
            index
        })
        .collect();
    shape.iter().zip(indices).fold(0, |sum, (size, index)| sum * size + index)
}

/// An npz file of members, each with its name and bytes.
pub fn npz(members: &[(&str, Vec<u8>)], compressed: bool) -> Vec<u8> {
    let method = if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default().compression_method(method);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, options).expect("started");
        zip.write_all(bytes).expect("written");
    }
    zip.finish().expect("finished").into_inner()
}

/// A tensor: name, type, shape and weights.
pub type Tensor<'a> = (&'a str, &'a str, &'a [usize], &'a [f32]);

/// A safetensors file; types are named as it names them.
pub fn safetensors(metadata: &[(&str, &str)], tensors: &[Tensor<'_>]) -> Vec<u8> {
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    let pairs: Vec<String> = metadata.iter().map(|(key, value)| format!("{key:?}:{value:?}")).collect();
    entries.push(format!("\"__metadata__\":{{{}}}", pairs.join(",")));
    for (name, dtype, shape, weights) in tensors {
        let start = data.len();
        data.extend(cells(npy_type(dtype), weights));
        let end = data.len();
        entries
            .push(format!("{name:?}:{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}"));
    }
    let header = format!("{{{}}}", entries.join(","));
    [(header.len() as u64).to_le_bytes().as_slice(), header.as_bytes(), &data].concat()
}

fn npy_type(dtype: &str) -> &'static str {
    match dtype {
        "F16" => "<f2",
        "BF16" => "bf16",
        "F32" | "I32" => "<f4",
        _ => "<f8",
    }
}
