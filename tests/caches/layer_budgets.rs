//! Budgets dealt out across layers, as the command line shows them.

use crate::common::binary::{Csv, Ran, kvsim};
use crate::common::files::Folder;
use crate::made::{known_rows, native, trace};
use crate::reference::SelfKind;
use kvsim::trace::memory::{MemoryTrace, Rows};

/// Single heads of these layers, 60 positions each.
fn layers(numbers: &[u32]) -> MemoryTrace {
    let rows: Vec<Rows> = numbers.iter().map(|layer| known_rows(*layer, 60)).collect();
    let streams: Vec<_> = numbers.iter().zip(&rows).map(|(layer, rows)| (*layer, "0", rows)).collect();
    trace(SelfKind::Included, 0, &streams)
}

fn run(path: &str, policies: &str, budget: &str, shape: &str, more: &[&str]) -> Ran {
    let args = ["replay", path, "--policy", policies, "--budget", budget, "--layer-budget", shape];
    kvsim(&[&args[..], more].concat())
}

/// The budgets of the layers for sliding-window, which needs no more than 1.
#[track_caller]
fn dealt(path: &str, budget: &str, shape: &str) -> String {
    let csv = Csv::parse(&run(path, "sliding-window", budget, shape, &["--per-stream"]).report());
    for row in 0..csv.len() {
        assert_eq!(csv.text(row, "budget"), budget, "the average asked for stands beside the layer's own");
        assert_eq!(csv.text(row, "layer_budget"), csv.text(row, "peak_kept"), "the budget reported is in force");
    }
    csv.column("layer_budget")
}

#[test]
fn each_layer_has_its_budget_in_the_report_and_the_total_is_kept() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2, 3, 4]));
    assert_eq!(dealt(&path, "20", "uniform"), "20 20 20 20 20");
    assert_eq!(dealt(&path, "20", "pyramid:3"), "30 25 20 15 10");
    assert_eq!(dealt(&path, "20", "funnel:3"), "10 15 20 25 30");
    assert_eq!(dealt(&path, "20", "pyramid:1"), "20 20 20 20 20");
    // 21 * 5 = 105 in proportion to 6 5 4 3 2 of 20: 31.5 26.25 21 15.75 10.5; the largest rests get the units.
    assert_eq!(dealt(&path, "21", "pyramid:3"), "32 26 21 16 10");
    assert_eq!(dealt(&path, "21", "funnel:3"), "11 16 21 26 31");
    let combined = Csv::parse(&run(&path, "sliding-window", "21", "pyramid:3", &[]).report());
    assert_eq!((combined.text(0, "budget"), combined.text(0, "layer_budget")), ("21", "21"));
}

#[test]
fn the_place_of_a_layer_is_its_number_where_the_model_is_known() {
    let folder = Folder::new();
    let some = layers(&[0, 4]);
    let path = native(&folder, "unknown.safetensors", &some);
    assert_eq!(dealt(&path, "20", "pyramid:3"), "30 10", "first and last of two");
    let path = native(&folder, "known.safetensors", &some.with_metadata("num_layers", "9"));
    assert_eq!(dealt(&path, "20", "pyramid:3"), "30 20", "first and middle of nine");
}

