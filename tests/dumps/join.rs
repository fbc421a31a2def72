//! Several files that are one trace: a folder, files named together, shards of an index.

use crate::attention::{assert_same, failure, included, open, square, triangle};
use crate::binary::kvsim;
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::options::ReadOptions;
use kvsim::trace::safetensors::{StoredType, write};
use std::path::PathBuf;

const T: usize = 6;

fn expected() -> MemoryTrace {
    included(&[(0, 0, triangle(0, T)), (1, 0, triangle(1, T)), (10, 0, triangle(2, T))])
}

fn array(seed: u32) -> Vec<u8> {
    npy("<f4", &[1, T, T], &square(seed, T))
}

fn native(layer: u32, seed: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&included(&[(layer, 0, triangle(seed, T))]), StoredType::F32, &mut bytes, &|_| {}).expect("written");
    bytes
}

#[test]
fn a_folder_of_a_file_for_each_layer_is_one_trace() {
    let weights: Vec<Vec<f32>> = (0..3).map(|seed| square(seed, T)).collect();
    let archive = |seed| npz(&[("arr_0.npy", array(seed))], true);
    let tensors = |seed: usize| safetensors(&[], &[("attention", "F32", &[T, T], &weights[seed])]);
    let kinds: [(&str, [Vec<u8>; 3]); 4] = [
        ("npy", [array(0), array(1), array(2)]),
        ("npz", [archive(0), archive(1), archive(2)]),
        ("safetensors", [tensors(0), tensors(1), tensors(2)]),
        ("safetensors", [native(0, 0), native(1, 1), native(10, 2)]),
    ];
    for (extension, files) in kinds {
        let folder = Folder::new();
        for (layer, bytes) in [0, 1, 10].into_iter().zip(files) {
            folder.write(&format!("layer_{layer}.{extension}"), &bytes);
        }
        folder.write("README.txt", b"what this is");
        folder.write("._layer_0.npy", b"junk");
        assert_same(&*open(&folder.path()), &expected());
    }
}

#[test]
fn a_folder_of_a_file_for_each_step_is_one_trace() {
    let folder = Folder::new();
    let rows = triangle(3, T);
    for (step, row) in rows.iter().enumerate().skip(3) {
        folder.write(&format!("step_{}.npy", step - 2), &npy("<f4", &[1, 1, step + 1], row));
    }
    folder.write("step_0.npy", &npy("<f4", &[1, 3, 3], &square_of(&rows[..3])));
    let source = open(&folder.path());
    assert_same(&*source, &included(&[(0, 0, rows)]));
    assert_eq!(source.info().metadata["prompt_len"], "3");
}

fn square_of(rows: &[Vec<f32>]) -> Vec<f32> {
    crate::attention::padded(rows, rows.len()).concat()
}

#[test]
fn files_named_together_are_one_trace_on_request() {
    let folder = Folder::new();
    let paths: Vec<PathBuf> =
        [0, 1, 10].iter().zip(0..).map(|(layer, seed)| folder.write(&format!("l{layer}.npy"), &array(seed))).collect();
    let joined = ReadOptions { joined: paths[1..].to_vec(), ..Default::default() };
    assert_same(&*crate::attention::open_with(&paths[0], &joined), &expected());
    let texts: Vec<&str> = paths.iter().map(|path| path.to_str().expect("plain")).collect();
    let lines =
        |args: &[&str]| kvsim(&[&["replay", "-q", "--policy", "tova", "--budget", "3"], &texts[..], args].concat());
    assert_eq!(lines(&["--join"]).report().lines().count(), 2);
    assert_eq!(lines(&[]).report().lines().count(), 4);
    for command in ["inspect", "analyze"] {
        kvsim(&[&[command], &texts[..]].concat()).refuses(2, &["several files are one trace only with --join"]);
        let joined = kvsim(&[&[command, "-q", "--join"], &texts[..]].concat());
        assert!(
            joined.code == 0 && joined.stdout.contains("3 streams"),
            "{command}: {}{}",
            joined.stdout,
            joined.stderr
        );
    }
}

#[test]
fn the_shards_of_an_index_are_one_trace() {
    let folder = Folder::new();
    let weights: Vec<Vec<f32>> = (0..3).map(|seed| square(seed, T)).collect();
    let tensor = |name, seed: usize| (name, "F32", &[T, T][..], &weights[seed][..]);
    folder.write("a-00001-of-00002.safetensors", &safetensors(&[], &[tensor("layer.0", 0), tensor("layer.10", 2)]));
    folder.write("a-00002-of-00002.safetensors", &safetensors(&[], &[tensor("layer.1", 1)]));
    let index = |file: &str| {
        format!(
            "{{\"metadata\":{{}},\"weight_map\":{{\"layer.0\":\"a-00001-of-00002.safetensors\",\"layer.1\":{file:?}}}}}"
        )
    };
    let path = folder.write("a.safetensors.index.json", index("a-00002-of-00002.safetensors").as_bytes());
    assert_same(&*open(&path), &expected());
    assert_same(&*open(&folder.path()), &expected());
    for file in ["../a-00002-of-00002.safetensors", "/etc/passwd", ".."] {
        let path = folder.write("b.safetensors.index.json", index(file).as_bytes());
        assert!(failure(&path, &ReadOptions::default()).contains("is not a file beside the index"));
    }
    let unsound = folder.write("c.index.json", b"{\"positions\": 3}");
    assert!(failure(&unsound, &ReadOptions::default()).contains("not a sound index of shards"));
}

#[test]
fn files_that_are_not_one_trace_are_refused() {
    let refused = |files: &[(&str, Vec<u8>)]| {
        let folder = Folder::new();
        files.iter().for_each(|(name, bytes)| drop(folder.write(name, bytes)));
        failure(&folder.path(), &ReadOptions::default())
    };
    assert!(refused(&[]).contains("a folder without .npy, .npz or .safetensors files"));
    assert!(refused(&[("sample_0/layer_0.txt", vec![])]).contains("a folder of samples: name one of them"));
    assert!(refused(&[("kv_head_000/keys.txt", vec![])]).contains("name the folder that holds the layers"));
    assert!(refused(&[("l0.npy", array(0)), ("l1.safetensors", native(1, 1))]).contains("side by side"));
    assert!(refused(&[("a.safetensors", native(1, 0)), ("b.safetensors", native(1, 1))]).contains("stream 1.0 is in"));
    let longer = {
        let mut bytes = Vec::new();
        write(&included(&[(2, 0, triangle(1, T + 1))]), StoredType::F32, &mut bytes, &|_| {}).expect("written");
        bytes
    };
    assert!(refused(&[("a.safetensors", native(1, 0)), ("b.safetensors", longer)]).contains("these are not one trace"));
    let said = |kv_heads| safetensors(&[("kv_heads", kv_heads)], &[("attention", "F32", &[T, T], &square(1, T))]);
    let problem = refused(&[("l0.safetensors", said("1")), ("l1.safetensors", said("2"))]);
    assert!(problem.contains("do not agree on kv_heads"), "{problem}");
}
