//! Many streams on any number of threads: the same bytes, the same errors.

use crate::common::binary::{Ran, kvsim};
use crate::common::files::Folder;
use crate::made::{known_rows, trace, unsound_native};
use crate::reference::SelfKind;
use kvsim::trace::memory::Rows;

const POLICIES: &str = "full,random,h2o,scissorhands,scissorhands-paper,scissorhands-cross-layer,tova,snapkv,oracle,\
                        optimal,future-greedy";

/// Five layers of three heads, the rows of one of them changed.
fn file(folder: &Folder, change: impl Fn(usize, &mut Rows)) -> String {
    let names = ["0", "1", "2"];
    let rows: Vec<Rows> = (0..15)
        .map(|stream| {
            let mut rows = known_rows(stream as u32, 50);
            change(stream, &mut rows);
            rows
        })
        .collect();
    let streams: Vec<_> = rows.iter().enumerate().map(|(at, rows)| (at as u32 / 3, names[at % 3], rows)).collect();
    let source = trace(SelfKind::Included, 0, &streams).with_metadata("sliding_window.1", "12");
    unsound_native(folder, "a.safetensors", &source.with_metadata("prompt_len", "20"))
}

/// Runs on 1, 2, 3 and 16 threads, which must all say the same.
#[track_caller]
fn same_on_all(path: &str, more: &[&str]) -> Ran {
    let run = |threads: &str| {
        let args =
            ["replay", path, "--policy", POLICIES, "--budget", "8,15", "--recent-window", "3", "--sinks", "2", "-q"];
        kvsim(&[&args[..], &["--threads", threads], more].concat())
    };
    let one = run("1");
    for threads in ["2", "3", "16"] {
        assert_eq!(run(threads), one, "{threads} threads, {more:?}");
    }
    one
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = Folder::new();
    let path = file(&folder, |_, _| {});
    let shapes: [&[&str]; 6] = [
        &[],
        &["--per-stream"],
        &["--by", "layer", "--prompt", "block"],
        &["--kv-heads", "1", "--per-stream"],
        &["--layers", "1", "--layer-budget", "funnel:2"],
        &["--max-memory", "1M"],
    ];
    for more in shapes {
        same_on_all(&path, more).report();
    }
}

#[test]
fn a_report_of_steps_changes_no_figure_and_is_the_same_on_any_number_of_threads() {
    let folder = Folder::new();
    let path = file(&folder, |_, _| {});
    let plain = same_on_all(&path, &["--per-stream"]).report();
    let steps = |threads: &str| {
        let out = folder.at("steps.csv");
        let args =
            ["replay", &path, "--policy", POLICIES, "--budget", "8,15", "--recent-window", "3", "--sinks", "2", "-q"];
        let more = ["--per-stream", "--threads", threads, "--per-step", &out];
        assert_eq!(kvsim(&[&args[..], &more].concat()).report(), plain, "{threads} threads");
        folder.read("steps.csv")
    };
    let one = steps("1");
    // `full` once, nine at two budgets, and the oracle keeps nothing.
    assert_eq!(one.lines().count(), 1 + 15 * 50 * 19);
    assert!(steps("2") == one && steps("3") == one, "the same steps in the same order");
}

#[test]
fn of_several_bad_streams_the_first_is_named_however_many_threads_there_are() {
    let folder = Folder::new();
    // Stream 5 is bad late, those after it at once: they would come first.
    let path = file(&folder, |stream, rows| match stream {
        5 => rows[49] = Some([vec![-1.0], vec![0.04; 49]].concat()),
        6..15 => rows[0] = Some(vec![f32::NAN]),
        _ => {}
    });
    same_on_all(&path, &[]).refusal(1);
    // Streams are replayed in parallel, or planned ahead in parallel.
    for policy in ["tova", "optimal"] {
        for threads in ["1", "2", "3", "4", "7", "16"].repeat(5) {
            let ran = kvsim(&["replay", &path, "--policy", policy, "--budget", "40", "--threads", threads, "-q"]);
            ran.refuses(1, &["layer 1 head 2: row 49", "weight -1 is negative"]);
        }
    }
}
