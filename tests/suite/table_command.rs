//! `kvsim table`: comparison tables, and the blocks of a document that hold them.

use crate::common::binary::{Ran, kvsim, kvsim_in, kvsim_reading};
use crate::common::files::Folder;

/// What `kvsim replay` might have written, cut down to a few columns.
const RESULTS: &str = "\
policy,budget,recent_window,retained_mass,heavy_recall,peak_miss_rate
full,,,1,1,0
h2o,64,32,0.5,0.75,0.25
h2o,128,32,0.75,0.875,0.125
tova,64,,0.625,0.5,0.5
tova,128,,0.75,1,0.0625
oracle,64,,0.9,,
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("r.csv", RESULTS);
    folder
}

fn table(more: &[&str]) -> Ran {
    kvsim_in(folder().path(), &[&["table", "r.csv"], more].concat())
}

#[test]
fn policies_stand_against_budgets_with_the_best_in_bold() {
    let wanted = "\
| policy |           no budget |               budget 64 |                  budget 128 |
| ------ | ------------------: | ----------------------: | --------------------------: |
| full   | 1.000000 / 1.000000 |                         |                             |
| h2o    |                     | 0.500000 / **0.750000** |     **0.750000** / 0.875000 |
| tova   |                     | **0.625000** / 0.500000 | **0.750000** / **1.000000** |
| oracle |                     |            0.900000 / - |                             |
";
    let found = table(&[]).report();
    assert_eq!(found, wanted, "\n{found}");
}

#[test]
fn where_less_is_better_the_least_is_in_bold() {
    let found = table(&["--values", "peak_miss_rate", "--filter", "budget=64"]).report();
    assert!(found.contains("**0.250000**") && !found.contains("**0.500000**"), "{found}");
    let plain = table(&["--values", "peak_miss_rate", "--no-bold"]).report();
    assert!(!plain.contains("**"), "{plain}");
}

#[test]
fn text_has_no_bold_and_no_bars() {
    let found = table(&["--format", "text", "--filter", "policy=tova"]).report();
    assert_eq!(
        found,
        "policy            budget 64           budget 128\ntova    0.625000 / 0.500000  0.750000 / 1.000000\n"
    );
}

#[test]
fn the_difference_of_two_rows_is_a_row_of_its_own() {
    let found = table(&["--difference", "h2o,tova", "--format", "text"]).report();
    let last: Vec<&str> = found.lines().last().expect("a row").split_whitespace().collect();
    assert!(last.join(" ").contains("difference"), "{found}");
    assert!(last.join(" ").ends_with("0.125000 / 0.250000 0.000000 / 0.125000"), "{found}");
    table(&["--difference", "h2o,snapkv"]).refuses(1, &["no row \"snapkv\"; there are full h2o tova oracle"]);
    table(&["--difference", "h2o"]).refuses(2, &["--difference \"h2o\": write two rows, A,B"]);
}

#[test]
fn a_cell_that_several_lines_would_fill_is_refused_with_the_columns_that_vary() {
    let folder = folder();
    folder.write("more.csv", RESULTS.replace("h2o,64,32,0.5", "h2o,64,16,0.4"));
    let both = kvsim_in(folder.path(), &["table", "r.csv", "more.csv", "--filter", "policy=h2o"]);
    both.refuses(1, &["several lines would fill one cell; they differ in recent_window", "--filter recent_window="]);
    let args = ["table", "r.csv", "more.csv", "--filter", "policy=h2o", "--filter", "budget=64"];
    let chosen = [&args[..], &["--rows", "recent_window", "--columns", "policy"]].concat();
    let found = kvsim_in(folder.path(), &chosen).report();
    assert!(found.contains("| 32 ") && found.contains("| 16 ") && found.contains("policy h2o"), "{found}");
    let twice = kvsim_in(folder.path(), &["table", "r.csv", "r.csv"]);
    twice.refuses(1, &["two lines of the results are the same: the same file twice?"]);
}

#[test]
fn several_columns_can_be_rows() {
    let found =
        table(&["--rows", "policy,recent_window", "--filter", "budget=64", "--values", "heavy_recall"]).report();
    assert!(found.starts_with("| policy | recent_window |"), "{found}");
    assert!(found.contains("| h2o    | 32 "), "{found}");
}

