//! `kvsim convert`: what comes out replays as what went in.

use crate::common::binary::{Csv, Ran, kvsim, kvsim_reading, without};
use crate::common::files::{Folder, json_lines};
use crate::common::lanes::read_rows;
use crate::made::{known_rows, native, trace};
use crate::reference::SelfKind;
use half::{bf16, f16};
use kvsim::trace::memory::Rows;
use kvsim::trace::options::ReadOptions;
use kvsim::trace::{Source, formats};
use std::ffi::OsStr;

/// An npy file of two heads, [2, 1, width, width], whose cells are stored as `descr` says.
fn npy(descr: &str, heads: &[Rows], store: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
    let width = heads[0].len();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}, {width}, {width}), }}", heads.len());
    header.push_str(&" ".repeat(63 - (10 + header.len()) % 64));
    header.push('\n');
    let cell = |row: &Option<Vec<f32>>, at: usize| row.as_ref().and_then(|row| row.get(at)).copied().unwrap_or(0.0);
    let line = |row: &Option<Vec<f32>>| (0..width).flat_map(|at| store(cell(row, at))).collect::<Vec<u8>>();
    let cells: Vec<u8> = heads.iter().flatten().flat_map(line).collect();
    [b"\x93NUMPY\x01\x00", (header.len() as u16).to_le_bytes().as_slice(), header.as_bytes(), &cells].concat()
}

fn f32_bytes(weight: f32) -> Vec<u8> {
    weight.to_le_bytes().to_vec()
}

fn two_heads() -> [Rows; 2] {
    [1, 2].map(|seed| known_rows(seed, 40))
}

fn convert(folder: &Folder, input: &str, more: &[&str]) -> Ran {
    let output = folder.at("out.safetensors");
    kvsim(&[&["convert", input, "-o", &output], more].concat())
}

