//! Anything that is not a regular file: named pipes, standard input, slow writers, compressed lines.
#![cfg(unix)]

use crate::attention::{assert_same, failure, included, open, square, triangle};
use crate::binary::{Csv, kvsim_reading};
use crate::cases::case;
use crate::files::{Folder, npy};
use flate2::Compression;
use flate2::write::GzEncoder;
use kvsim::trace::options::ReadOptions;
use kvsim::trace::safetensors::{StoredType, write};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

fn lines() -> Vec<u8> {
    std::fs::read(case("fifo-source.jsonl")).expect("the case is there")
}

fn rows() -> Vec<Vec<f32>> {
    vec![vec![1.0], vec![0.5, 0.5]]
}

/// A named pipe that is given these bytes, a few at a time.
fn pipe(folder: &Folder, name: &str, bytes: Vec<u8>, at_once: usize) -> (PathBuf, JoinHandle<()>) {
    let path = folder.path().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    let into = path.clone();
    let writer = std::thread::spawn(move || {
        let mut file = std::fs::OpenOptions::new().write(true).open(into).expect("opened");
        for part in bytes.chunks(at_once) {
            // A reader that has seen enough may leave.
            if file.write_all(part).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (path, writer)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("finished")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

#[test]
fn lines_are_read_from_a_pipe_however_slowly_they_come() {
    let folder = Folder::new();
    for (name, bytes) in [("a", lines()), ("b.jsonl", lines()), ("c", gzip(&lines())), ("d", zstd(&lines()))] {
        let (path, writer) = pipe(&folder, name, bytes, 7);
        assert_same(&*open(&path), &included(&[(0, 0, rows())]));
        writer.join().expect("written");
    }
}

#[test]
fn a_native_file_is_read_from_a_pipe() {
    let folder = Folder::new();
    let expected = included(&[(0, 0, triangle(1, 60)), (0, 1, triangle(2, 60))]);
    let mut bytes = Vec::new();
    write(&expected, StoredType::F16, &mut bytes, &|_| {}).expect("written");
    let (path, writer) = pipe(&folder, "a.safetensors", bytes.clone(), 1000);
    assert_same(&*open(&path), &expected);
    writer.join().expect("written");
    let (path, writer) = pipe(&folder, "cut", bytes[..bytes.len() - 1].to_vec(), 1000);
    assert!(failure(&path, &ReadOptions::default()).contains("truncated"));
    writer.join().expect("written");
}

#[test]
fn formats_that_need_seeking_say_so_at_once() {
    let folder = Folder::new();
    // No writer: by their names alone.
    for name in ["a.npy", "a.npz"] {
        let path = folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
        assert!(failure(&path, &ReadOptions::default()).contains("cannot be read from a pipe"));
    }
    let (path, writer) = pipe(&folder, "b", npy("<f4", &[9, 9], &square(1, 9)), 50);
    assert!(failure(&path, &ReadOptions::default()).contains("an npy array cannot be read from a pipe"));
    writer.join().expect("written");
}

#[test]
fn standard_input_is_read_under_each_of_its_names() {
    let text = String::from_utf8(lines()).expect("text");
    for name in ["-", "/dev/stdin", "/proc/self/fd/0"] {
        if name.starts_with("/proc") && !Path::new(name).exists() {
            continue;
        }
        let ran = kvsim_reading(&text, &["replay", name, "--policy", "tova", "--budget", "1", "-q"]);
        assert_eq!(Csv::parse(&ran.report()).text(0, "retained_mass"), "1", "{name}");
    }
}

#[test]
fn compressed_lines_are_read_and_bad_ones_refused() {
    let folder = Folder::new();
    let many: String =
        (0..300).map(|step| format!("{{\"step\":{step},\"attn\":{:?}}}\n", triangle(1, 300)[step])).collect();
    let expected = included(&[(0, 0, triangle(1, 300))]);
    for (name, whole) in [("a.jsonl.gz", gzip(many.as_bytes())), ("a.jsonl.zst", zstd(many.as_bytes()))] {
        assert_same(&*open(&folder.write(name, &whole)), &expected);
        assert_same(&*open(&folder.write(name, &[&whole[..], &whole[..0]].concat())), &expected);
        let problem = failure(&folder.write(name, &whole[..whole.len() - 9]), &ReadOptions::default());
        assert!(problem.contains("damaged or cut short"), "{name}: {problem}");
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 0x10;
        failure(&folder.write(name, &changed), &ReadOptions::default());
        let problem = failure(&folder.write(name, many.as_bytes()), &ReadOptions::default());
        assert!(problem.contains("not compressed, as its name says"), "{name}: {problem}");
    }
    let two = [gzip(&many.as_bytes()[..many.len() / 2]), gzip(&many.as_bytes()[many.len() / 2..])].concat();
    assert_same(&*open(&folder.write("b.jsonl.gz", &two)), &expected);
    let problem = failure(&folder.write("a.npy.gz", &gzip(b"x")), &ReadOptions::default());
    assert!(problem.contains(".jsonl.gz and .jsonl.zst are read"), "{problem}");
}
