//! Small sound inputs of every format.

use super::render::{Content, Member, Npy, Safetensors};
use half::{bf16, f16};
use serde_json::{Map, Value, json};

/// What an input is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A trace, by any of the formats.
    Trace,
    /// A result file of `replay`.
    Results,
    /// A file of recorded decisions.
    Vectors,
    /// The config.json of a model.
    ModelConfig,
    /// A table of budgets by layer.
    LayerBudgets,
}

/// An input, and how it is read.
pub struct Sample {
    /// What it is.
    pub kind: Kind,
    /// The name decides the format.
    pub file_name: &'static str,
    /// What it holds.
    pub content: Content,
}

/// Positions of the sample traces.
const POSITIONS: usize = 6;

/// All of them.
pub fn samples() -> Vec<Sample> {
    let trace = |file_name, content| Sample { kind: Kind::Trace, file_name, content };
    let other = |kind, file_name, content| Sample { kind, file_name, content };
    let mut samples = vec![
        trace("a.safetensors", native("F32", &["0.0", "0.1"], &[("kv_heads", "1"), ("query_heads", "2")])),
        trace("a.safetensors", native("F16", &["0.mean", "3.mean"], &[("num_layers", "4"), ("prompt_len", "3")])),
        trace("a.safetensors", native("BF16", &["1.0"], &[("sliding_window.1", "3"), ("seq_len", "6")])),
        trace("a.safetensors", native_from(3)),
        trace("a.safetensors", square_tensors()),
        trace("a.npy", Content::Npy(square("<f4", &[1, 2, POSITIONS, POSITIONS]))),
        trace("a.npy", Content::Npy(square(">f8", &[POSITIONS, POSITIONS]))),
        trace("a.npy", Content::Npy(decode_rows())),
        trace("a.npz", members(false)),
        trace("a.npz", members(true)),
        trace("a.jsonl", lines(true)),
        trace("a.jsonl", lines(false)),
        trace("a.json", Content::Json(spec())),
        trace("a.json", Content::Json(banded_spec())),
        other(Kind::Results, "a.csv", results()),
        other(Kind::ModelConfig, "config.json", Content::Json(model_config())),
        other(Kind::LayerBudgets, "a.json", Content::Json(json!({"0": 5, "1": 3.5, "7": 1}))),
    ];
    let vectors = VECTORS.iter().map(|text| serde_json::from_str(text).expect("vector files are sound"));
    samples.extend(vectors.map(|value: Value| other(Kind::Vectors, "v.json", Content::Json(first_cases(value)))));
    samples
}

const VECTORS: [&str; 6] = [
    include_str!("../../../vectors/h2o.json"),
    include_str!("../../../vectors/scissorhands.json"),
    include_str!("../../../vectors/tova.json"),
    include_str!("../../../vectors/snapkv.json"),
    include_str!("../../../vectors/random.json"),
    include_str!("../../../vectors/streaming-llm.json"),
];

/// Few cases make a small input.
fn first_cases(mut file: Value) -> Value {
    file["cases"].as_array_mut().expect("vector files have cases").truncate(2);
    file
}

/// Attention of a row over `len` positions: different in every row and stream, summing to about one.
fn row(seed: usize, len: usize) -> Vec<f32> {
    let raw: Vec<f32> = (0..len).map(|at| ((at * 7 + len * 5 + seed * 3) % 11 + 1) as f32).collect();
    let total: f32 = raw.iter().sum();
    raw.iter().map(|weight| weight / total).collect()
}

fn packed(dtype: &str, weights: &[f32]) -> (Vec<u8>, usize) {
    match dtype {
        "F16" | "<f2" => (weights.iter().flat_map(|weight| f16::from_f32(*weight).to_le_bytes()).collect(), 2),
        "BF16" => (weights.iter().flat_map(|weight| bf16::from_f32(*weight).to_le_bytes()).collect(), 2),
        ">f8" => (weights.iter().flat_map(|weight| f64::from(*weight).to_be_bytes()).collect(), 8),
        _ => (weights.iter().flat_map(|weight| weight.to_le_bytes()).collect(), 4),
    }
}

/// A native trace of these streams, self included.
fn native(dtype: &str, streams: &[&str], metadata: &[(&str, &str)]) -> Content {
    let rows = |seed| (1..=POSITIONS).flat_map(move |len| row(seed, len)).collect();
    native_of(dtype, streams, metadata, &rows)
}

/// A native trace whose rows begin in the middle of the sequence.
fn native_from(first: usize) -> Content {
    let rows = |seed| (first + 1..=first + POSITIONS).flat_map(move |len| row(seed, len)).collect();
    native_of("F32", &["0.0", "0.1"], &[("first_position", &first.to_string())], &rows)
}

