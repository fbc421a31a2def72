//! Files that are no trace of queries, keys and values: one test for each thing that is refused.

use crate::common::files::Folder;
use crate::common::lanes::read_rows;
use crate::made::{File, Shape, Stored, layer};
use crate::slow::file::Layer;
use kvsim::trace::formats;
use kvsim::trace::options::ReadOptions;
use std::path::Path;

const SHAPE: Shape = Shape { heads: 4, kv_heads: 2, positions: 6, width: 5, value_width: 3 };

/// Two layers, 0 and 1, with everything that a layer can have.
fn file() -> File {
    let plain = layer(SHAPE, 1, Stored::F16);
    let mut file = File::of(&[plain.clone(), Layer { number: 1, ..plain }], Stored::F16);
    for number in [0, 1] {
        file.push(&format!("output.{number}"), Stored::F16, &[7, 12]);
        file.push(&format!("output_norm.{number}"), Stored::F32, &[7]);
        file.push(&format!("residual_norm.{number}"), Stored::F32, &[6]);
        file.push(&format!("sink.{number}"), Stored::F32, &[4]);
        (0..4).for_each(|head| file.push(&format!("gradient.{number}.{head}"), Stored::F16, &[2, 6, 3]));
    }
    file.say("output_norm_epsilon", "1e-6");
    file.say("gradient_samples", "2");
    file.say("gradient_scale", "16");
    file
}

fn open(folder: &Folder, file: &File) -> kvsim::error::Result<Box<dyn kvsim::trace::Source>> {
    formats::open(folder.write("made.safetensors", file.bytes()).as_ref(), &ReadOptions::default())
}

/// What opening the file says when it was changed like this; all these parts, after the file's name.
#[track_caller]
fn refused(change: impl FnOnce(&mut File), parts: &[&str]) {
    let (folder, mut file) = (Folder::new(), file());
    change(&mut file);
    let error = open(&folder, &file).err().expect("refused").to_string();
    assert!(error.starts_with(&folder.at("made.safetensors")), "{error}");
    parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is missing: {error}"));
    assert!(!error.ends_with('.'), "{error}");
}

#[test]
fn the_whole_file_is_read() {
    let folder = Folder::new();
    let source = open(&folder, &file()).expect("sound");
    assert_eq!(read_rows(&*source, 7).len(), 6);
    let about = source.about().expect("every number is finite");
    let wanted = "layers 0, 1: 4 query heads of 5 channels in f16, 2 KV heads in f16, values of 3 channels in f16, \
                  scale 0.5, learned sinks, output projection to 7 in f16, output norm, residual norms, gradients of 2 \
                  samples in f16";
    assert_eq!(about.lines[0], wanted);
}

#[test]
fn what_must_be_said_of_the_file() {
    refused(|file| drop(file.metadata.remove("kvsim")), &["kvsim is missing in the metadata"]);
    refused(|file| file.say("kvsim", "2"), &["kvsim is \"2\"", "reads \"1\""]);
    refused(|file| drop(file.metadata.remove("kind")), &["kind is missing", "must be \"qkv\""]);
    refused(|file| drop(file.metadata.remove("self")), &["self is missing", "must be \"included\""]);
    refused(|file| file.say("self", "excluded"), &["self is \"excluded\"", "\"included\""]);
    refused(|file| drop(file.metadata.remove("seq_len")), &["must say seq_len", "6 positions"]);
    refused(|file| file.say("seq_len", "7"), &["seq_len is 7", "hold 6 positions"]);
}

#[test]
fn layers_without_one_of_the_three() {
    for word in ["query", "key", "value"] {
        let missing = format!("there is no {word}.1.0: a layer needs queries, keys and values");
        refused(
            |file| file.tensors.retain(|tensor| !tensor.name.starts_with(&format!("{word}.1"))),
            &["layer 1", &missing],
        );
    }
    refused(|file| file.tensors.clear(), &["holds no tensor named query"]);
}

