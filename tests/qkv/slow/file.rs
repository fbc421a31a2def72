//! A trace as plain matrices.

use half::{bf16, f16};
use serde_json::{Map, Value};
use std::path::Path;

/// Numbers as stored, widened to f32, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub width: usize,
    pub numbers: Vec<f32>,
}

impl Matrix {
    pub fn new(width: usize, numbers: Vec<f32>) -> Matrix {
        assert_eq!(numbers.len() % width, 0, "whole rows");
        Matrix { width, numbers }
    }

    pub fn rows(&self) -> usize {
        self.numbers.len() / self.width
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.width..(row + 1) * self.width]
    }
}

/// A norm between the output projection and the stream.
#[derive(Clone, Debug)]
pub struct OutputNorm {
    pub gain: Vec<f64>,
    pub epsilon: f64,
}

/// One layer: H query heads, G KV heads, T positions.
#[derive(Clone, Debug)]
pub struct Layer {
    pub number: u32,
    /// `[T, d]` for each query head.
    pub queries: Vec<Matrix>,
    /// `[T, d]` for each KV head.
    pub keys: Vec<Matrix>,
    /// `[T, dv]` for each KV head.
    pub values: Vec<Matrix>,
    pub scale: f64,
    pub softcap: Option<f64>,
    pub window: Option<usize>,
    /// A learned sink's logit for each query head.
    pub sinks: Option<Vec<f64>>,
    /// `[d_model, H * dv]`.
    pub output: Option<Matrix>,
    pub output_norm: Option<OutputNorm>,
    pub residual_norm: Option<Vec<f64>>,
    /// `[S * T, dv]` for each query head, as stored.
    pub gradients: Option<Vec<Matrix>>,
}

impl Layer {
    /// A layer of one query head, scale 1 and nothing else.
    pub fn plain(queries: Vec<Matrix>, keys: Matrix, values: Matrix) -> Layer {
        Layer {
            number: 0,
            queries,
            keys: vec![keys],
            values: vec![values],
            scale: 1.0,
            softcap: None,
            window: None,
            sinks: None,
            output: None,
            output_norm: None,
            residual_norm: None,
            gradients: None,
        }
    }

    pub fn positions(&self) -> usize {
        self.queries[0].rows()
    }

    pub fn heads(&self) -> usize {
        self.queries.len()
    }

    /// Query heads that read one KV head.
    pub fn heads_of_a_cache(&self) -> usize {
        self.queries.len() / self.keys.len()
    }

    /// The query heads that read KV head `cache`.
    pub fn readers(&self, cache: usize) -> std::ops::Range<usize> {
        let share = self.heads_of_a_cache();
        cache * share..(cache + 1) * share
    }
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct Trace {
    pub layers: Vec<Layer>,
    pub gradient_samples: usize,
    pub gradient_scale: f64,
}

/// Reads a sound file of the native layout, one tensor a head.
pub fn read(path: &Path) -> Trace {
    let file = File::read(path);
    let mut numbers: Vec<u32> = file.names().filter_map(|name| layer_of(name, "query.")).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Trace {
        layers: numbers.into_iter().map(|number| file.layer(number)).collect(),
        gradient_samples: file.number("gradient_samples").map_or(0, |samples| samples as usize),
        gradient_scale: file.number("gradient_scale").unwrap_or(1.0),
    }
}

fn layer_of(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.split_once('.')?.0.parse().ok()
}

struct File {
    header: Map<String, Value>,
    data: Vec<u8>,
}

impl File {
    fn read(path: &Path) -> File {
        let bytes = std::fs::read(path).expect("the file can be read");
        let len = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + len]).expect("a sound header");
        File { header, data: bytes[8 + len..].to_vec() }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.header.keys().map(String::as_str)
    }

    fn number(&self, key: &str) -> Option<f64> {
        Some(self.header["__metadata__"].get(key)?.as_str()?.parse().expect("a number"))
    }

    /// The layer's own value, or that of all layers.
    fn of_layer(&self, key: &str, layer: u32) -> Option<f64> {
        self.number(&format!("{key}.{layer}")).or_else(|| self.number(key))
    }

    fn matrix(&self, name: &str) -> Option<Matrix> {
        let tensor = self.header.get(name)?;
        let counts = |key: &str| -> Vec<usize> {
            let list = tensor[key].as_array().expect("a list").iter();
            list.map(|count| count.as_u64().expect("a count") as usize).collect()
        };
        let [from, to] = counts("data_offsets")[..] else { panic!("two offsets") };
        let bytes = &self.data[from..to];
        let numbers = match tensor["dtype"].as_str() {
            Some("F32") => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
            Some("F16") => bytes.as_chunks::<2>().0.iter().map(|two| f16::from_le_bytes(*two).to_f32()).collect(),
            Some("BF16") => bytes.as_chunks::<2>().0.iter().map(|two| bf16::from_le_bytes(*two).to_f32()).collect(),
            other => panic!("dtype {other:?}"),
        };
        Some(Matrix::new(*counts("shape").last().expect("a shape"), numbers))
    }

    fn list(&self, name: &str) -> Option<Vec<f64>> {
        Some(self.matrix(name)?.numbers.into_iter().map(f64::from).collect())
    }

    fn heads(&self, what: &str, layer: u32) -> Vec<Matrix> {
        (0..).map_while(|head| self.matrix(&format!("{what}.{layer}.{head}"))).collect()
    }

    fn layer(&self, number: u32) -> Layer {
        let queries = self.heads("query", number);
        let width = queries[0].width as f64;
        let gain = self.list(&format!("output_norm.{number}"));
        let gradients = self.heads("gradient", number);
        Layer {
            number,
            scale: self.of_layer("scale", number).unwrap_or(1.0 / width.sqrt()),
            softcap: self.of_layer("softcap", number),
            window: self.number(&format!("sliding_window.{number}")).map(|window| window as usize),
            keys: self.heads("key", number),
            values: self.heads("value", number),
            sinks: self.list(&format!("sink.{number}")),
            output: self.matrix(&format!("output.{number}")),
            output_norm: gain
                .map(|gain| OutputNorm { gain, epsilon: self.number("output_norm_epsilon").expect("an epsilon") }),
            residual_norm: self.list(&format!("residual_norm.{number}")),
            gradients: (!gradients.is_empty()).then_some(gradients),
            queries,
        }
    }
}