#[test]
fn a_file_deals_in_proportion_to_its_numbers() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2]));
    let table = folder.write("table.json", r#"{"0": 3, "1": 2, "2": 1}"#);
    assert_eq!(dealt(&path, "20", &table), "30 20 10");
    let counts = folder.write("counts.json", r#"{"2": 10, "1": 20, "0": 30}"#);
    assert_eq!(dealt(&path, "20", &counts), "30 20 10");
    let fine = folder.write("fine.json", r#"{"0": 0.000001, "1": 0.000002, "2": 0}"#);
    let ran = run(&path, "sliding-window", "20", &fine, &["--per-stream"]);
    assert!(ran.stderr.contains("the share of layer 2 was raised"), "{}", ran.stderr);
    assert_eq!(Csv::parse(&ran.stdout).column("layer_budget"), "20 40 1");
}

#[test]
fn tables_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2]));
    let refuses = |code: i32, shape: &str, parts: &[&str]| {
        run(&path, "sliding-window", "20", shape, &["-o", &folder.at("out.csv")]).refuses(code, parts);
        assert!(!folder.names().contains(&"out.csv".to_owned()), "nothing is left behind");
    };
    let table = |text: &str| folder.write("table.json", text);
    refuses(2, "no-such.json", &["\"no-such.json\"", "uniform, pyramid:RATIO, funnel:RATIO"]);
    for ratio in ["", "0.5", "-1", "x", "1e3", "inf", "NaN", "10000000", "1.0000001"] {
        refuses(2, &format!("pyramid:{ratio}"), &[&format!("{ratio:?} is not a ratio")]);
        refuses(2, &format!("funnel:{ratio}"), &[&format!("{ratio:?} is not a ratio")]);
    }
    refuses(1, &table("not json"), &["table.json", "not a table of budgets such as"]);
    refuses(1, &table("[1, 2, 3]"), &["table.json", "not a table of budgets such as"]);
    refuses(1, &table("{}"), &["table.json", "do not add up to anything"]);
    refuses(1, &table(r#"{"0": 0, "1": 0, "2": 0}"#), &["do not add up to anything"]);
    refuses(1, &table(r#"{"first": 1}"#), &["\"first\" is neither a layer"]);
    refuses(1, &table(r#"{"0": -1, "1": 1, "2": 1}"#), &["the budget of \"0\" is not a number"]);
    refuses(1, &table(r#"{"0": "3", "1": 1, "2": 1}"#), &["the budget of \"0\" is not a number"]);
    refuses(2, &table(r#"{"0": 1, "2": 1}"#), &["sliding-window", "has no layer 1, it names 0, 2"]);
}

#[test]
fn a_share_below_what_a_policy_needs_is_raised_and_said() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2]));
    let ran = run(&path, "h2o,tova", "20", "pyramid:9", &["--recent-window", "8", "--per-stream"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let note = "h2o at budget 20: the share of layer 2 was raised to what the policy needs";
    assert!(ran.stderr.starts_with("note: ") && ran.stderr.contains(note), "{}", ran.stderr);
    let csv = Csv::parse(&ran.stdout);
    assert_eq!(csv.column("policy"), "h2o tova h2o tova h2o tova");
    assert_eq!(csv.column("layer_budget"), "36 36 20 20 9 4", "recent-window + 1 for the one, no floor for the other");
    let combined = Csv::parse(&run(&path, "h2o", "20", "pyramid:9", &["--recent-window", "8", "-q"]).report());
    assert!((combined.number(0, "layer_budget") - 65.0 / 3.0).abs() < 1e-12, "more than asked for");
    let funnel = run(&path, "h2o", "10", "funnel:9", &["--recent-window", "9"]);
    assert!(funnel.stderr.contains("the share of layer 0 was raised"), "{}", funnel.stderr);
    let path = native(&folder, "b.safetensors", &layers(&[0, 1, 2, 3, 4]));
    let several = run(&path, "h2o", "10", "pyramid:9", &["--recent-window", "9"]);
    assert!(several.stderr.contains("the share of layers 3, 4 was raised"), "{}", several.stderr);
}

#[test]
fn a_policy_that_deals_by_its_own_rule_is_refused_together_with_a_shape() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2]));
    let table = folder.write("table.json", r#"{"0": 3, "1": 2, "2": 1}"#);
    for shape in ["pyramid:2", "funnel:2", &table] {
        let ran = run(&path, "pyramidkv", "40", shape, &[]);
        ran.refuses(2, &["pyramidkv", "it deals the budget out to layers by its own rule"]);
    }
    let ran = run(&path, "pyramidkv,tova", "40", "pyramid:2", &["--skip-invalid"]);
    assert_eq!((ran.code, Csv::parse(&ran.stdout).column("policy").as_str()), (0, "tova"));
    assert!(ran.stderr.contains("skipped pyramidkv"), "{}", ran.stderr);
    let own = Csv::parse(&run(&path, "pyramidkv", "40", "uniform", &["--per-stream"]).report());
    assert_eq!(own.column("layer_budget"), "64 40 33", "its own rule: 64, 40 and 16, which its window raises");
}

#[test]
fn heads_of_a_layer_that_share_a_cache_have_the_layers_budget_each() {
    let folder = Folder::new();
    let rows: Vec<Rows> = (0..8).map(|seed| known_rows(seed, 60)).collect();
    let names = ["0", "1", "2", "3"];
    let streams: Vec<_> = (0..8).map(|at| (at as u32 / 4, names[at % 4], &rows[at])).collect();
    let path = native(&folder, "a.safetensors", &trace(SelfKind::Included, 0, &streams));
    let csv = Csv::parse(&run(&path, "tova,oracle", "20", "pyramid:3", &["--kv-heads", "2", "--by", "layer"]).report());
    assert_eq!(csv.column("layer_budget"), "30 30 10 10");
    let each = Csv::parse(&run(&path, "tova", "20", "pyramid:3", &["--kv-heads", "2", "--per-stream"]).report());
    assert_eq!(each.column("layer_budget"), "30 30 10 10");
}

#[test]
fn coupled_policies_and_bounds_take_the_shape_too() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2]));
    let policies = "scissorhands-cross-layer,optimal,future-greedy,oracle";
    let csv = Csv::parse(&run(&path, policies, "20", "funnel:3", &["--recent-window", "2", "--per-stream"]).report());
    assert_eq!(csv.column("layer_budget"), "10 10 10 10 20 20 20 20 30 30 30 30");
    for row in 0..csv.len() {
        let peak = csv.text(row, "peak_kept");
        assert!(peak.is_empty() || peak == csv.text(row, "layer_budget"), "{}", csv.text(row, "policy"));
    }
    let oracle = |row: usize| csv.number(4 * row + 3, "retained_mass");
    assert!(oracle(0) < oracle(1) && oracle(1) < oracle(2));
}

