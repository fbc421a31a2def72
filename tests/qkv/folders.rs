//! Folders of one file for each KV head.

use crate::common::files::Folder;
use crate::common::lanes::{open, read_rows};
use crate::made::{File, Shape, Stored, Tensor, layer};
use crate::slow::file::Layer;
use kvsim::trace::formats;
use kvsim::trace::options::ReadOptions;
use serde_json::Map;

const SHAPE: Shape = Shape { heads: 6, kv_heads: 2, positions: 9, width: 4, value_width: 4 };

/// Writes a layer as a folder of a sample.
fn write(folder: &Folder, layer: &Layer) {
    let number = layer.number;
    for cache in 0..layer.keys.len() {
        let place = format!("layer_{number:06}/kv_head_{cache:03}");
        std::fs::create_dir_all(folder.path().join(&place)).expect("the test writes its files");
        let queries: Vec<f32> = layer.readers(cache).flat_map(|head| layer.queries[head].numbers.clone()).collect();
        let tensors = vec![
            Tensor::new("k", Stored::Bf16, &[9, 4], layer.keys[cache].numbers.clone()),
            Tensor::new("q_group", Stored::Bf16, &[3, 9, 4], queries),
            Tensor::new("v", Stored::Bf16, &[9, 4], layer.values[cache].numbers.clone()),
        ];
        let file = File { metadata: Map::new(), tensors };
        folder.write(&format!("{place}/attention_tensors.safetensors"), file.bytes());
    }
}

fn sample() -> (Folder, Vec<Layer>) {
    let folder = Folder::new();
    let layers = [0, 3].map(|number| Layer { number, ..layer(SHAPE, 1 + number, Stored::Bf16) });
    layers.iter().for_each(|layer| write(&folder, layer));
    (folder, layers.to_vec())
}

#[test]
fn a_sample_is_the_same_rows_as_a_file() {
    let (folder, layers) = sample();
    let prompt = r#"{"tensor": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}"#;
    folder.write("prompt_ntokens.safetensors", crate::common::files::safetensors(prompt, &5_i64.to_le_bytes()));
    let mut file = File::of(&layers, Stored::Bf16);
    ["scale.0", "scale.3"].iter().for_each(|key| drop(file.metadata.remove(*key)));
    let elsewhere = Folder::new();
    let (sample, file) = (open(folder.path()), open(elsewhere.write("made.safetensors", file.bytes())));
    assert_eq!(sample.info().streams.len(), 12);
    for stream in 0..12 {
        assert_eq!(sample.info().streams[stream].label, file.info().streams[stream].label);
        assert!(read_rows(&*sample, stream) == read_rows(&*file, stream));
    }
    assert_eq!(sample.info().metadata["prompt_len"], "5");
    assert!(sample.info().notes[0].contains("1 / sqrt(4) = 0.5"), "{:?}", sample.info().notes);
}

#[track_caller]
fn refused(folder: &Folder, parts: &[&str]) {
    let error = formats::open(folder.path().as_ref(), &ReadOptions::default()).err().expect("refused").to_string();
    parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is missing: {error}"));
}

#[test]
fn other_folders_are_refused_with_what_they_lack() {
    let (folder, _) = sample();
    std::fs::rename(folder.path().join("layer_000003/kv_head_000"), folder.path().join("layer_000003/kv_head_002"))
        .expect("the test moves its files");
    refused(&folder, &["layer_000003", "there is no kv_head_000"]);
    let (folder, _) = sample();
    folder.write(
        "layer_000000/kv_head_001/attention_tensors.safetensors",
        File { metadata: Map::new(), tensors: vec![] }.bytes(),
    );
    refused(&folder, &["kv_head_001", "tensor \"q_group\"", "it is not there"]);
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("sample_0000007")).expect("the test writes its files");
    refused(&folder, &["a folder of samples", "sample_0000007"]);
}
