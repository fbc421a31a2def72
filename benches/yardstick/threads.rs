//! What a second thread brings: for many lanes on one stream, and for many streams with one lane.

use crate::Rows;
use crate::common::lanes::{lane, on_threads, replay_cost, sixty_four_lanes};
use crate::common::rounds::{interleave, rounds};
use crate::common::table::times;
use crate::common::traces::{many_streams, open_native, write_native};
use crate::sheet::Sheet;
use kvsim::replay::LanePlan;
use kvsim::trace::Source;
use kvsim::trace::safetensors::StoredType;

const STREAMS: u32 = 16;
const POSITIONS: usize = 2049;

pub fn measure(rows: &Rows, sheet: &mut Sheet) {
    let one_stream = open_native(&rows.file);
    compare("64 lanes from the file", &*one_stream, &sixty_four_lanes(), "50 ms, 1.8 x one thread", sheet);
    let file = rows.folder.at("streams.safetensors");
    write_native(&many_streams(STREAMS, POSITIONS), StoredType::F16, &file);
    let many = format!("{STREAMS} streams of {} rows from an f16 file, one lane", POSITIONS - 1);
    compare(&many, &*open_native(&file), &[lane("scissorhands", 512)], "1.8 x one thread", sheet);
    sheet.remark(
        "64 lanes: scissorhands and h2o, budgets 256, 512, 768 and 1024, windows 16, 24, 32, 48, 64, 96, 128 and 192."
            .to_owned(),
    );
}

fn compare(what: &str, source: &dyn Source, lanes: &[LanePlan], aim: &str, sheet: &mut Sheet) {
    let wall = |threads: usize| replay_cost(source, lanes, &on_threads(threads)).wall;
    let [one, two] = interleave(rounds(15), [&mut || wall(1), &mut || wall(2)]);
    let ratio = format!("{} one thread", times(one.least() / two.least()));
    sheet.line(&format!("{what}, one thread"), &one, String::new(), "");
    sheet.line(&format!("{what}, two threads"), &two, ratio, aim);
}