#[test]
fn heads_that_are_missing_or_too_many() {
    let drop_tensor = |name: &'static str| move |file: &mut File| file.tensors.retain(|tensor| tensor.name != name);
    refused(drop_tensor("query.0.1"), &["tensor \"query.0.2\"", "there is no query.0.1"]);
    refused(drop_tensor("query.0.3"), &["layer 0", "3 query heads cannot share 2 KV heads"]);
    refused(drop_tensor("value.1.1"), &["layer 1", "2 heads of keys and 1 of values"]);
    refused(|file| file.say("query_heads", "8"), &["query_heads is 8", "hold 4", "is a head missing"]);
    refused(|file| file.say("kv_heads.1", "4"), &["layer 1", "kv_heads.1 is 4 in the metadata", "hold 2"]);
    refused(|file| file.push("query.0", Stored::F16, &[4, 6, 5]), &["tensor \"query.0\"", "beside query.0.{head}"]);
}

#[test]
fn shapes_that_differ() {
    let reshape = |name: &'static str, shape: &'static [usize]| {
        move |file: &mut File| {
            let tensor = file.tensor(name);
            tensor.shape = shape.to_vec();
            tensor.numbers = vec![1.0; shape.iter().product()];
        }
    };
    refused(reshape("query.0.1", &[6, 4]), &["tensor \"query.0.1\"", "shape [6, 4], must be [6, 5]"]);
    refused(reshape("key.1.0", &[7, 5]), &["tensor \"key.1.0\"", "must be [6, 5]"]);
    refused(reshape("value.0.1", &[6, 2]), &["tensor \"value.0.1\"", "must be [6, 3]"]);
    refused(reshape("query.0.0", &[30]), &["tensor \"query.0.0\"", "[positions, channels]"]);
    refused(reshape("key.0.0", &[6, 0]), &["tensor \"key.0.0\"", "holds no number"]);
    refused(reshape("output.0", &[7, 11]), &["tensor \"output.0\"", "must be [7, 12]"]);
    refused(reshape("output.0", &[84]), &["tensor \"output.0\"", "[model width, query heads * channels of a value]"]);
    refused(reshape("output_norm.1", &[12]), &["tensor \"output_norm.1\"", "must be [1, 7]"]);
    refused(reshape("residual_norm.0", &[5]), &["tensor \"residual_norm.0\"", "one length for each position"]);
    refused(reshape("sink.0", &[2]), &["tensor \"sink.0\"", "one logit for each query head"]);
    refused(reshape("sink.0", &[4, 1]), &["tensor \"sink.0\"", "one-dimensional"]);
    refused(reshape("gradient.1.2", &[3, 6, 3]), &["tensor \"gradient.1.2\"", "[2 samples, 6 positions"]);
    refused(reshape("gradient.1.2", &[6, 3]), &["tensor \"gradient.1.2\"", "[samples, positions, channels]"]);
}

#[test]
fn what_stands_behind_the_heads_and_lacks_its_half() {
    refused(
        |file| file.tensors.retain(|tensor| tensor.name != "output.0"),
        &["output_norm.0", "output.0, which is not there"],
    );
    refused(
        |file| drop(file.metadata.remove("output_norm_epsilon")),
        &["output_norm.0", "must say output_norm_epsilon"],
    );
    refused(|file| file.tensor("output_norm.0").stored = Stored::F16, &["output_norm.0", "must be F32"]);
    refused(|file| file.tensor("residual_norm.1").stored = Stored::Bf16, &["residual_norm.1", "must be F32"]);
    refused(|file| drop(file.metadata.remove("gradient_samples")), &["must say gradient_samples"]);
    refused(
        |file| file.tensors.retain(|tensor| !tensor.name.starts_with("gradient.1")),
        &["there is no gradient.1.0, and layer 0 has gradients"],
    );
    refused(|file| file.push("output.0.1", Stored::F16, &[7, 12]), &["output.0", "a layer has one of these"]);
}

