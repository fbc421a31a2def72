//! `cargo bench --bench yardstick`: kvsim beside a plain loop in C, and what a lane, a thread and a row
//! cost, as one table. It prints figures and what they aim at; it never passes or fails.
//!
//! `KVSIM_BENCH_SHORT=1` takes few rounds.

#[path = "../common/mod.rs"]
mod common;

mod beside_c;
mod c_loop;
mod further_lanes;
mod kept_lanes;
mod rows;
mod sheet;
mod threads;

use common::traces::{Folder, decode_4096, in_memory, rows_of, write_native};
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::safetensors::StoredType;
use sheet::Sheet;
use std::path::PathBuf;

/// What every part measures on: the rows of decode-4096.
struct Rows {
    folder: Folder,
    memory: MemoryTrace,
    /// As a packed f32 file.
    file: PathBuf,
}

impl Rows {
    fn prepare() -> Rows {
        let folder = Folder::new();
        let file = folder.at("decode-4096.safetensors");
        write_native(&decode_4096(), StoredType::F32, &file);
        Rows { folder, memory: in_memory(rows_of(&decode_4096())), file }
    }
}

fn main() {
    if !common::asked_to_measure() {
        return;
    }
    let rows = Rows::prepare();
    let mut sheet = Sheet::new();
    beside_c::measure(&rows, &mut sheet);
    further_lanes::measure(&rows, &mut sheet);
    kept_lanes::measure(&rows, &mut sheet);
    threads::measure(&rows, &mut sheet);
    rows::measure(&rows, &mut sheet);
    sheet.print();
}
