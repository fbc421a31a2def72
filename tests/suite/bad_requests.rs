//! Requests that make no sense, and conditions of the machine: messages, exit codes, clean output.

use crate::common::binary::{Csv, Ran, command, kvsim, kvsim_in, kvsim_reading};
use crate::common::files::{Folder, header, json_lines, safetensors, tensor, trace_of};
use std::process::Stdio;

/// Three rows of four positions, self excluded, all weight on the first.
fn small_trace(folder: &Folder) -> String {
    let rows = [1, 2, 3].map(|len| Some((0..len).map(|at| if at == 0 { 1.0 } else { 0.0 }).collect()));
    folder.write("small.jsonl", json_lines(1, &rows))
}

#[track_caller]
fn replay_small(more: &[&str]) -> Ran {
    let folder = Folder::new();
    small_trace(&folder);
    kvsim_in(folder.path(), &[&["replay", "small.jsonl"], more].concat())
}

#[test]
fn a_share_of_less_than_one_position_becomes_one_with_a_note() {
    let ran = replay_small(&["--policy", "tova", "--budget", "20%,1,100%"]);
    assert_eq!(ran.stderr, "note: small.jsonl: a budget of less than one of 4 positions was raised to 1\n");
    let report = Csv::parse(&ran.stdout);
    assert_eq!((ran.code, report.column("budget")), (0, "1 4".to_owned()), "20% and 1 are the same lane");
    assert_eq!(report.column("budget_share"), "0.25 1");
}

#[test]
fn budgets_that_are_none_are_refused_with_how_to_write_them() {
    let cases = [
        ("0.2", "budget \"0.2\" is a bare fraction: write 20% for a share"),
        ("0.125", "write 12.5% "),
        ("0", "budget 0 keeps nothing: at least 1 is needed"),
        ("101%", "is not a percentage from 0% to 100%"),
        ("x", "neither a number of positions (512) nor a percentage (12.5%)"),
        ("99999999999999999999", "neither a number of positions"),
        ("5..3", "starts above its end"),
        ("1..9x1", "never reaches its end"),
        ("1,,2", "has an empty place"),
    ];
    for (budget, problem) in cases {
        replay_small(&["--policy", "tova", "--budget", budget]).refuses(2, &[problem]);
    }
}

#[test]
fn what_leaves_nothing_to_choose_between_is_refused_with_both_numbers() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--policy", "h2o", "--budget", "2", "--recent-window", "5"], &["h2o: recent-window 5", "budget 2"]),
        (&["--policy", "snapkv", "--budget", "5", "--recent-window", "5"], &["snapkv: recent-window 5", "budget 5"]),
        (&["--policy", "streaming-llm", "--budget", "2"], &["streaming-llm: sinks 4", "budget 2"]),
        (&["--policy", "random", "--budget", "9"], &["random: sinks 4 + recent-window 32", "budget 9"]),
    ];
    for (args, parts) in cases {
        replay_small(args).refuses(2, parts);
    }
}

#[test]
fn a_sweep_names_all_bad_combinations_before_it_reads_a_row() {
    let folder = Folder::new();
    folder.write("bad.safetensors", trace_of(&[1.0, f32::NAN, 0.5]));
    let args = ["replay", "bad.safetensors", "--policy", "h2o,streaming-llm", "--budget", "2,8"];
    let ran = kvsim_in(folder.path(), &[&args[..], &["--recent-window", "1,4,9"]].concat());
    let wanted = [
        "h2o: recent-window 4 leaves nothing to evict at budget 2",
        "h2o: recent-window 9 leaves nothing to evict at budget 2",
        "h2o: recent-window 9 leaves nothing to evict at budget 8",
        "streaming-llm: sinks 4 leaves nothing to evict at budget 2",
        "--skip-invalid runs the rest",
    ];
    ran.refuses(2, &wanted);
    assert!(!ran.stderr.contains("not a number"), "no row was read: {}", ran.stderr);
}

#[test]
fn skip_invalid_runs_the_rest_and_says_what_it_skipped() {
    let args = ["--policy", "h2o,streaming-llm", "--budget", "2,3", "--recent-window", "1,2", "--sinks", "2"];
    let ran = replay_small(&[&args[..], &["--skip-invalid"]].concat());
    let report = Csv::parse(&ran.stdout);
    let lanes = [report.column("policy"), report.column("budget"), report.column("recent_window")];
    assert_eq!(lanes, ["h2o h2o h2o streaming-llm", "2 3 3 3", "1 1 2 "]);
    let notes: Vec<&str> = ran.stderr.lines().collect();
    assert!(notes.len() == 2 && notes.iter().all(|note| note.starts_with("note: small.jsonl: skipped ")), "{notes:?}");
    let none = replay_small(&["--policy", "h2o", "--budget", "2", "--recent-window", "2", "--skip-invalid"]);
    none.refuses(2, &["no lane is left to run"]);
}

