//! The table from 1,024 to 32,768 positions.

use crate::common::binary::{peak_private_memory, wall_time};
use crate::common::rounds::{interleave, is_short, rounds};
use crate::common::table::{Table, grouped, ms, ns, times, us};
use crate::common::traces::{Folder, pass_time};
use crate::generate;

/// Three policies with three windows and three without: 12 lanes at budget 512.
const LANES: [&str; 6] = [
    "--policy",
    "scissorhands,h2o,snapkv,tova,streaming-llm,sliding-window",
    "--recent-window",
    "32,64,128",
    "--budget",
    "512",
];

const HEADER: [&str; 8] =
    ["positions", "kvsim replay", "median", "per row", "per weight", "private memory", "one pass", "replay / pass"];

pub fn print() {
    let mut table = Table::new(HEADER, 0);
    let folder = Folder::new();
    let longest = if is_short() { 4096 } else { 32_768 };
    let lengths = std::iter::successors(Some(1024), |positions| Some(2 * positions));
    lengths.take_while(|positions| *positions <= longest).for_each(|positions| measure(&folder, positions, &mut table));
    println!("{}", table.markdown());
    println!(
        "12 lanes at budget 512 on traces like decode-4096 stored as f16: scissorhands, h2o and snapkv with windows 32, \
         64 and 128, tova, streaming-llm and sliding-window. The whole process with default threads, least and median; one \
         pass widens and sums the same file on one thread. The aim at 32,768 positions: 96 MB, 2.50 x the pass."
    );
}

fn measure(folder: &Folder, positions: usize, table: &mut Table) {
    let file = generate(folder, positions, "f16");
    let path = file.to_str().expect("a plain name");
    let args = [&["replay", path, "-q"], &LANES[..]].concat();
    let memory = peak_private_memory(&args);
    let [replay, pass] = interleave(rounds(7), [&mut || wall_time(&args), &mut || pass_time(&file)]);
    std::fs::remove_file(&file).expect("the bench wrote the file");
    eprintln!("measured: {positions} positions");
    let rows = (positions - 1) as f64;
    table.row([
        grouped(positions as u64),
        ms(replay.least()),
        ms(replay.median()),
        us(replay.least() / rows),
        ns(replay.least() / (rows * (rows + 1.0) / 2.0)),
        memory.map_or(String::new(), |bytes| format!("{:.1} MB", bytes as f64 / 1e6)),
        ms(pass.least()),
        times(replay.least() / pass.least()),
    ]);
}
