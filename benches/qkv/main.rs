//! Rows rebuilt from queries and keys: beside the multiply-adds that the processor can make at most, and beside a plain
//! program in C that does the same.

mod c_loop;
#[path = "../common/mod.rs"]
mod common;
mod made;

use c_loop::CLoop;
use common::machine::Machine;
use common::rounds::{interleave, rounds, time};
use common::table::{Table, grouped, ms, times};
use common::traces::Folder;
use kvsim::kernels::multiply_adds;
use kvsim::trace::{RowBlock, Source};
use std::time::Duration;

/// Rows of the one query head.
const ROWS: usize = 4096;

/// Rows asked for at a time, as a replay of one head does.
const ASKED_FOR: usize = 24;

/// Rounds of multiply-adds that take some milliseconds.
const PEAK_ROUNDS: usize = 1 << 20;

fn main() {
    if !common::asked_to_measure() {
        return;
    }
    let machine = Machine::watch();
    let mut table = Table::new(["what", "least", "rows/s", "GFLOP/s", "of the peak", "beside C"], 1);
    for width in [64, 128] {
        measure(width, &mut table);
    }
    println!("{}", table.markdown());
    println!(
        "{ROWS} rows of one query head, one thread, keys and queries in f16; least of rounds taken in turn. The peak is that \
         of fused multiply-adds in registers, in the same rounds; the program in C is benches/qkv/qk_baseline.c, gcc -O3 \
         -march=native, its rows alone."
    );
    println!("{}", machine.line());
}

fn measure(width: usize, table: &mut Table) {
    let folder = Folder::new();
    let head = made::Head::new(ROWS, width);
    let source = head.open(&folder);
    let c_loop = CLoop::build(&folder, &head);
    let per_round = 2 * multiply_adds(1).0 * PEAK_ROUNDS;
    let [peak, ours, c] = interleave(
        rounds(15),
        [&mut || time(|| multiply_adds(PEAK_ROUNDS)), &mut || time(|| rebuild(&*source)), &mut || {
            c_loop.as_ref().map_or(Duration::ZERO, CLoop::rows)
        }],
    );
    let flops = (width * ROWS * (ROWS + 1)) as f64;
    let peak = per_round as f64 / peak.least();
    let mut line = |what: String, seconds: f64, beside: String| {
        let (rate, share) = (flops / seconds, 100.0 * flops / seconds / peak);
        let rows = grouped((ROWS as f64 / seconds) as u64);
        table.row([what, ms(seconds), rows, format!("{:.1}", rate * 1e-9), format!("{share:.0} %"), beside]);
    };
    match &c_loop {
        Ok(_) => {
            line(format!("kvsim, d {width}"), ours.least(), times(c.least() / ours.least()));
            line(format!("plain C, d {width}"), c.least(), times(1.0));
        }
        Err(reason) => {
            line(format!("kvsim, d {width}"), ours.least(), "-".to_owned());
            println!("The program in C is left out: {reason}.");
        }
    }
}

/// Opens the head, which lays out its keys, and makes every row.
fn rebuild(source: &dyn Source) -> f32 {
    let mut reader = source.open(0).expect("the bench wrote the file");
    let (mut block, mut last) = (RowBlock::default(), 0.0);
    while reader.read(&mut block, ASKED_FOR).expect("sound numbers") > 0 {
        last += block.row(0).weights[0];
        block.clear();
    }
    last
}
