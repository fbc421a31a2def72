//! Traces that are none: one line that names file, place and remedy, exit 1, and nothing else left.

use crate::common::binary::{Csv, Ran, kvsim, kvsim_in, kvsim_reading, without};
use crate::common::files::{Folder, header, safetensors, tensor, trace_of};
use serde_json::{Value, json};

/// Replays a file under a relative name and checks that nothing but the file is there afterwards.
#[track_caller]
fn replayed(name: &str, content: impl AsRef<[u8]>, more: &[&str]) -> Ran {
    let folder = Folder::new();
    folder.write(name, content);
    let args = ["replay", name, "--policy", "tova", "--budget", "2"];
    let to_files = ["-o", "out.csv", "--per-step", "steps.csv"];
    let ran = kvsim_in(folder.path(), &[&args, more, &to_files].concat());
    if ran.code != 0 {
        assert_eq!(folder.names(), [name], "nothing is left behind");
        let to_stdout = kvsim_in(folder.path(), &[&args, more].concat());
        assert_eq!((ran.code, &ran.stdout), (to_stdout.code, &to_stdout.stdout), "the same wherever the report goes");
    }
    ran
}

#[track_caller]
fn refused(name: &str, content: impl AsRef<[u8]>, parts: &[&str]) {
    let ran = replayed(name, content, &[]);
    ran.refuses(1, parts);
    assert!(ran.refusal(1).starts_with(name), "the file comes first: {}", ran.stderr);
}

/// A header of one sound stream of one weight, with one part changed.
fn header_with(path: &[&str], value: Value) -> String {
    let mut text: Value = serde_json::from_str(&header(&[("attention.0.0", tensor("F32", 1, [0, 4]))])).expect("sound");
    let mut place = &mut text;
    for key in path {
        place = &mut place[*key];
    }
    *place = value;
    text.to_string()
}

const FOUR_BYTES: [u8; 4] = 1.0_f32.to_le_bytes();

#[test]
fn a_file_too_short_for_a_header_is_refused() {
    refused("t.safetensors", [], &["t.safetensors: 0 bytes is too short"]);
    refused("t.safetensors", [1; 7], &["7 bytes is too short"]);
}

#[test]
fn a_header_longer_than_the_file_is_refused_without_being_read() {
    for claimed in [9, 1 << 20, 99_999_999, u64::MAX] {
        let bytes = [&claimed.to_le_bytes()[..], b"{}"].concat();
        let claim = format!("the header claims {claimed} bytes, the file has 10");
        refused("t.safetensors", bytes, &[&claim, "truncated, or not safetensors"]);
    }
}

#[test]
fn a_truncated_file_and_one_that_is_too_long_are_refused_with_both_lengths() {
    let whole = trace_of(&[1.0, 0.5, 0.5]);
    let described = format!("the header describes {}", whole.len());
    refused("t.safetensors", &whole[..whole.len() - 1], &["truncated", &described]);
    refused("t.safetensors", &whole[..whole.len() - 12], &["truncated", &described]);
    refused("t.safetensors", [&whole[..], b"x"].concat(), &["too long", &described]);
}

#[test]
fn offsets_out_of_range_or_overlapping_or_with_gaps_are_refused() {
    let entries: &[&[(&str, Value)]] = &[
        &[("attention.0.0", tensor("F32", 1, [0, 8]))],
        &[("attention.0.0", tensor("F32", 1, [4, 8]))],
        &[("attention.0.0", tensor("F32", 1, [4, 0]))],
        &[("attention.0.0", tensor("F32", 1, [0, 4])), ("attention.0.1", tensor("F32", 1, [0, 4]))],
        &[("attention.0.0", tensor("F32", 3, [0, 12])), ("attention.0.1", tensor("F32", 3, [8, 20]))],
        &[("attention.0.0", tensor("F32", 1, [0, 4])), ("attention.0.1", tensor("F32", 1, [8, 12]))],
        &[("attention.0.0", tensor("F32", usize::MAX, [0, 4]))],
        &[("attention.0.0", tensor("F32", 1, [usize::MAX - 3, usize::MAX]))],
    ];
    for tensors in entries {
        refused("t.safetensors", safetensors(&header(tensors), &[0; 24]), &["not a sound safetensors header"]);
    }
    let far = header(&[("attention.0.0", tensor("F32", 1 << 40, [0, 1 << 42]))]);
    refused("t.safetensors", safetensors(&far, &[0; 24]), &["truncated"]);
}

#[test]
fn rows_that_do_not_fill_a_triangle_are_refused() {
    let wanted = ["t.safetensors: tensor \"attention.2.5\": 4 weights is not a triangle number", "rows of 1, 2, 3"];
    refused("t.safetensors", trace_of(&[1.0, 0.5, 0.5, 1.0]), &wanted);
}

