//! `kvsim analyze` as a command: formats, choices and refusals.

use crate::common::binary::{Csv, kvsim, kvsim_in, kvsim_reading};
use crate::common::files::{Folder, json_lines};
use serde_json::Value;

const SMALL: &str = "traces/smollm2-prose-512.safetensors";

fn json(args: &[&str]) -> Value {
    let report = kvsim(&[&["analyze", "--format", "json"], args].concat()).report();
    serde_json::from_str(&report).expect("JSON")
}

#[test]
fn text_names_every_part_and_says_which_reading_means_something() {
    let text = kvsim(&["analyze", SMALL]).report();
    for part in [
        "traces/smollm2-prose-512.safetensors: self included, 512 positions, 2 streams\n",
        "Persistence of importance",
        "in rows 256 to 511",
        "Only equal-visibility means something: the union readings are near 1 for a random model too.",
        "Locality",
        "Advice: the smallest budget and recent window within 0.01 of the policy's best retained mass",
        "Swept: h2o, scissorhands, tova, snapkv, streaming-llm; budgets 16, 32, 64, 128, 256; recent windows 0, 8, 16, 32, 64\n",
        "Headroom: retained over optimal.",
    ] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn many_streams_are_summed_up_unless_all_are_asked_for() {
    let many = ["analyze", "traces/smollm2-prose-384.safetensors", "--no-advice", "-q"];
    let page = kvsim(&many).report();
    assert!(page.lines().count() < 30, "{page}");
    let all = kvsim(&[&many[..], &["--all"]].concat()).report();
    assert!(all.lines().count() > 60 && all.contains("Locality"), "{all}");
    // What the page says is least is the least of what the whole list holds.
    let csv = Csv::parse(&kvsim(&[&many[..], &["--format", "csv"]].concat()).report());
    let sizes = (0..csv.len()).filter(|row| csv.text(*row, "figure") == "effective_size");
    let least = sizes.min_by(|a, b| csv.number(*a, "value").total_cmp(&csv.number(*b, "value"))).expect("streams");
    let wanted = format!("{:.6}  {}.{}", csv.number(least, "value"), csv.text(least, "layer"), csv.text(least, "head"));
    let line = page.lines().find(|line| line.starts_with("effective size")).expect("it is summed up");
    assert!(line.contains(&wanted), "{wanted}: {line}");
}

#[test]
fn the_formats_hold_the_same_figures() {
    let report = json(&[SMALL]);
    let csv = Csv::parse(&kvsim(&["analyze", SMALL, "--format", "csv"]).report());
    let find = |keys: &[(&str, &str)]| {
        let row = (0..csv.len()).find(|row| keys.iter().all(|(column, text)| csv.text(*row, column) == *text));
        csv.number(row.expect("the figure is there"), "value")
    };
    for (index, [layer, head]) in [["15", "mean"], ["16", "6"]].iter().enumerate() {
        let stream = &report["streams"][index];
        assert_eq!(stream["stream"], format!("{layer}.{head}"));
        let of_stream = [("layer", *layer), ("head", *head)];
        let ratio = find(&[&of_stream[..], &[("reading", "equal-visibility"), ("figure", "ratio")]].concat());
        assert_eq!(stream["persistence"][2]["ratio"], ratio);
        let size = find(&[&of_stream[..], &[("figure", "effective_size")]].concat());
        assert_eq!(stream["locality"]["effective_size"], size);
    }
    let choice = &report["advice"]["recommended"][0];
    let budget = choice["budget"].to_string();
    let keys = [("analysis", "recommended"), ("policy", "h2o"), ("budget", &budget), ("figure", "retained_mass")];
    assert_eq!(choice["retained_mass"], find(&keys));
}

#[test]
fn streams_budgets_windows_and_tolerance_are_chosen() {
    let report =
        json(&[SMALL, "--layers", "16", "--budget", "12.5%,32", "--recent-window", "8..16x2", "--tolerance", "0.1"]);
    assert_eq!(report["streams"].as_array().map(Vec::len), Some(1));
    let advice = &report["advice"];
    assert_eq!(advice["budgets"], serde_json::json!([32, 64]));
    assert_eq!(advice["windows"], serde_json::json!([8, 16]));
    assert_eq!((&advice["tolerance"], &advice["caches"]), (&Value::from(0.1), &Value::from(1)));
    assert!(json(&[SMALL, "--no-advice"])["advice"].is_null());
}

#[test]
fn a_file_appears_and_standard_input_is_read() {
    let folder = Folder::new();
    let rows: Vec<Option<Vec<f32>>> = (1..40).map(|len| Some(vec![1.0 / len as f32; len])).collect();
    let ran = kvsim_reading(&json_lines(1, &rows), &["analyze", "-", "-o", &folder.at("out.txt")]);
    assert_eq!(ran.report(), "");
    assert!(folder.read("out.txt").contains("self excluded, 40 positions, 1 stream\n"));
    let nowhere = folder.at("no/out.txt");
    assert_eq!(
        kvsim(&["analyze", "no-such-trace", "-o", &nowhere]).refusal(1).split(':').next(),
        Some("cannot write \"".to_owned() + &nowhere + "\"").as_deref()
    );
}

#[test]
fn requests_without_sense_are_refused() {
    for (args, part) in [
        (&["--tolerance", "1.5"][..], "--tolerance: 1.5 is out of range"),
        (&["--tolerance", "nan"], "--tolerance: NaN is out of range"),
        (&["--layers", "9"], "--layers: no layer \"9\"; there are 15, 16"),
        (&["--budget", "0.2"], "write 20%"),
        (&["--recent-window", "few"], "--recent-window: \"few\" is not a whole number"),
    ] {
        kvsim(&[&["analyze", SMALL], args].concat()).refuses(2, &[part]);
    }
    assert_eq!(kvsim(&["analyze", SMALL, "--no-advice", "--budget", "9"]).code, 2);
    assert_eq!(kvsim(&["analyze"]).code, 2);
}

#[test]
fn a_trace_without_rows_is_analyzed_with_a_warning() {
    let folder = Folder::new();
    folder.write("empty.jsonl", "{\"kvsim\":1,\"self\":\"excluded\",\"seq_len\":0}\n");
    let ran = kvsim_in(folder.path(), &["analyze", "empty.jsonl"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "warning: empty.jsonl: there is no row to analyze\n"));
}
