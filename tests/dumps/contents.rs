//! Files that are not what their names say: each is named as what it is, with what to do.

use crate::attention::{assert_same, failure, included, open, square, triangle};
use crate::cases::case;
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::options::ReadOptions;

#[track_caller]
fn assert_named(name: &str, bytes: &[u8], expected: &[&str]) {
    let folder = Folder::new();
    let problem = failure(&folder.write(name, bytes), &ReadOptions::default());
    expected.iter().for_each(|part| assert!(problem.contains(part), "{name}: {part:?} is missing: {problem}"));
}

const NAMES: [&str; 4] = ["a.safetensors", "a.npy", "a.npz", "a.jsonl"];

#[test]
fn pointers_pages_and_other_formats_are_named_under_every_name() {
    let lfs = std::fs::read(case("lfs.safetensors")).expect("the case is there");
    for name in NAMES {
        assert_named(name, &lfs, &["a Git LFS pointer", "git lfs pull"]);
        assert_named(name, b"<!DOCTYPE html><html>", &["a web page", "download it again"]);
        assert_named(name, b"\x80\x04\x95\x10\x00\x00\x00", &["pickled Python objects"]);
        assert_named(name, b"\x89HDF\r\n\x1a\n\x00\x00", &["HDF5"]);
        assert_named(name, b"GGUF\x03\x00\x00\x00", &["GGUF", "traces/README.md"]);
    }
}

#[test]
fn what_torch_saved_is_named_under_another_name() {
    let problem = failure(&case("torch-save-renamed.safetensors"), &ReadOptions::default());
    assert!(problem.contains("import torch") && problem.contains("weights_only=True"), "{problem}");
    let torch = npz(&[("a/data.pkl", vec![1]), ("a/data/0", vec![2])], false);
    for name in NAMES {
        assert_named(name, &torch, &["import torch"]);
        assert_named(name, &torch[..torch.len() - 30], &[name]);
    }
}

#[test]
fn traces_under_the_name_of_another_format_are_named() {
    let array = npy("<f4", &[3, 3], &square(1, 3));
    let archive = npz(&[("a.npy", array.clone())], true);
    let tensors = safetensors(&[], &[("x", "F32", &[3, 3], &square(1, 3))]);
    assert_named("a.npz", &array, &["an npy array, not npz as its name says", ".npy"]);
    assert_named("a.safetensors", &array, &["an npy array, not safetensors as its name says"]);
    assert_named("a.npy", &archive, &["a zip archive, not npy as its name says", ".npz"]);
    assert_named("a.npy", &tensors, &["a safetensors file, not npy as its name says"]);
    assert_named("a.jsonl", &tensors, &["a safetensors file, not jsonl as its name says"]);
    assert_named("a.npy", b"{\"step\":1}", &["JSON text, not npy as its name says"]);
    assert_named("a.jsonl", b"\x1f\x8b\x08\x00", &["compressed by gzip", ".jsonl.gz"]);
}

#[test]
fn an_archive_that_is_cut_short_says_so() {
    let archive = npz(&[("layer0.npy", npy("<f4", &[40, 40], &square(1, 40)))], true);
    for len in [archive.len() / 2, archive.len() - 22, 10] {
        assert_named("a.npz", &archive[..len], &["cut short", "copy it again"]);
    }
}

#[test]
fn text_that_is_not_utf_8_is_named_and_a_byte_order_mark_is_skipped() {
    let text = "{\"step\":0,\"attn\":[1.0]}\n{\"step\":1,\"attn\":[0.5,0.5]}\n";
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_named("a.jsonl", &[b"\xff\xfe", &wide[..]].concat(), &["UTF-16 text: save it as UTF-8"]);
    assert_named("a.jsonl", &wide, &["UTF-16 text: save it as UTF-8"]);
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_named("a.jsonl", &[b"\xfe\xff", &wide[..]].concat(), &["UTF-16"]);
    let folder = Folder::new();
    let path = folder.write("a.jsonl", &[b"\xef\xbb\xbf", text.as_bytes()].concat());
    assert_same(&*open(&path), &included(&[(0, 0, vec![vec![1.0], vec![0.5, 0.5]])]));
    let bom = open(&case("bom.jsonl"));
    assert_eq!((bom.info().positions, bom.info().streams.len()), (2, 1));
}

#[test]
fn a_header_above_the_limit_says_the_limit() {
    let len: u64 = 100_000_001;
    let folder = Folder::new();
    let path = folder.write("a.safetensors", &len.to_le_bytes());
    let file = std::fs::OpenOptions::new().append(true).open(&path).expect("opened");
    // A hole: the header is never read.
    file.set_len(8 + len).expect("a sparse file");
    let problem = failure(&path, &ReadOptions::default());
    assert!(problem.contains("the header has 100000001 bytes, more than the 100000000"), "{problem}");
}

#[test]
fn lines_begin_where_header_or_flag_say() {
    let folder = Folder::new();
    let rows = triangle(1, 4);
    let line = |step: usize| format!("{{\"step\":{step},\"attn\":{:?}}}\n", rows[step]);
    let lines = line(2) + &line(3);
    let path = folder.write("a.jsonl", lines.as_bytes());
    assert!(failure(&path, &ReadOptions::default()).contains("rows that begin later need --first-position 2"));
    let flagged = ReadOptions { first_position: Some(2), ..Default::default() };
    let source = crate::attention::open_with(&path, &flagged);
    assert_eq!((source.info().first_position.0, source.info().positions), (2, 4));
    let said = folder
        .write("b.jsonl", format!("{{\"kvsim\":1,\"self\":\"included\",\"first_position\":2}}\n{lines}").as_bytes());
    assert_same(&*open(&said), &*source);
    assert!(open(&said).place(0, kvsim::position::Position(3)).contains("b.jsonl:3:"));
    let huge = folder.write("c.jsonl", b"{\"kvsim\":1,\"first_position\":2147483648}\n");
    assert!(failure(&huge, &ReadOptions::default()).contains("positions are more than"));
    let wrong = folder.write("d.jsonl", b"{\"kvsim\":1,\"first_position\":\"x\"}\n");
    assert!(failure(&wrong, &ReadOptions::default()).contains("first_position is \"x\", must be a whole number"));
}