#[test]
fn what_is_no_result_is_refused() {
    table(&["--rows", "nonsense"]).refuses(1, &["r.csv: no column \"nonsense\"; there are policy, budget"]);
    table(&["--values", "nonsense"]).refuses(1, &["no column \"nonsense\""]);
    table(&["--filter", "policy=nonsense"])
        .refuses(1, &["no line has policy=nonsense; policy is full, h2o, tova, oracle"]);
    table(&["--filter", "policy=full", "--filter", "budget=64"])
        .refuses(1, &["no line has budget=64 with the filters before it; budget is (blank)"]);
    table(&["--filter", "policy"]).refuses(2, &["--filter \"policy\": write column=value"]);
    table(&["--values", "policy"]).refuses(1, &["policy is \"full\", not a number"]);
    let folder = folder();
    folder.write("other.csv", "a,b\n1,2\n");
    let mixed = kvsim_in(folder.path(), &["table", "r.csv", "other.csv"]);
    mixed.refuses(1, &["other.csv: none of its columns is one of a result: there are a, b"]);
    folder.write("ragged.csv", "policy,budget,retained_mass,heavy_recall\nh2o,64\n");
    kvsim_in(folder.path(), &["table", "ragged.csv"])
        .refuses(1, &["ragged.csv: line 2: it has 2 cells where the header has 4"]);
    kvsim_in(folder.path(), &["table", "missing.csv"]).refuses(1, &["missing.csv"]);
}

#[test]
fn results_can_come_from_a_replay_through_a_pipe() {
    let results = kvsim(&["replay", "--policy", "scissorhands,h2o", "--budget", "256,512"]).report();
    let found = kvsim_reading(&results, &["table", "-", "--difference", "scissorhands,h2o"]).report();
    assert!(found.contains("0.641318 / 0.882339") && found.contains("0.643895"), "{found}");
    let last = found.lines().last().expect("a row");
    assert!(last.starts_with("| difference") && last.contains("0.002577 / 0.003922"), "{last}");
}

const DOCUMENT: &str = "before\n\n<!-- kvsim:begin policies -->\nstale\n<!-- kvsim:end policies -->\n\nafter\n";

#[test]
fn a_block_is_checked_refreshed_and_found_up_to_date() {
    let folder = folder();
    folder.write("doc.md", DOCUMENT);
    let into = ["table", "r.csv", "--into", "doc.md", "--block", "policies"];
    let check = || kvsim_in(folder.path(), &[&into[..], &["--check"]].concat());
    check().refuses(1, &["doc.md: block \"policies\" is out of date", "without --check"]);
    assert_eq!(folder.read("doc.md"), DOCUMENT, "a check changes nothing");
    assert_eq!(kvsim_in(folder.path(), &into).report(), "");
    let fresh = folder.read("doc.md");
    assert!(fresh.starts_with("before\n\n<!-- kvsim:begin policies -->\n| policy |"), "{fresh}");
    assert!(fresh.ends_with("|\n<!-- kvsim:end policies -->\n\nafter\n"), "{fresh}");
    assert_eq!(check().report(), "");
    assert_eq!(folder.names(), ["doc.md", "r.csv"]);
}

#[test]
fn a_document_without_the_block_is_refused_and_left_alone() {
    let folder = folder();
    folder.write("doc.md", DOCUMENT);
    let into = |file: &str, block: &str| kvsim_in(folder.path(), &["table", "r.csv", "--into", file, "--block", block]);
    into("doc.md", "other").refuses(1, &["doc.md: no line <!-- kvsim:begin other -->"]);
    folder.write("twice.md", DOCUMENT.repeat(2));
    into("twice.md", "policies").refuses(1, &["twice.md: several lines <!-- kvsim:begin policies -->"]);
    into("missing.md", "policies").refuses(1, &["missing.md"]);
    assert_eq!(folder.read("doc.md"), DOCUMENT);
    for half in [&["--into", "doc.md"][..], &["--block", "policies"], &["--check"]] {
        assert_eq!(table(half).code, 2, "{half:?} needs the others");
    }
}

#[test]
fn each_policy_stands_at_its_own_best_window() {
    let sweep = kvsim(&[
        "replay",
        "traces/smollm2-prose-384.safetensors",
        "--policy",
        "scissorhands,h2o,tova",
        "--budget",
        "64",
        "--recent-window",
        "24,32,40",
        "--format",
        "csv",
        "-q",
    ]);
    let table = |values: &str| {
        let args = ["table", "-", "--best", "recent_window", "--values", values, "--no-bold", "--format", "table"];
        kvsim_reading(&sweep.stdout, &args).report()
    };
    let by_mass = table("retained_mass,peak_miss_rate");
    assert!(by_mass.contains("scissorhands  0.918472 / 0.007451 (40)"), "{by_mass}");
    assert!(by_mass.contains("h2o           0.910835 / 0.008608 (40)"), "{by_mass}");
    assert!(by_mass.lines().last().is_some_and(|tova| tova.ends_with("0.928057 / 0.010055")), "{by_mass}");
    let by_misses = table("peak_miss_rate,retained_mass");
    assert!(by_misses.contains("scissorhands  0.006366 / 0.918088 (32)"), "{by_misses}");
    let refused = ["table", "-", "--best", "steps", "--values", "retained_mass"];
    kvsim_reading(&sweep.stdout, &refused).refuses(1, &["steps is a figure"]);
}
