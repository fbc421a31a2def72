//! The vector files: engine, reference and binary give the answers that they record.

use crate::common::binary::kvsim;
use crate::common::files::{Folder, package};
use crate::reference::run_vector_file;
use kvsim::policy::table::{Make, POLICIES, PolicyEntry, find};
use kvsim::vectors::run_file;
use serde_json::Value;
use std::path::PathBuf;

/// Fewest cases that pin a policy.
const CASES: usize = 6;

/// Every vector file, in order of name.
fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(package("vectors")).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn read(path: &PathBuf) -> Value {
    let text = std::fs::read(path).expect("the file can be read");
    serde_json::from_slice(&text).expect("the file is JSON")
}

/// The policy of a file, where the table has it.
fn policy_of(file: &Value) -> Option<&'static PolicyEntry> {
    let name = file["policy"].as_str().expect("a vector file names its policy");
    find(name.strip_prefix("kv-cache/").expect("files name the family too"))
}

fn text(value: &Value) -> String {
    serde_json::to_string(value).expect("JSON can be written")
}

#[test]
fn the_engine_gives_every_answer_on_record() {
    for path in files().iter().filter(|path| policy_of(&read(path)).is_some()) {
        let report = run_file(path).expect("a sound vector file");
        assert!(report.failures.is_empty(), "{}: {}", path.display(), report.failures.join("\n"));
        assert!(report.cases > 0, "{}", path.display());
    }
}

#[test]
fn the_reference_gives_every_answer_on_record() {
    // Those of policies that look at keys and values have their reference in tests/qkv.
    let of_rows = |path: &PathBuf| policy_of(&read(path)).is_none_or(|entry| !entry.needs_more_than_rows());
    for path in files().into_iter().filter(of_rows) {
        let differences = run_vector_file(&read(&path));
        assert!(differences.is_empty(), "{}: {}", path.display(), differences.join("\n"));
    }
}

#[test]
fn every_policy_of_the_table_has_a_file_of_enough_cases() {
    for entry in POLICIES.iter().filter(|entry| matches!(entry.make, Make::Policy(_))) {
        let path = package("vectors").join(format!("{}.json", entry.name));
        assert!(path.exists(), "{} has no vectors: add {}", entry.name, path.display());
        let cases = read(&path)["cases"].as_array().map_or(0, Vec::len);
        assert!(cases >= CASES, "{} has {cases} cases, {CASES} are needed", entry.name);
    }
}

#[test]
fn no_two_cases_of_a_file_share_a_name() {
    for path in files() {
        let file = read(&path);
        let mut names: Vec<&str> =
            file["cases"].as_array().into_iter().flatten().filter_map(|case| case["name"].as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", path.display());
    }
}

#[test]
fn the_command_counts_the_cases_that_agree() {
    let run = kvsim(&["vectors", "vectors/h2o.json", "vectors/tova.json"]).report();
    let lines: Vec<&str> = run.lines().collect();
    let cases = |name: &str| read(&package(name))["cases"].as_array().map_or(0, Vec::len);
    let (h2o, tova) = (cases("vectors/h2o.json"), cases("vectors/tova.json"));
    assert_eq!(lines[0], format!("vectors/h2o.json: h2o: {h2o} of {h2o} cases agree"));
    assert_eq!(lines[1], format!("vectors/tova.json: tova: {tova} of {tova} cases agree"));
}

/// A file of one case: h2o at budget 2 evicts the lighter of two positions.
fn small_file() -> Value {
    serde_json::json!({ "policy": "h2o", "version": 1, "cases": [
        { "name": "the lighter one goes", "params": { "budget": 2, "recentWindow": 1 }, "steps": [
            { "call": "onDecodeStep", "args": [1, [1]] },
            { "call": "onDecodeStep", "args": [2, [0.25, 0.75]] },
            { "call": "evict", "args": [2], "expect": [1] },
            { "call": "keptCount", "args": [], "expect": 2 },
        ] },
    ] })
}

#[test]
fn a_bare_policy_name_is_accepted() {
    let folder = Folder::new();
    let path = folder.write("bare.json", text(&small_file()));
    assert_eq!(kvsim(&["vectors", &path]).report(), format!("{path}: h2o: 1 of 1 cases agree\n"));
}

#[test]
fn a_wrong_expectation_fails_the_command_with_the_first_difference() {
    let mut file = small_file();
    file["cases"][0]["steps"][2]["expect"] = serde_json::json!([0]);
    file["cases"][0]["steps"][3]["expect"] = serde_json::json!(7);
    let folder = Folder::new();
    let path = folder.write("wrong.json", text(&file));
    let run = kvsim(&["vectors", "vectors/tova.json", &path]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    let wanted = format!(
        "{path}: h2o: 0 of 1 cases agree\n  case \"the lighter one goes\": step 3: evict[2] is [1], expected [0]\n"
    );
    assert!(run.stdout.ends_with(&wanted), "{}", run.stdout);
}

#[test]
fn a_file_that_is_no_vector_file_is_refused() {
    let folder = Folder::new();
    let with = |key: &str, value: Value| {
        let mut file = small_file();
        file[key] = value;
        text(&file)
    };
    let broken = [
        ("{\"policy\": \"h2o\"}".to_owned(), "not a vector file"),
        ("{".to_owned(), ":1: not a vector file"),
        (with("version", 2.into()), "version 2, this version reads 1"),
        (with("policy", "kv-cache/nonsense".into()), "unknown policy \"kv-cache/nonsense\""),
        (with("policy", "oracle".into()), "unknown policy \"oracle\""),
    ];
    for (content, problem) in broken {
        let path = folder.write("broken.json", content);
        kvsim(&["vectors", &path]).refuses(1, &[&path, problem]);
    }
}

#[test]
fn a_case_that_asks_the_impossible_fails_instead_of_passing() {
    let folder = Folder::new();
    let steps = [
        (serde_json::json!({ "call": "votesOf", "args": [0], "expect": 0 }), "no such call"),
        (serde_json::json!({ "call": "onDecodeStep", "args": [1, [1, 1]] }), "2 weights for 1 kept"),
        (serde_json::json!({ "call": "onDecodeStep", "args": [0, [1]] }), "does not follow the newest"),
        (serde_json::json!({ "call": "onDecodeStep", "args": [1, [-1]] }), "weight -1 is negative: attention weights"),
        (serde_json::json!({ "call": "onDecodeStep", "args": [1, [1e39]] }), "weight inf is infinite"),
        (serde_json::json!({ "call": "evict", "args": ["x"] }), "argument 1 must be a whole number"),
        (serde_json::json!({ "call": "evict", "args": [0], "expect": [0] }), "0 victims of 1 held, 1 must go"),
    ];
    for (step, problem) in steps {
        let mut file = small_file();
        file["cases"][0]["steps"] = serde_json::json!([step]);
        let run = kvsim(&["vectors", &folder.write("impossible.json", text(&file))]);
        assert_eq!(run.code, 1, "{problem}");
        assert!(run.stdout.contains(problem), "{problem}: {}", run.stdout);
    }
}
