//! One lane beside the plain loop in C, on the same rows in the same rounds.

use crate::Rows;
use crate::c_loop::CLoop;
use crate::common::binary::wall_time;
use crate::common::lanes::{lane, on_threads, replay_cost};
use crate::common::rounds::{Times, interleave, rounds, shortest_of};
use crate::common::table::times;
use crate::sheet::Sheet;
use kvsim::replay::{NoObserver, caches_of, replay};
use kvsim::trace::Source;
use kvsim::trace::memory::MemoryTrace;
use std::time::Duration;

/// Tries in a round, of which the shortest counts, as in the loop in C.
const TRIES: usize = 3;

pub fn measure(rows: &Rows, sheet: &mut Sheet) {
    let c_loop = CLoop::build(rows);
    if let Err(reason) = &c_loop {
        sheet.remark(format!("The plain loop in C is left out: {reason}."));
    }
    for policy in ["scissorhands", "h2o"] {
        if let Ok(c_loop) = &c_loop {
            assert_eq!(c_loop.run(policy).figures, figures(&rows.memory, policy), "both replay the same");
        }
        compare(policy, rows, c_loop.as_ref().ok(), sheet);
    }
    if let Ok(c_loop) = &c_loop {
        let [read_once] = interleave(rounds(5), [&mut || c_loop.run("h2o").read_once]);
        sheet.line("plain loop in C: summing the rows once, in f32", &read_once, String::new(), "");
    }
    sheet.remark(format!(
        "One lane: budget 512, recent window 32, on decode-4096 as f32; the C loop is benches/baseline.c, gcc -O3 \
         -march=native, and reports the same retained mass and recall. Least and median of rounds taken in turn; \
         ratios are of the least, in a round the shortest of {TRIES} replays counts."
    ));
}

/// What kvsim finds, in the words of the loop in C.
fn figures(trace: &MemoryTrace, policy: &str) -> String {
    let caches = caches_of(trace.info()).expect("the trace is sound");
    let outcomes = replay(trace, &caches, &[lane(policy, 512)], &on_threads(1), &NoObserver);
    let tally = &outcomes.expect("the lane is possible")[0].tallies[0];
    let mass = tally.real("retained_mass_sum") / tally.count("rows_measured") as f64;
    let recall = tally.count("heavy_hits") as f64 / tally.count("heavy_possible") as f64;
    format!("mass {mass:.6} recall {recall:.6}")
}

fn compare(policy: &str, rows: &Rows, c_loop: Option<&CLoop>, sheet: &mut Sheet) {
    let lanes = [lane(policy, 512)];
    let cost = || replay_cost(&rows.memory, &lanes, &on_threads(1));
    let file = rows.file.to_str().expect("the target directory has a plain name");
    let process =
        |extra: &[&str]| wall_time(&[&["replay", file, "--policy", policy, "--budget", "512"], extra].concat());
    let [c, inside, call, single, whole] = interleave(
        rounds(21),
        [
            &mut || c_loop.map_or(Duration::ZERO, |c_loop| c_loop.run(policy).replay),
            &mut || {
                shortest_of(TRIES, || {
                    let cost = cost();
                    cost.select + cost.lanes
                })
            },
            &mut || shortest_of(TRIES, || cost().wall),
            &mut || shortest_of(TRIES, || process(&["--threads", "1"])),
            &mut || shortest_of(TRIES, || process(&[])),
        ],
    );
    let ratio = |times_: &Times| c_loop.map_or(String::new(), |_| format!("{} C", times(c.least() / times_.least())));
    if c_loop.is_some() {
        sheet.line(&format!("{policy}: plain loop in C"), &c, String::new(), "");
    }
    sheet.line(&format!("{policy}: replay only, one thread, rows in memory"), &inside, ratio(&inside), "4 x C");
    sheet.line(&format!("{policy}: the same with copying the rows"), &call, ratio(&call), "");
    sheet.line(&format!("{policy}: kvsim replay FILE, one thread"), &single, ratio(&single), "2 x C");
    sheet.line(&format!("{policy}: kvsim replay FILE"), &whole, ratio(&whole), "2 x C");
}