#[test]
fn a_header_that_is_no_trace_is_refused_with_what_is_missing() {
    let cases = [
        (header_with(&["__metadata__", "kvsim"], "2".into()), "format version \"2\", this version reads \"1\""),
        (header_with(&["__metadata__"], json!({})), "no `kvsim` in the metadata"),
        (header_with(&["__metadata__"], json!({ "kvsim": "1" })), "must say whether `self` is"),
        (header_with(&["__metadata__", "self"], "maybe".into()), "self is \"maybe\", must be"),
        (header_with(&["__metadata__", "seq_len"], "7".into()), "seq_len is \"7\", the tensors hold 1 rows"),
        (header_with(&["__metadata__", "seq_len"], "x".into()), "seq_len is \"x\""),
        (header_with(&["__metadata__", "num_layers"], "0".into()), "num_layers is 0 in the metadata"),
        (header_with(&["attention.0.0", "dtype"], "I32".into()), "must be F32, F16 or BF16"),
        (header(&[("attention.mean", tensor("F32", 1, [0, 4]))]), "expected a name attention.{layer}.{head}"),
        (header(&[("attention.x.0", tensor("F32", 1, [0, 4]))]), "expected a name attention.{layer}.{head}"),
        (header(&[("weights", tensor("F32", 1, [0, 4]))]), "holds no tensor named attention.{layer}.{head}"),
        ("not json".to_owned(), "not a sound safetensors header"),
    ];
    for (header, problem) in &cases {
        refused("t.safetensors", safetensors(header, &FOUR_BYTES), &[problem]);
    }
}

#[test]
fn streams_of_different_length_or_of_the_same_name_are_refused() {
    let uneven = header(&[("attention.0.0", tensor("F32", 1, [0, 4])), ("attention.0.1", tensor("F32", 3, [4, 16]))]);
    let wanted =
        ["streams are not equally long: the shortest, 0.0, has 1 rows, 0.1 has 2", "(--steps 1 replays the first 1"];
    refused("t.safetensors", safetensors(&uneven, &[0; 16]), &wanted);
    let twice = header(&[("attention.0.1", tensor("F32", 1, [0, 4])), ("attention.0.01", tensor("F32", 1, [4, 8]))]);
    refused("t.safetensors", safetensors(&twice, &[0; 8]), &["stream 0.1 is there twice"]);
}

#[test]
fn a_weight_that_is_no_attention_is_named_by_file_layer_head_row_and_column() {
    for (weight, problem) in [(f32::NAN, "is not a number"), (f32::INFINITY, "is infinite"), (-0.25, "is negative")] {
        let bytes = trace_of(&[1.0, 0.5, weight, 0.25, 0.25, 0.5]);
        let place = format!("t.safetensors: layer 2 head 5: row 1 column 1: weight {weight} {problem}");
        refused("t.safetensors", bytes, &[&place, "--on-bad-row skip"]);
    }
    let infinity = trace_of(&[1.0, f32::NEG_INFINITY, 0.5]);
    refused("t.safetensors", infinity, &["layer 2 head 5: row 1 column 0: weight -inf is infinite"]);
}

#[test]
fn a_bad_row_that_is_skipped_is_counted_and_is_no_information() {
    let folder = Folder::new();
    let bad = folder.write("bad.safetensors", trace_of(&[1.0, 0.5, f32::NAN, 0.25, 0.25, 0.5]));
    let null = folder.write(
        "null.jsonl",
        "{\"layer\":2,\"head\":5,\"step\":0,\"attn\":[1]}\n{\"layer\":2,\"head\":5,\"step\":1,\"attn\":null}\n\
         {\"layer\":2,\"head\":5,\"step\":2,\"attn\":[0.25,0.25,0.5]}\n",
    );
    let run = |path: &str| {
        let args = ["replay", path, "--policy", "tova,oracle,h2o", "--budget", "2", "--recent-window", "1"];
        let ran = kvsim(&[&args[..], &["--on-bad-row", "skip"]].concat());
        assert!(ran.stderr.contains("1 steps without usable attention were passed over"), "{}", ran.stderr);
        kvsim(&[&args[..], &["--on-bad-row", "skip", "--quiet"]].concat()).report()
    };
    let [bad_report, null_report] = [run(&bad), run(&null)];
    let figures = |report: &str| without(report, &["trace", "content"]);
    assert_eq!(figures(&bad_report), figures(&null_report));
    let report = Csv::parse(&bad_report);
    assert_eq!((report.column("steps"), report.column("skipped_rows")), ("2 2 2".to_owned(), "1 1 1".to_owned()));
}

