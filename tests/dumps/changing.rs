//! Files that change while they are read, and what is large: said in words of their own.

use crate::attention::{open, open_with, read_all, square};
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::RowBlock;
use kvsim::trace::options::ReadOptions;
use std::path::Path;

const CUT: &str = "ends early: it changed while it was read";

/// Opens a file, cuts it, and reads its first stream.
fn read_after_cut(path: &Path, to: u64) -> String {
    let source = open(path);
    std::fs::File::options().write(true).open(path).and_then(|file| file.set_len(to)).expect("cut");
    read_all(&*source).expect_err("there is too little").to_string()
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_named_as_that() {
    let folder = Folder::new();
    let weights = square(1, 64);
    let packed: Vec<f32> = (0..64).flat_map(|row| weights[row * 64..][..=row].to_vec()).collect();
    let metadata = [("kvsim", "1"), ("self", "included")];
    for (name, bytes) in [
        ("a.npy", npy("<f4", &[64, 64], &weights)),
        ("a.npz", npz(&[("layer0.npy", npy("<f4", &[64, 64], &weights))], false)),
        ("a.safetensors", safetensors(&metadata, &[("attention.0.0", "F32", &[packed.len()], &packed)])),
    ] {
        let path = folder.write(name, &bytes);
        let said = read_after_cut(&path, 2000);
        assert!(said.contains(name) && said.contains(CUT), "{said}");
    }
}

#[test]
fn json_lines_that_are_other_rows_the_second_time_are_refused() {
    let line = |step: usize, weights: usize| format!("{{\"step\":{step},\"attn\":{:?}}}\n", vec![0.25; weights]);
    let written = line(1, 1) + &line(2, 2);
    let longer = line(1, 1) + &line(2, 9);
    let folder = Folder::new();
    for changed in [line(2, 1) + &line(2, 2), longer, "x".repeat(written.len()), line(1, 1)] {
        let path = folder.write("a.jsonl", written.as_bytes());
        let source = open(&path);
        std::fs::write(&path, changed).expect("written");
        let said = read_all(&*source).expect_err("it changed").to_string();
        assert!(said.contains("a.jsonl") && said.contains("changed while it was read"), "{said}");
    }
}

/// The sizes that an archive claims, at the places where it claims them.
fn claiming(mut archive: Vec<u8>, found: u32, claimed: u32) -> Vec<u8> {
    for at in 0..archive.len() - 4 {
        if archive[at..at + 4] == found.to_le_bytes() {
            archive[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        }
    }
    archive
}

#[test]
fn an_archive_that_unpacks_to_much_says_so_before_it_does() {
    let small = npy("<f4", &[20_000, 20_000], &[0.0; 30]);
    let claimed = (small.len() - 30 * 4) as u32 + 20_000 * 20_000 * 4;
    let folder = Folder::new();
    let path = folder.write("a.npz", &claiming(npz(&[("a.npy", small.clone())], true), small.len() as u32, claimed));
    let options = ReadOptions { announce: Some(|text| panic!("said: {text}")), ..Default::default() };
    let said = std::panic::catch_unwind(|| open_with(&path, &options)).err().expect("it was announced");
    let said = said.downcast_ref::<String>().expect("a text");
    assert!(said.starts_with("said: 0.0 MiB of compressed arrays unpack to 1526 MiB in \""), "{said}");
}

#[test]
fn reading_goes_on_while_a_file_grows() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[8, 8], &square(1, 8)));
    let source = open(&path);
    std::fs::write(&path, [std::fs::read(&path).expect("there"), vec![0; 100]].concat()).expect("written");
    let mut reader = source.open(0).expect("opened");
    assert_eq!(reader.read(&mut RowBlock::default(), 100).expect("read"), 8);
}