fn native_of(dtype: &str, streams: &[&str], metadata: &[(&str, &str)], rows: &dyn Fn(usize) -> Vec<f32>) -> Content {
    let mut said = Map::from_iter([("kvsim".to_owned(), json!("1")), ("self".to_owned(), json!("included"))]);
    said.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    let mut file = Safetensors { header: json!({"__metadata__": said}), data: Vec::new(), width: 4 };
    for (seed, stream) in streams.iter().enumerate() {
        let weights = rows(seed);
        file.append(&format!("attention.{stream}"), dtype, &[weights.len()], &weights);
    }
    Content::Safetensors(file)
}

impl Safetensors {
    fn append(&mut self, name: &str, dtype: &str, shape: &[usize], weights: &[f32]) {
        let (bytes, width) = packed(dtype, weights);
        let start = self.data.len();
        self.data.extend(bytes);
        self.header[name] = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, self.data.len()]});
        self.width = width;
    }
}

/// Square attention of some heads, zero above the diagonal.
fn square_weights(heads: usize) -> Vec<f32> {
    let padded = |seed, len: usize| [row(seed, len), vec![0.0; POSITIONS - len]].concat();
    (0..heads).flat_map(|seed| (1..=POSITIONS).flat_map(move |len| padded(seed, len))).collect()
}

fn square(descr: &str, shape: &[usize]) -> Npy {
    let heads = shape.iter().product::<usize>() / (POSITIONS * POSITIONS);
    Npy::new(descr, shape, packed(descr, &square_weights(heads)).0)
}

/// Decode steps: one row each of two heads, over columns that begin before the first row.
fn decode_rows() -> Npy {
    let padded = |seed, len: usize| [row(seed, len), vec![0.0; POSITIONS - len]].concat();
    let rows = (3..=POSITIONS).flat_map(|len| (0..2).flat_map(move |seed| padded(seed, len)));
    Npy::new("<f4", &[POSITIONS - 2, 2, 1, POSITIONS], packed("<f4", &rows.collect::<Vec<f32>>()).0)
}

fn square_tensors() -> Content {
    let metadata = json!({"self": "included", "sliding_window.1": "5", "column_offset.0": "0"});
    let mut file = Safetensors { header: json!({"__metadata__": metadata}), data: Vec::new(), width: 4 };
    for layer in 0..2 {
        file.append(&format!("layer.{layer}"), "F32", &[2, POSITIONS, POSITIONS], &square_weights(2));
    }
    Content::Safetensors(file)
}

fn members(deflated: bool) -> Content {
    let member = |layer| {
        let array = square("<f2", &[2, POSITIONS, POSITIONS]);
        Member { name: format!("layer_{layer}.npy"), array, deflated }
    };
    Content::Npz((0..2).map(member).collect())
}

/// Two streams that interleave, with a header or without.
fn lines(header: bool) -> Content {
    let first = if header { vec![json!({"kvsim": 1, "self": "excluded", "seq_len": POSITIONS})] } else { Vec::new() };
    let line = |head: usize, step: usize| {
        let attn = if step == 3 { Value::Null } else { json!(row(head, step)) };
        json!({"layer": 0, "head": head, "step": step, "attn": attn})
    };
    let rows = (1..POSITIONS).flat_map(|step| (0..2).map(move |head| line(head, step)));
    Content::Lines(first.into_iter().chain(rows).map(|line| line.to_string()).collect())
}

fn spec() -> Value {
    let text = include_str!("../../../traces/control-2048.json");
    let mut spec: Value = serde_json::from_str(text).expect("built-in specs are sound");
    spec["positions"] = json!(POSITIONS * 2);
    spec
}

fn banded_spec() -> Value {
    json!({"kvsim_spec": 1, "name": "small", "positions": 14, "seed": 3,
        "sinks": {"mass": 0.2, "weights": [3.0, 1.0]}, "local": {"mass": 0.5, "width": 3},
        "heavy_hitters": {"mass": 0.2, "count": 2, "from": 8, "redraw_every": 4}, "noise": {"mass": 0.1, "spread": 0.0}})
}

/// What says how large a model's caches are.
fn model_config() -> Value {
    json!({"model_type": "gemma3_text", "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
        "head_dim": 16, "hidden_size": 128, "sliding_window": 512, "sliding_window_pattern": 2,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})
}

/// What `replay` writes, cut down to a few columns and lines.
fn results() -> Content {
    let text = "trace,layer,head,policy,budget,recent_window,heavy_hitters,view,steps,rows,retained_mass,heavy_recall\n\
        a.npy,0,all,h2o,4,1,32,raw,5,10,0.75,0.5\n\
        a.npy,0,all,h2o,8,1,32,raw,5,10,0.875,1\n\
        a.npy,0,all,tova,4,,32,raw,5,10,0.8125,0.75\n\
        a.npy,0,all,tova,8,,32,raw,5,10,1,1";
    Content::Lines(text.lines().map(str::to_owned).collect())
}