#[test]
fn pyramidkv_is_snapkv_with_its_budgets_rounded_down() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &layers(&[0, 1, 2]));
    let figures = |policy: &str, shape: &str| {
        let csv =
            Csv::parse(&run(&path, policy, "21", shape, &["--recent-window", "2", "--per-stream", "-q"]).report());
        ["layer_budget", "retained_mass", "heavy_hits", "evicted", "peak_kept"].map(|column| csv.column(column))
    };
    let own = figures("pyramidkv", "uniform");
    assert_eq!(own[0], "33 21 8", "33.6, 21 and 8.4 rounded down");
    assert_eq!(figures("snapkv", "pyramid:4:down"), own);
    assert_eq!(figures("snapkv", "pyramid:4")[0], "34 21 8", "the largest fraction gets the rest");
}

#[test]
fn a_file_may_deal_to_caches_of_kv_heads() {
    let folder = Folder::new();
    let rows: Vec<Rows> = (0..8).map(|seed| known_rows(seed, 60)).collect();
    let names = ["0", "1", "2", "3"];
    let streams: Vec<_> = (0..8).map(|at| (at as u32 / 4, names[at % 4], &rows[at])).collect();
    let path = native(&folder, "a.safetensors", &trace(SelfKind::Included, 0, &streams));
    let table = folder.write("table.json", r#"{"0.kv0": 10, "0.kv1": 30, "1.kv0": 15, "1.kv1": 25}"#);
    let args = ["--kv-heads", "2", "--per-stream"];
    let csv = Csv::parse(&run(&path, "tova,sliding-window", "20", &table, &args).report());
    assert_eq!(csv.column("layer_budget"), "10 10 30 30 15 15 25 25");
    assert_eq!(csv.column("peak_kept"), csv.column("layer_budget"));
    let heads = run(&path, "tova", "20", &table, &["--kv-heads", "off", "-o", &folder.at("out.csv")]);
    heads.refuses(2, &["tova", "has no cache 0.0, it names 0.kv0, 0.kv1, 1.kv0, 1.kv1"]);
    let both = folder.write("both.json", r#"{"0": 1, "1.kv0": 1}"#);
    run(&path, "tova", "20", &both, &[]).refuses(1, &["both.json", "layers (\"3\") or caches (\"3.kv0\"), not both"]);
}