#[test]
fn numbers_too_large_are_refused_and_never_wrap() {
    let most = usize::MAX.to_string();
    let window = format!("recent-window {most} leaves nothing");
    replay_small(&["--policy", "h2o", "--budget", "3", "--recent-window", &most]).refuses(2, &[&window]);
    replay_small(&["--policy", "random", "--budget", "3", "--recent-window", &most, "--sinks", &most])
        .refuses(2, &["leaves nothing"]);
    let base = ["--budget", "3", "--recent-window", "0"];
    let random = [&base[..], &["--policy", "random", "--sinks", "0", "--seed", "4294967296"]].concat();
    replay_small(&random).refuses(2, &["seed 4294967296 is too large: at most 4294967295"]);
    let snapkv = [&base[..], &["--policy", "snapkv", "--obs-window", &most]].concat();
    replay_small(&snapkv).refuses(2, &["is too large: at most 4096"]);
    let report = replay_small(&["--policy", "tova,h2o,snapkv,pyramidkv,oracle", "--budget", &most]).report();
    assert_eq!(Csv::parse(&report).column("retained_mass"), "1 1 1 1 1");
    let threads = replay_small(&["--threads", &most]);
    assert_eq!((threads.code, threads.stdout.as_str()), (2, ""));
}

#[test]
fn names_that_nothing_has_are_refused_with_those_there_are() {
    replay_small(&["--policy", "tova,nonsense"]).refuses(2, &["unknown policy \"nonsense\"", "scissorhands"]);
    replay_small(&["--policy", "tova", "--layers", "7"]).refuses(2, &["--layers: no layer \"7\"; there are 0"]);
    replay_small(&["--policy", "tova", "--heads", "mean"]).refuses(2, &["--heads: no head \"mean\"; there are 0"]);
    replay_small(&["--policy", "tova", "--sinks", "4"]).refuses(
        2,
        &["--sinks: no chosen policy takes it; streaming-llm, random, simlayer-kv, vatp, expected-attention would"],
    );
    for args in [&["--view", "x"][..], &["--format", "x"], &["--on-bad-row", "x"], &["--heavy-hitters", "0"], &["-x"]] {
        let ran = replay_small(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
    }
}

#[test]
fn an_output_that_cannot_be_written_fails_before_a_row_is_read() {
    let folder = Folder::new();
    folder.write("bad.jsonl", "{\"step\":1,\"attn\":[-1]}\nno row\n");
    let missing = folder.at("no/such/folder.csv");
    let place = folder.path().to_str().expect("a plain name").to_owned();
    for path in [&missing, &place] {
        for flag in ["-o", "--per-step"] {
            let ran = kvsim_in(folder.path(), &["replay", "bad.jsonl", "--policy", "tova", flag, path]);
            ran.refuses(1, &[&format!("cannot write {path:?}")]);
            assert!(!ran.stderr.contains(".kvsim-"), "{}", ran.stderr);
        }
    }
    kvsim_reading("no row\n", &["replay", "-", "-o", &missing]).refuses(1, &["cannot write"]);
    kvsim(&["generate", "decode-4096", "-o", &missing]).refuses(1, &["cannot write"]);
    assert_eq!(folder.names(), ["bad.jsonl"]);
}

#[test]
fn a_failed_run_leaves_an_older_output_as_it_was() {
    let folder = Folder::new();
    folder.write("bad.jsonl", "{\"step\":1,\"attn\":[-1]}\n");
    folder.write("out.csv", "older");
    kvsim_in(folder.path(), &["replay", "bad.jsonl", "--policy", "tova", "-o", "out.csv"]).refuses(1, &["negative"]);
    assert_eq!(
        (folder.read("out.csv").as_str(), folder.names()),
        ("older", vec!["bad.jsonl".to_owned(), "out.csv".to_owned()])
    );
}

#[test]
fn an_empty_trace_has_no_steps_and_blank_means() {
    let folder = Folder::new();
    let header = header(&[("attention.0.0", tensor("F32", 0, [0, 0]))]);
    folder.write("empty.safetensors", safetensors(&header, &[]));
    folder.write("empty.jsonl", "");
    folder.write("header.jsonl", "{\"kvsim\":1,\"self\":\"included\",\"seq_len\":6}\n");
    for name in ["empty.safetensors", "empty.jsonl", "header.jsonl"] {
        let ran = kvsim_in(folder.path(), &["replay", name, "--policy", "tova,full,oracle", "--budget", "2"]);
        assert_eq!(ran.stderr, format!("warning: {name}: there is no row to replay\n"));
        let report = Csv::parse(&ran.stdout);
        assert_eq!((ran.code, report.column("steps")), (0, "0 0 0".to_owned()), "{name}");
        for blank in ["retained_mass", "heavy_recall", "pivotal_hit_rate", "row_mass", "min_step_mass", "mean_kept"] {
            assert_eq!(report.column(blank), "  ", "{name}: {blank}");
        }
        assert_eq!(kvsim_in(folder.path(), &["inspect", name]).code, 0, "{name}");
    }
}

#[test]
fn zero_prints_0_and_undefined_prints_nothing() {
    let report = Csv::parse(&replay_small(&["--policy", "sliding-window,oracle", "--budget", "1"]).report());
    assert_eq!(report.text(0, "min_step_mass"), "0");
    assert_eq!(report.text(0, "broken_rows"), "2");
    assert_eq!(report.text(1, "broken_row_rate"), "0");
    assert_eq!(report.text(1, "heavy_recall"), "", "a bound has no kept set to speak of");
    let report = Csv::parse(&replay_small(&["--policy", "tova", "--budget", "4"]).report());
    assert_eq!((report.text(0, "retained_mass_full"), report.text(0, "evicted")), ("", "0"), "nothing was evicted");
    assert_eq!(report.text(0, "recent_window"), "", "tova has none");
}

#[test]
fn the_report_is_the_same_in_any_locale() {
    let args = ["replay", "traces/smollm2-prose-512.safetensors", "--budget", "64", "--format"];
    for format in ["csv", "table", "json"] {
        let args = [&args[..], &[format]].concat();
        let plain = kvsim(&args).report();
        let german =
            command(&args).env("LC_ALL", "de_DE.UTF-8").env("LANG", "de_DE.UTF-8").output().expect("it starts");
        assert_eq!(String::from_utf8(german.stdout).expect("UTF-8"), plain);
    }
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let budgets = ["replay", "traces/smollm2-prose-512.safetensors", "--policy", "tova", "--budget", "1..400"];
    let commands: &[&[&str]] =
        &[&budgets, &["inspect", "decode-4096"], &["policies"], &["vectors", "vectors/h2o.json"]];
    for args in commands {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn file_names_that_are_not_utf8_work() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let name = |end: &[u8]| OsString::from_vec([b"tr\xe4ce\xff.", end].concat());
    let folder = Folder::new();
    let small = small_trace(&folder);
    if std::fs::copy(&small, folder.path().join(name(b"jsonl"))).is_err() {
        println!("skipped: this file system takes UTF-8 names only");
        return;
    }
    let words = ["replay", "--policy", "tova", "--budget", "2", "-o"].map(OsString::from);
    let args = [&words[..], &[name(b"csv"), name(b"jsonl")]].concat();
    assert_eq!(kvsim_in(folder.path(), &args).report(), "");
    let report = std::fs::read_to_string(folder.path().join(name(b"csv"))).expect("it was written");
    assert!(Csv::parse(&report).text(0, "trace").ends_with(".jsonl"));
    let spec = [&["generate", "decode-4096", "--seq-len", "9", "-o"].map(OsString::from)[..], &[name(b"safetensors")]];
    kvsim_in(folder.path(), &spec.concat()).report();
    let again = [&["replay", "--quiet", "--policy", "tova"].map(OsString::from)[..], &[name(b"safetensors")]].concat();
    assert_eq!(Csv::parse(&kvsim_in(folder.path(), &again).report()).text(0, "steps"), "8");
}

#[test]
fn an_output_that_is_also_an_input_or_another_output_is_refused_and_nothing_is_lost() {
    let folder = Folder::new();
    folder.write("t.jsonl", "{\"step\":1,\"attn\":[1]}\n");
    let before = std::fs::read(folder.path().join("t.jsonl")).expect("there");
    for more in [&["-o", "./t.jsonl"][..], &["--per-step", "t.jsonl"], &["-o", "x.csv", "--per-step", "./x.csv"]] {
        let ran = kvsim_in(folder.path(), &[&["replay", "t.jsonl", "--policy", "full"], more].concat());
        ran.refuses(2, &["choose another name"]);
    }
    assert_eq!(std::fs::read(folder.path().join("t.jsonl")).expect("there"), before);
    assert_eq!(folder.names(), ["t.jsonl"]);
}
