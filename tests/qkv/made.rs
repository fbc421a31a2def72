//! Small traces made here, as files and as the matrices of the reference.

use crate::random::Generator;
use crate::slow::file::{Layer, Matrix};
use half::{bf16, f16};
use serde_json::{Map, Value, json};

/// How numbers are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    F32,
    F16,
    Bf16,
}

impl Stored {
    fn name(self) -> &'static str {
        match self {
            Stored::F32 => "F32",
            Stored::F16 => "F16",
            Stored::Bf16 => "BF16",
        }
    }

    /// The number as it reads back.
    fn rounded(self, number: f32) -> f32 {
        match self {
            Stored::F32 => number,
            Stored::F16 => f16::from_f32(number).to_f32(),
            Stored::Bf16 => bf16::from_f32(number).to_f32(),
        }
    }

    fn bytes(self, number: f32) -> Vec<u8> {
        match self {
            Stored::F32 => number.to_le_bytes().to_vec(),
            Stored::F16 => f16::from_f32(number).to_le_bytes().to_vec(),
            Stored::Bf16 => bf16::from_f32(number).to_le_bytes().to_vec(),
        }
    }
}

/// Shape of a layer: query heads, KV heads, positions, channels of keys and of values.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub heads: usize,
    pub kv_heads: usize,
    pub positions: usize,
    pub width: usize,
    pub value_width: usize,
}

/// Numbers around 0, most below 2 in size.
pub fn numbers(random: &mut Generator, count: usize, stored: Stored) -> Vec<f32> {
    let mut one = || random.below(1 << 16) as f32 / 65536.0 + random.below(1 << 16) as f32 / 65536.0 - 1.0;
    (0..count).map(|_| stored.rounded(2.0 * one())).collect()
}

/// A layer of random numbers, scale one half.
pub fn layer(shape: Shape, seed: u32, stored: Stored) -> Layer {
    let mut random = Generator::seeded(seed);
    let Shape { heads, kv_heads, positions, width, value_width } = shape;
    let mut matrices = |count: usize, width: usize| -> Vec<Matrix> {
        (0..count).map(|_| Matrix::new(width, numbers(&mut random, positions * width, stored))).collect()
    };
    let (queries, keys, values) = (matrices(heads, width), matrices(kv_heads, width), matrices(kv_heads, value_width));
    let plain = Layer::plain(queries, keys[0].clone(), values[0].clone());
    Layer { keys, values, scale: 0.5, ..plain }
}

/// A tensor of a file that is being made.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    pub stored: Stored,
    pub shape: Vec<usize>,
    pub numbers: Vec<f32>,
}

impl Tensor {
    pub fn new(name: &str, stored: Stored, shape: &[usize], numbers: Vec<f32>) -> Tensor {
        Tensor { name: name.to_owned(), stored, shape: shape.to_vec(), numbers }
    }
}

/// A file that is being made.
#[derive(Clone, Debug)]
pub struct File {
    pub metadata: Map<String, Value>,
    pub tensors: Vec<Tensor>,
}

impl File {
    /// One tensor a head, and all that a layer has beside.
    pub fn of(layers: &[Layer], stored: Stored) -> File {
        let mut file = File { metadata: metadata(&layers[0]), tensors: Vec::new() };
        layers.iter().for_each(|layer| file.add(layer, stored));
        file
    }

    fn add(&mut self, layer: &Layer, stored: Stored) {
        let number = layer.number;
        for (word, heads) in [("query", &layer.queries), ("key", &layer.keys), ("value", &layer.values)] {
            for (head, matrix) in heads.iter().enumerate() {
                let shape = [matrix.rows(), matrix.width];
                let name = format!("{word}.{number}.{head}");
                self.tensors.push(Tensor::new(&name, stored, &shape, matrix.numbers.clone()));
            }
        }
        let mut say = |key: &str, value: Option<String>| {
            value.map(|value| self.metadata.insert(format!("{key}.{number}"), json!(value)));
        };
        say("scale", Some(layer.scale.to_string()));
        say("softcap", layer.softcap.map(|cap| cap.to_string()));
        say("sliding_window", layer.window.map(|window| window.to_string()));
        if let Some(sinks) = &layer.sinks {
            let numbers = sinks.iter().map(|sink| *sink as f32).collect();
            self.tensors.push(Tensor::new(&format!("sink.{number}"), Stored::F32, &[sinks.len()], numbers));
        }
        self.add_behind(layer, stored);
    }

