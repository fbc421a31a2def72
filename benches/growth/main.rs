//! `cargo bench --bench growth`: how time and memory grow with the length of a trace and with the number
//! of lanes, and how the planning of a sweep grows with lanes and layers, as three tables.
//!
//! The binary generates the traces into a folder below the target directory; the longest takes
//! 1.07 GB, and each goes as soon as it has been measured. `KVSIM_BENCH_SHORT=1` leaves out the long
//! ones and takes few rounds.

#[path = "../common/mod.rs"]
mod common;

mod by_lanes;
mod by_length;
mod planning;

use common::binary::wall_time;
use common::machine::Machine;
use common::traces::Folder;
use std::path::PathBuf;

/// Has the binary write a trace like decode-4096.
fn generate(folder: &Folder, positions: usize, dtype: &str) -> PathBuf {
    let file = folder.at(&format!("decode-{positions}.safetensors"));
    let (path, positions) = (file.to_str().expect("a plain name"), positions.to_string());
    wall_time(&["generate", "decode-4096", "--seq-len", &positions, "--dtype", dtype, "-q", "-o", path]);
    file
}

fn main() {
    if !common::asked_to_measure() {
        return;
    }
    let machine = Machine::watch();
    by_length::print();
    println!();
    by_lanes::print();
    println!();
    planning::print();
    println!("{}", machine.line());
}