#[test]
fn settings_that_cannot_be() {
    for text in ["0", "-1", "inf", "NaN", "1e60", "x", ""] {
        refused(|file| file.say("scale.1", text), &["scale.1 is", "must be a finite number above 0"]);
        refused(|file| file.say("softcap", text), &["softcap is", "must be a finite number above 0"]);
        refused(|file| file.say("gradient_scale", text), &["gradient_scale is", "must be a finite number above 0"]);
    }
    for text in ["0", "-1", "1.5"] {
        refused(|file| file.say("sliding_window.0", text), &["sliding_window.0 is", "at least 1"]);
    }
}

#[test]
fn tensors_that_have_no_place() {
    refused(|file| file.push("attention.0.0", Stored::F32, &[21]), &["attention.0.0", "a file is of one kind"]);
    refused(|file| file.push("position_bias.0", Stored::F32, &[6]), &["position_bias.0", "record the rows themselves"]);
    refused(|file| file.say("alibi_slopes", "0.5"), &["alibi_slopes", "slope / scale in every query"]);
    let (folder, mut file) = (Folder::new(), file());
    file.push("tokens", Stored::F32, &[6]);
    let source = open(&folder, &file).expect("it is left out");
    assert!(source.info().notes[0].contains("tensor \"tokens\" is left out"), "{:?}", source.info().notes);
}

/// Where a number that is not finite is found: as rows are read, or as the file is inspected.
#[test]
fn numbers_that_are_not_finite() {
    let cases = [
        ("query.1.2", 13, "tensor \"query.1.2\": position 2, channel 3"),
        ("key.0.1", 29, "tensor \"key.0.1\": position 5, channel 4"),
        ("value.0.0", 4, "tensor \"value.0.0\": position 1, channel 1"),
        ("output.1", 25, "tensor \"output.1\": row 2, column 1"),
        ("residual_norm.0", 5, "tensor \"residual_norm.0\": row 0, index 5"),
    ];
    for (name, at, place) in cases {
        for bad in [f32::NAN, f32::INFINITY] {
            let (folder, mut file) = (Folder::new(), file());
            file.tensor(name).numbers[at] = bad;
            let source = open(&folder, &file).expect("only the header was read");
            let error = source.about().expect_err("every number is looked at").to_string();
            assert!(error.contains(place) && error.contains("is not a finite number"), "{error}");
            let stream = usize::from(name.starts_with("query")) * 6 + usize::from(name.starts_with("key")) * 2;
            let mut block = kvsim::trace::RowBlock::default();
            let read = source.open(stream).and_then(|mut rows| rows.read(&mut block, 100));
            assert_eq!(read.is_err(), stream > 0, "rows need queries and keys only");
        }
    }
    refused(|file| file.tensor("sink.0").numbers[2] = f32::NAN, &["tensor \"sink.0\": row 0, index 2"]);
}

#[test]
fn a_product_that_overflows_is_no_row() {
    let (folder, mut file) = (Folder::new(), file());
    for name in ["query.0.1", "key.0.0"] {
        let tensor = file.tensor(name);
        tensor.stored = Stored::F32;
        tensor.numbers[10..15].fill(1e20);
    }
    let source = open(&folder, &file).expect("sound numbers");
    let mut block = kvsim::trace::RowBlock::default();
    let error = source.open(1).expect("sound").read(&mut block, 100).expect_err("refused").to_string();
    assert!(
        error.contains("layer 0 head 1: row 2: the product of query 2 and key 2 is more than f32 holds"),
        "{error}"
    );
}

#[test]
fn keys_that_need_more_memory_than_is_allowed() {
    let folder = Folder::new();
    let path = folder.write("made.safetensors", file().bytes());
    let options = ReadOptions { max_memory: Some(100), ..ReadOptions::default() };
    let error = formats::open(path.as_ref(), &options).err().expect("refused").to_string();
    assert!(error.contains("the keys of a KV head take 1 MiB") && error.contains("--max-memory"), "{error}");
}

#[test]
fn flags_for_square_arrays() {
    let folder = Folder::new();
    let path = folder.write("made.safetensors", file().bytes());
    let options = ReadOptions { start: Some(1), ..ReadOptions::default() };
    let error = formats::open(Path::new(&path).as_ref(), &options).err().expect("refused").to_string();
    assert!(error.contains("--start"), "{error}");
}