    /// What stands behind the heads, and gradients at their outputs.
    fn add_behind(&mut self, layer: &Layer, stored: Stored) {
        let number = layer.number;
        let narrow = |numbers: &[f64]| numbers.iter().map(|number| *number as f32).collect::<Vec<f32>>();
        if let Some(output) = &layer.output {
            let shape = [output.rows(), output.width];
            self.tensors.push(Tensor::new(&format!("output.{number}"), stored, &shape, output.numbers.clone()));
        }
        if let Some(norm) = &layer.output_norm {
            let gain = narrow(&norm.gain);
            self.tensors.push(Tensor::new(&format!("output_norm.{number}"), Stored::F32, &[gain.len()], gain));
            self.say("output_norm_epsilon", &norm.epsilon.to_string());
        }
        if let Some(norms) = &layer.residual_norm {
            let norms = narrow(norms);
            self.tensors.push(Tensor::new(&format!("residual_norm.{number}"), Stored::F32, &[norms.len()], norms));
        }
        for (head, gradient) in layer.gradients.iter().flatten().enumerate() {
            let samples = gradient.rows() / layer.positions();
            let shape = [samples, layer.positions(), gradient.width];
            self.tensors.push(Tensor::new(
                &format!("gradient.{number}.{head}"),
                stored,
                &shape,
                gradient.numbers.clone(),
            ));
            self.say("gradient_samples", &samples.to_string());
        }
    }

    /// The same numbers, all heads of a layer in one tensor, with or without a 1 before.
    pub fn packed(&self, leading_one: bool) -> File {
        let mut packed = File { metadata: self.metadata.clone(), tensors: Vec::new() };
        for tensor in &self.tensors {
            let Some((name, head)) = tensor.name.rsplit_once('.').filter(|(name, _)| name.contains('.')) else {
                packed.tensors.push(tensor.clone());
                continue;
            };
            let at = usize::from(leading_one);
            if head == "0" {
                let shape = [&vec![1; at + 1][..], &tensor.shape].concat();
                packed.tensors.push(Tensor { name: name.to_owned(), shape, ..tensor.clone() });
            } else {
                let all = packed.tensors.last_mut().expect("head 0 comes first");
                all.shape[at] += 1;
                all.numbers.extend(&tensor.numbers);
            }
        }
        packed
    }

    /// The tensor of this name.
    #[track_caller]
    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).expect("the tensor is there")
    }

    /// Adds a tensor of ones.
    pub fn push(&mut self, name: &str, stored: Stored, shape: &[usize]) {
        self.tensors.push(Tensor::new(name, stored, shape, vec![1.0; shape.iter().product()]));
    }

    pub fn say(&mut self, key: &str, value: &str) {
        self.metadata.insert(key.to_owned(), json!(value));
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut header = Map::new();
        if !self.metadata.is_empty() {
            header.insert("__metadata__".to_owned(), Value::Object(self.metadata.clone()));
        }
        let mut data = Vec::new();
        for Tensor { name, stored, shape, numbers } in &self.tensors {
            let start = data.len();
            data.extend(numbers.iter().flat_map(|number| stored.bytes(*number)));
            let entry = json!({ "dtype": stored.name(), "shape": shape, "data_offsets": [start, data.len()] });
            header.insert(name.clone(), entry);
        }
        crate::common::files::safetensors(&Value::Object(header).to_string(), &data)
    }
}

fn metadata(layer: &Layer) -> Map<String, Value> {
    let positions = layer.positions().to_string();
    let said = [("kvsim", "1"), ("kind", "qkv"), ("self", "included"), ("seq_len", &positions)];
    said.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}
