//! One query head with its keys: noise around a few directions, so that rows have peaks as attention has.

use crate::common::traces::Folder;
use half::f16;
use kvsim::trace::Source;
use kvsim::trace::formats::open;
use kvsim::trace::options::ReadOptions;
use kvsim::trace::rng::Xoshiro128;
use serde_json::{Map, Value, json};

/// Directions that queries and keys share.
const DIRECTIONS: usize = 16;

/// Queries and keys of one head.
pub struct Head {
    pub rows: usize,
    pub width: usize,
    /// `[rows, width]` each.
    pub queries: Vec<f16>,
    pub keys: Vec<f16>,
}

impl Head {
    pub fn new(rows: usize, width: usize) -> Head {
        let mut random = Xoshiro128::new(1);
        let directions: Vec<f32> = (0..DIRECTIONS * width).map(|_| around_zero(&mut random)).collect();
        let mut matrix =
            || -> Vec<f16> { (0..rows).flat_map(|_| near_one_of(&mut random, &directions, width)).collect() };
        Head { rows, width, queries: matrix(), keys: matrix() }
    }

    /// As a trace; its values are its keys.
    pub fn open(&self, folder: &Folder) -> Box<dyn Source> {
        let path = folder.at("head.safetensors");
        std::fs::write(&path, self.bytes()).expect("the folder can be written to");
        open(path.as_os_str(), &ReadOptions::default()).expect("the bench wrote the file")
    }

    fn bytes(&self) -> Vec<u8> {
        let said = json!({ "kvsim": "1", "kind": "qkv", "self": "included", "seq_len": self.rows.to_string() });
        let mut header = Map::from_iter([("__metadata__".to_owned(), said)]);
        let mut data = Vec::new();
        for (name, numbers) in [("query.0.0", &self.queries), ("key.0.0", &self.keys), ("value.0.0", &self.keys)] {
            let start = data.len();
            data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            let entry =
                json!({ "dtype": "F16", "shape": [self.rows, self.width], "data_offsets": [start, data.len()] });
            header.insert(name.to_owned(), entry);
        }
        let header = Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
    }
}

/// About normal: the sum of four even ones.
fn around_zero(random: &mut Xoshiro128) -> f32 {
    (0..4).map(|_| random.below(1 << 16) as f32 / 32768.0 - 1.0).sum::<f32>()
}

fn near_one_of(random: &mut Xoshiro128, directions: &[f32], width: usize) -> Vec<f16> {
    let start = random.below(DIRECTIONS as u32) as usize * width;
    let direction = &directions[start..start + width];
    direction.iter().map(|number| f16::from_f32(0.7 * number + around_zero(random))).collect()
}
