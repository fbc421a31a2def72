//! What rows cost before any lane sees them: summing, reading, generating, finding the heaviest.

use crate::Rows;
use crate::common::lanes::{lane, on_threads, replay_cost};
use crate::common::rounds::{Times, interleave, median, rounds, time};
use crate::common::table::{grouped, ns};
use crate::common::traces::{decode_4096, open_native, read_all, rows_of};
use crate::sheet::Sheet;
use kvsim::kernels;
use kvsim::replay::Options;
use kvsim::trace::RowBlock;

/// Rows and weights of decode-4096.
const ROWS: f64 = 4095.0;
const WEIGHTS: f64 = ROWS * 4096.0 / 2.0;

pub fn measure(rows: &Rows, sheet: &mut Sheet) {
    measure_sources(rows, sheet);
    measure_heaviest(rows, sheet);
}

fn measure_sources(rows: &Rows, sheet: &mut Sheet) {
    let held: Vec<Vec<f32>> = rows_of(&rows.memory).into_iter().flatten().collect();
    let (file, generated) = (open_native(&rows.file), decode_4096());
    let (mut read, mut made) = (RowBlock::default(), RowBlock::default());
    let [sum, reading, making] = interleave(
        rounds(21),
        [
            &mut || time(|| held.iter().map(|row| kernels::sum(row)).sum::<f64>()),
            &mut || time(|| read_all(&*file, &mut read)),
            &mut || time(|| read_all(&generated, &mut made)),
        ],
    );
    let rate = |times: &Times| format!("{} rows/s", grouped((ROWS / times.least()) as u64));
    sheet.line("summing the rows once, in memory", &sum, rate(&sum), "");
    sheet.line("reading the f32 file", &reading, rate(&reading), "");
    sheet.line("generating decode-4096", &making, rate(&making), "1,032,000 rows/s");
}

/// The replay finds everything else about a row with k out of reach, too: the difference is the k heaviest.
fn measure_heaviest(rows: &Rows, sheet: &mut Sheet) {
    let lanes = [lane("sliding-window", 1)];
    let select =
        |heavy_hitters: usize| replay_cost(&rows.memory, &lanes, &Options { heavy_hitters, ..on_threads(1) }).select;
    let [with, without] = interleave(rounds(21), [&mut || select(32), &mut || select(usize::MAX)]);
    let least = with.least() - without.least();
    let each = with.seconds().zip(without.seconds()).map(|(with, without)| with - without).collect();
    sheet.line("facts of all rows", &with, ns(with.least() / WEIGHTS) + " a weight", "");
    let share = ns(least / WEIGHTS) + " a weight";
    sheet.figure("of these, the 32 heaviest positions", [least, median(each)], share, "0.15 ns a weight");
}