#[test]
fn a_json_line_of_the_wrong_length_says_which_and_what_it_needs() {
    let rows = |last: usize| -> String {
        (1..=32)
            .map(|step| {
                format!("{}\n", json!({ "step": step, "attn": vec![0.0; if step == 32 { last } else { step }] }))
            })
            .collect()
    };
    let ran = replayed("trace.jsonl", rows(31), &[]);
    let wanted = "trace.jsonl:32: row has 31 weights, step 32 needs 32 (one for each position 0..=31)";
    assert_eq!(ran.refusal(1), wanted);
    assert_eq!(replayed("trace.jsonl", rows(32), &[]).code, 0);
}

#[test]
fn a_json_line_that_is_no_row_is_named_by_its_number() {
    let first = "{\"step\":1,\"attn\":[1.0]}\n";
    let cases = [
        ("{\"step\":2,\"attention\":[0.5,0.5]}\n", "missing field `attn`"),
        ("{\"step\":2,\"attn\":[0.5,\"x\"]}\n", "not a row"),
        ("{\"step\":2,\"attn\":[0.5,1e400]}\n", "not a row: number out of range"),
        ("{\"step\":-2,\"attn\":[0.5,0.5]}\n", "not a row"),
        ("{\"step\":2,\"head\":\"\",\"attn\":[0.5,0.5]}\n", "not a row: a head must be a number or a word"),
        ("{\"step\":2,\"attn\":[0.5,0.5]", "not a row: EOF"),
        ("not json\n", "not a row"),
        ("\u{feff}{}\n", "not a row"),
        ("{\"kvsim\":1,\"self\":\"excluded\"}\n", "a header line must be the first line"),
        (
            "{\"step\":3,\"attn\":[0.5,0.25,0.25]}\n",
            "step is 3, stream 0.0 expects 2: the steps of a stream are consecutive",
        ),
        ("{\"step\":1,\"attn\":[1.0]}\n", "step is 1, stream 0.0 expects 2"),
        ("{\"step\":4294967295,\"attn\":[1.0]}\n", "step is 4294967295, stream 0.0 expects 2"),
        ("{\"step\":2,\"attn\":[0.5,NaN]}\n", "layer 0 head 0: row 2 column 1: weight NaN is not a number"),
        ("{\"step\":2,\"attn\":[-0.5,0.5]}\n", "layer 0 head 0: row 2 column 0: weight -0.5 is negative"),
        ("{\"step\":2,\"attn\":[0.5,1e40]}\n", "layer 0 head 0: row 2 column 1: weight inf is infinite"),
    ];
    for (line, problem) in cases {
        refused("trace.jsonl", format!("{first}{line}"), &["trace.jsonl:2: ", problem]);
    }
    refused("trace.jsonl", [first.as_bytes(), b"\xff\xfe\n"].concat(), &["trace.jsonl:2: not a row"]);
}

#[test]
fn a_json_header_that_promises_something_else_is_refused() {
    let row = "{\"step\":1,\"attn\":[1.0]}\n{\"step\":2,\"attn\":[0.5,0.5]}\n";
    let cases = [
        ("{\"kvsim\":2,\"self\":\"excluded\"}\n", ":1: format version 2, this version reads 1"),
        ("{\"kvsim\":1,\"self\":\"maybe\"}\n", ":1: self is \"maybe\", must be \"included\" or \"excluded\""),
        ("{\"kvsim\":1,\"seq_len\":\"x\"}\n", ":1: seq_len is \"x\", must be a whole number"),
        ("{\"kvsim\":1,\"self\":\"excluded\",\"seq_len\":2}\n", ":3: step 2 lies past the seq_len of 2"),
        ("{\"kvsim\":1,\"self\":\"included\"}\n", ":2: step is 1, stream 0.0 expects 0"),
    ];
    for (header, problem) in cases {
        refused("trace.jsonl", format!("{header}{row}"), &[problem]);
    }
}

#[test]
fn json_that_nests_without_end_is_refused() {
    let deep = "[".repeat(100_000);
    refused("trace.jsonl", format!("{{\"step\":1,\"attn\":{deep}"), &["trace.jsonl:1: not a row"]);
    refused("trace.jsonl", &deep, &["trace.jsonl:1: not a row"]);
    refused("trace.jsonl", format!("{{\"kvsim\":{deep}"), &["trace.jsonl:1: not a row"]);
    refused("spec.json", &deep, &["spec.json:1: not a trace spec"]);
    for header in [deep.clone(), format!("{{\"__metadata__\":{deep}"), format!("{{\"attention.0.0\":{deep}")] {
        refused("t.safetensors", safetensors(&header, &[]), &["not a sound safetensors header"]);
    }
}