fn open(path: &str) -> Box<dyn Source> {
    formats::open(OsStr::new(path), &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The replay of a trace, without its name and what else was said to read it.
#[track_caller]
fn figures(path: &str, more: &[&str]) -> String {
    let args = ["replay", path, "--budget", "9", "--recent-window", "2", "--sinks", "2", "--per-stream", "-q"];
    let report = kvsim(&[&args[..], more].concat()).report();
    without(&report, &["trace", "content", "start", "normalize", "expiry"])
}

#[test]
fn a_square_array_replays_the_same_once_it_is_packed() {
    let folder = Folder::new();
    let square = folder.write("a.npy", npy("<f4", &two_heads(), f32_bytes));
    assert_eq!(convert(&folder, &square, &[]).report(), "");
    assert_eq!(figures(&folder.at("out.safetensors"), &[]), figures(&square, &[]));
}

#[test]
fn what_flags_say_of_a_dump_is_in_the_file_that_comes_out() {
    let folder = Folder::new();
    let square = folder.write("a.npy", npy("<f4", &two_heads(), f32_bytes));
    let out = folder.at("out.safetensors");
    let padded = ["--start", "3", "--normalize", "rows"];
    // Padding that held weight is worth a warning.
    assert_eq!(convert(&folder, &square, &[&padded[..], &["-q"]].concat()).code, 0);
    let from_square = figures(&square, &padded);
    assert_eq!(figures(&out, &[]), from_square);
    let windowed = ["--layer-window", "0:7"];
    assert_eq!(convert(&folder, &square, &windowed).report(), "");
    assert_eq!(figures(&out, &[]), figures(&square, &windowed));
    assert_eq!(open(&out).info().facts.window_of(0), Some(7));
    assert_ne!(figures(&out, &[]), figures(&square, &[]), "the window counts");
    assert_eq!(figures(&out, &["--keep-expired"]), figures(&square, &[]));
    let excluded = ["--self", "excluded"];
    assert_eq!(convert(&folder, &square, &[&excluded[..], &["-q"]].concat()).code, 0);
    assert_eq!(figures(&out, &[]), figures(&square, &excluded));
}

#[test]
fn a_dump_of_decode_steps_keeps_where_it_starts() {
    let folder = Folder::new();
    let rows = known_rows(5, 40)[30..].to_vec();
    let late = native(&folder, "late.safetensors", &trace(SelfKind::Included, 30, &[(4, "mean", &rows)]));
    assert_eq!(convert(&folder, &late, &[]).report(), "");
    let out = folder.at("out.safetensors");
    assert_eq!(open(&out).info().first_position.index(), 30);
    assert_eq!(figures(&out, &[]), figures(&late, &[]));
    assert_eq!(std::fs::read(&out).expect("there"), std::fs::read(&late).expect("there"));
}

#[test]
fn json_lines_become_a_native_file_with_what_their_header_says() {
    let folder = Folder::new();
    let header = "{\"kvsim\":1,\"self\":\"included\",\"sliding_window.0\":6,\"prompt_len\":11,\"model\":\"m\"}\n";
    let text = header.to_owned() + &json_lines(0, &known_rows(3, 30));
    let path = folder.write("a.jsonl", &text);
    assert_eq!(convert(&folder, &path, &[]).report(), "");
    let out = folder.at("out.safetensors");
    let info = open(&out).info().clone();
    assert_eq!(info.facts.window_of(0), Some(6));
    assert_eq!(info.facts.prompt_len, Some(11));
    assert_eq!(info.metadata.get("model").map(String::as_str), Some("m"));
    for more in [&[][..], &["--prompt", "block"]] {
        assert_eq!(figures(&out, more), figures(&path, more));
    }
    let bytes = std::fs::read(&out).expect("there");
    assert_eq!(kvsim_reading(&text, &["convert", "-", "-o", &out]).report(), "");
    assert_eq!(std::fs::read(&out).expect("there"), bytes, "standard input is as good as a file");
}

#[test]
fn a_step_without_attention_is_refused_and_nothing_is_left_behind() {
    let folder = Folder::new();
    let mut rows = known_rows(3, 6);
    rows[4] = None;
    let path = folder.write("a.jsonl", json_lines(0, &rows));
    let ran = convert(&folder, &path, &[]);
    ran.refuses(1, &["a.jsonl:5: layer 0 head 0: row 4", "a step without attention cannot be stored in packed rows"]);
    assert_eq!(folder.names(), ["a.jsonl"]);
}

#[test]
fn rows_that_do_not_say_how_long_the_sequence_is_still_make_a_file_that_opens() {
    let folder = Folder::new();
    let header = "{\"kvsim\":1,\"self\":\"included\",\"seq_len\":100}\n";
    let path = folder.write("a.jsonl", header.to_owned() + &json_lines(0, &known_rows(3, 30)));
    let ran = convert(&folder, &path, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("the header says 100 positions, the rows make 30"), "{}", ran.stderr);
    assert_eq!(open(&folder.at("out.safetensors")).info().positions, 30);
}

#[test]
fn a_trace_of_no_streams_is_not_written() {
    let folder = Folder::new();
    let path = folder.write("empty.jsonl", "");
    convert(&folder, &path, &[]).refuses(1, &["empty.jsonl", "there is no stream to write"]);
    assert_eq!(folder.names(), ["empty.jsonl"]);
}

#[test]
fn weights_are_stored_as_they_were_unless_something_else_is_asked_for() {
    let folder = Folder::new();
    let out = folder.at("out.safetensors");
    let dtype = |input: &str, more: &[&str]| {
        assert_eq!(convert(&folder, input, &[more, &["-q"]].concat()).code, 0);
        open(&out).info().streams[0].dtype
    };
    let half = folder.write("half.npy", npy("<f2", &two_heads(), |w| f16::from_f32(w).to_le_bytes().to_vec()));
    let double = folder.write("double.npy", npy("<f8", &two_heads(), |w| f64::from(w).to_le_bytes().to_vec()));
    let lines = folder.write("a.jsonl", json_lines(0, &known_rows(1, 9)));
    assert_eq!(dtype(&half, &[]), "f16");
    assert_eq!(read_rows(&*open(&out), 1), read_rows(&*open(&half), 1), "to the bit");
    assert_eq!(dtype(&half, &["--dtype", "f32"]), "f32");
    assert_eq!(read_rows(&*open(&out), 1), read_rows(&*open(&half), 1), "to the bit");
    assert_eq!(dtype(&double, &[]), "f32");
    assert_eq!(dtype(&lines, &[]), "f32");
    assert_eq!(dtype("decode-4096", &[]), "f32");
    assert_eq!(dtype(&lines, &["--dtype", "bf16"]), "bf16");
    let again = folder.write("bf16.safetensors", std::fs::read(&out).expect("there"));
    assert_eq!(dtype(&again, &[]), "bf16");
    let stored = read_rows(&*open(&out), 0)[3].clone().expect("attention")[0];
    assert_eq!(stored, bf16::from_f32(known_rows(1, 9)[3].clone().expect("attention")[0]).to_f32());
}

#[test]
fn rows_divided_by_their_sums_are_not_rounded_to_the_type_they_came_in() {
    let folder = Folder::new();
    let half = folder.write("half.npy", npy("<f2", &two_heads(), |w| f16::from_f32(0.3 * w).to_le_bytes().to_vec()));
    assert_eq!(convert(&folder, &half, &["--normalize", "rows"]).code, 0);
    let out = folder.at("out.safetensors");
    assert_eq!(open(&out).info().streams[0].dtype, "f32");
    assert_eq!(figures(&out, &[]), figures(&half, &["--normalize", "rows"]));
}

#[test]
fn a_file_is_not_replaced_by_itself() {
    let folder = Folder::new();
    let heads = two_heads();
    let path = native(&folder, "a.safetensors", &trace(SelfKind::Included, 0, &[(0, "0", &heads[0])]));
    let before = std::fs::read(&path).expect("there");
    kvsim(&["convert", &path, "-o", &path]).refuses(2, &["choose another name for the output"]);
    assert_eq!(std::fs::read(&path).expect("there"), before);
}

#[test]
fn what_cannot_be_read_or_written_fails_before_the_work() {
    let folder = Folder::new();
    let square = folder.write("a.npy", npy("<f4", &two_heads(), f32_bytes));
    let nowhere = folder.at("no/such/folder/out.safetensors");
    assert_eq!(kvsim(&["convert", &square, "-o", &nowhere]).code, 1);
    convert(&folder, &folder.at("missing.npy"), &[]).refuses(1, &["missing.npy", "no such file"]);
    assert_eq!(kvsim(&["convert", &square]).code, 2, "it never writes to standard output");
    assert_eq!(folder.names(), ["a.npy"]);
}

#[test]
fn figures_of_the_report_name_the_file_that_was_read() {
    let folder = Folder::new();
    let square = folder.write("a.npy", npy("<f4", &two_heads(), f32_bytes));
    assert_eq!(convert(&folder, &square, &[]).report(), "");
    let csv =
        Csv::parse(&kvsim(&["replay", &folder.at("out.safetensors"), "--policy", "tova", "--budget", "9"]).report());
    assert_eq!(csv.text(0, "trace"), folder.at("out.safetensors"));
}
