//! Files of decisions: held to the slow reference, the same bytes on any number of threads, whole or not there.

use crate::as_reference::setting_of;
use crate::common::binary::kvsim;
use crate::common::files::{Folder, json_lines};
use crate::common::lanes::lane;
use crate::reference::{self, SelfKind};
use crate::rows;
use kvsim::decisions::Decisions;
use kvsim::position::Position;
use std::path::Path;

const POLICIES: [&str; 8] =
    ["h2o", "scissorhands", "tova", "snapkv", "sliding-window", "streaming-llm", "lru", "random"];

#[test]
fn a_file_says_what_the_slow_reference_says() {
    let (folder, rows) = (Folder::new(), rows(7, 60));
    for (kind, first) in [(SelfKind::Included, 0), (SelfKind::Excluded, 1)] {
        let trace = folder.write("t.jsonl", json_lines(first, &rows));
        let args = ["decisions", &trace, "-p", &POLICIES.join(","), "-b", "12", "--recent-window", "4"];
        let out = folder.at("d.jsonl");
        kvsim(&[&args[..], &["--sinks", "2", "-o", &out, "-q"]].concat()).report();
        let file = Decisions::read(Path::new(&out)).expect("it reads what it wrote");
        for (policy, left) in POLICIES.iter().zip(&file.left) {
            let own = kvsim::policy::table::find(policy).expect("in the table");
            let parameters = [("recent-window", 4), ("sinks", 2)];
            let takes = |(name, _): &&(&str, usize)| own.parameters.iter().any(|(own, _)| own.name == *name);
            let parameters: Vec<(&str, usize)> = parameters.iter().filter(takes).copied().collect();
            let setting = setting_of(&lane(policy, 12, &parameters));
            let outcome = reference::replay(&rows, kind, &setting, 8, false);
            let wanted = (first as u32..).zip(&outcome.steps).flat_map(|(step, outcome)| {
                outcome.victims.iter().map(move |position| (Position(*position), Position(step)))
            });
            assert_eq!(left[0], wanted.collect::<Vec<_>>(), "{policy}, {kind:?}");
        }
    }
}

#[test]
fn any_number_of_threads_and_any_company_gives_the_same_bytes() {
    let trace = "traces/smollm2-prose-384.safetensors";
    let run = |more: &[&str]| kvsim(&[&["decisions", trace, "-b", "64", "-q"], more].concat()).report();
    let all = ["-p", "h2o,scissorhands-cross-layer,future-greedy"];
    let one = run(&[&all[..], &["--threads", "1"]].concat());
    for threads in ["2", "7"] {
        assert_eq!(run(&[&all[..], &["--threads", threads]].concat()), one, "{threads} threads");
    }
    let of_lane = |report: &str, lane: usize| {
        let file = Decisions::read_from("it", report.as_bytes()).expect("sound");
        (file.header.lanes[lane].clone(), file.left[lane].clone())
    };
    for (index, policy) in ["h2o", "scissorhands-cross-layer", "future-greedy"].iter().enumerate() {
        assert_eq!(of_lane(&run(&["-p", policy]), 0), of_lane(&one, index), "{policy}");
    }
}

#[test]
fn the_header_says_what_decided() {
    let trace = "traces/smollm2-prose-384.safetensors";
    let args = ["decisions", trace, "-p", "h2o", "-b", "25%", "--heads", "kv1", "--layers", "3", "-q"];
    let report = kvsim(&[&args[..], &["--round-scores", "bf16"]].concat()).report();
    let wanted = r#"{"kvsim_decisions":1,"trace":"traces/smollm2-prose-384.safetensors","policy":"h2o","budget":96,"recent_window":32,"score":"sum","round_scores":"bf16","self":"included","seq_len":384,"caches":[{"layer":3,"head":"kv1"}]}"#;
    assert_eq!(report.lines().next(), Some(wanted));
    assert_eq!(report.lines().count(), 2);
    let file = Decisions::read_from("it", report.as_bytes()).expect("sound");
    assert_eq!(file.header.to_json().to_string(), wanted, "read and written again it is the same");
}

#[test]
fn what_cannot_be_decided_is_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let out = folder.at("d.jsonl");
    let refused = |args: &[&str], parts: &[&str]| {
        kvsim(&[&["decisions", "decode-4096", "-o", &out, "-q"], args].concat()).refuses(2, parts);
    };
    refused(&["-p", "oracle"], &["oracle", "holds no positions"]);
    refused(&["-p", "scissorhands", "--round-scores", "bf16"], &["scissorhands", "leave out --round-scores"]);
    refused(&["-p", "h2o", "--budget", "8"], &["recent-window 32 leaves nothing to evict"]);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_bad_file_is_refused_by_its_line() {
    let head =
        r#"{"kvsim_decisions":1,"policy":"p","self":"included","seq_len":9,"caches":[{"layer":0,"head":"kv0"}]}"#;
    let read = |text: &str| Decisions::read_from("f", text.as_bytes()).expect_err(text).to_string();
    for (line, wanted) in [
        ("", "f: no line for cache 0: the file was cut short"),
        (r#"{"cache":1,"position":[],"step":[]}"#, "f:2: \"cache\" is 1: there are 0..=0"),
        (r#"{"cache":0,"lane":1,"position":[],"step":[]}"#, "f:2: \"lane\" is 1"),
        (r#"{"cache":0,"position":[1],"step":[]}"#, "f:2: \"position\" and \"step\" are not two lists"),
        (r#"{"cache":0,"position":[5],"step":[4]}"#, "f:2: position 5 leaves at step 4"),
        (r#"{"cache":0,"position":[5],"step":[9]}"#, "f:2: position 5 leaves at step 9"),
        (r#"{"cache":0,"position":[5,5],"step":[6,7]}"#, "f:2: position 5 leaves twice"),
        ("{", "f:2: not JSON"),
    ] {
        let found = read(&format!("{head}\n{line}"));
        assert!(found.starts_with(wanted), "{line}: {found}");
    }
    let twice = r#"{"cache":0,"position":[],"step":[]}"#;
    assert_eq!(read(&format!("{head}\n{twice}\n{twice}\n")), "f:3: cache 0 comes twice");
    assert!(read("[]").starts_with("f:1: not decisions"));
    assert!(read(&head.replace("\"policy\":\"p\",", "")).contains("f:1: it has no \"policy\""));
}