#[test]
fn a_spec_that_describes_no_trace_is_refused() {
    let sound: Value = serde_json::from_str(include_str!("../../traces/decode-4096.json")).expect("sound");
    let with = |pointer: &str, value: Value| {
        let mut spec = sound.clone();
        *spec.pointer_mut(pointer).expect("the spec has it") = value;
        spec.to_string()
    };
    let mut misspelt = sound.clone();
    misspelt["seeed"] = 8.into();
    let cases = [
        (misspelt.to_string(), "unknown field `seeed`"),
        ("{}".to_owned(), "spec.json:1: not a trace spec: missing field"),
        (with("/kvsim_spec", 2.into()), "kvsim_spec is 2, this version reads 1"),
        (with("/positions", (1_u64 << 40).into()), "at most 16777216 are possible"),
        (with("/noise/mass", (-1).into()), "masses and sink weights must lie between"),
        (with("/local/width", 0.into()), "local.width"),
        (with("/heavy_hitters/redraw_every", 0.into()), "redraw_every must be above 0"),
        (with("/heavy_hitters/from", 99.into()), "heavy_hitters.from is 99, needs at least 100"),
    ];
    for (spec, problem) in cases {
        refused("spec.json", spec, &["spec.json", problem]);
    }
}

#[test]
fn what_is_not_there_or_has_no_known_format_is_refused() {
    let folder = Folder::new();
    folder.write("trace.txt", "x");
    std::fs::create_dir(folder.path().join("folder.jsonl")).expect("a folder");
    let replay = |name: &str| kvsim_in(folder.path(), &["replay", name]);
    replay("missing.jsonl").refuses(1, &["missing.jsonl: no such file", "decode-4096"]);
    replay("decode-4097").refuses(1, &["decode-4097: no such file, and no built-in trace (decode-4096, control-2048)"]);
    replay("trace.txt").refuses(1, &["trace.txt: cannot tell the format", ".safetensors", ".jsonl"]);
    replay("folder.jsonl").refuses(1, &["folder.jsonl: a folder without .npy, .npz or .safetensors files"]);
}

#[test]
fn a_bad_line_on_standard_input_is_refused_as_in_a_file() {
    let ran = kvsim_reading("{\"step\":1,\"attn\":[1,0]}\n{\"step\":2,\"attn\":[1]}\n", &["replay", "-"]);
    ran.refuses(1, &["-:1: step is 1, stream 0.0 expects 0"]);
    kvsim_reading("{\"step\":1,\"attn\":[-1]}\n", &["replay", "-"]).refuses(1, &["-:1: ", "weight -1 is negative"]);
}

#[test]
fn inspect_refuses_what_replay_refuses_and_counts_bad_rows() {
    let folder = Folder::new();
    let truncated = folder.write("t.safetensors", &trace_of(&[1.0, 0.5, 0.5])[..100]);
    kvsim(&["inspect", &truncated]).refuses(1, &[&truncated]);
    let bad = folder.write("bad.safetensors", trace_of(&[1.0, -0.5, 0.5]));
    let report = kvsim(&["inspect", &bad]).report();
    assert!(report.contains("warning: stream 2.5: 1 rows hold a negative weight or no number"), "{report}");
}

#[test]
fn rows_that_hold_more_than_all_attention_are_warned_of_once() {
    let ran = kvsim_reading(
        "{\"step\":1,\"attn\":[1]}\n{\"step\":2,\"attn\":[1,1.5]}\n",
        &["replay", "-", "--policy", "full"],
    );
    assert_eq!((ran.code, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("rows that sum to more than one: 1, the worst layer 0 head 0 row 2 (2.5000)"));
}

#[test]
fn metadata_that_should_be_a_number_and_is_none_is_refused() {
    for key in ["prompt_len", "num_layers", "sliding_window.0"] {
        let lines = format!("{{\"kvsim\":1,\"{key}\":\"x\"}}\n{{\"step\":1,\"attn\":[1]}}\n");
        refused("t.jsonl", lines, &[key, "is \"x\" in the metadata", "whole number"]);
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named_as_that() {
    let folder = Folder::new();
    let mut command = crate::common::binary::command(&["replay", "-", "-p", "tova", "-b", "2"]);
    command.env("TMPDIR", folder.path().join("missing"));
    let ran = command.output().expect("the binary starts");
    let said = String::from_utf8(ran.stderr).expect("text");
    assert_eq!(ran.status.code(), Some(1));
    assert!(said.contains("missing") && !said.contains("damaged"), "{said}");
}
