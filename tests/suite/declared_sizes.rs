//! Sizes that a file declares and does not hold are refused at once, in a short line.

use crate::common::binary::{Csv, command, kvsim};
use crate::common::files::{Folder, safetensors};

const MOST: &str = "positions are more than the 16777216 that can be replayed";

/// A file with this text is refused in one short line that holds these parts.
#[track_caller]
fn refused(name: &str, bytes: impl AsRef<[u8]>, parts: &[&str]) {
    let folder = Folder::new();
    let path = folder.write(name, bytes);
    for command in [&["replay", &path, "--policy", "tova", "--budget", "3"][..], &["inspect", &path]] {
        let ran = kvsim(command);
        ran.refuses(1, parts);
        assert!(ran.stderr.len() < 700, "{} bytes", ran.stderr.len());
    }
}

#[test]
fn more_positions_than_can_be_replayed_are_refused_whatever_the_format() {
    let lines = |header: &str| format!("{header}\n{{\"step\":1,\"attn\":[1.0]}}\n");
    let header = r#"{"kvsim":1,"self":"excluded","seq_len":18446744073709551615}"#;
    refused("a.jsonl", lines(header), &["a.jsonl:1", "seq_len: 18446744073709551615", MOST]);
    for first in ["16777217", "2147483646", "4294967295", "18446744073709551615"] {
        let header = format!(
            r#"{{"__metadata__":{{"kvsim":"1","self":"included","first_position":"{first}"}},"attention.0.0":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}}}"#
        );
        refused("a.safetensors", safetensors(&header, &[]), &["first_position: ", first, MOST]);
    }
    let spec = |width: &str| {
        let local = format!(r#""local":{{"mass":0.55,"width":{width}}}"#);
        format!(
            r#"{{"kvsim_spec":1,"name":"s","positions":60,"seed":7,"sinks":{{"mass":0.1,"weights":[1]}},{local},"noise":{{"mass":1}}}}"#
        )
    };
    for width in ["18446744073709551615", "16777216"] {
        refused("a.json", spec(width), &["a.json", "local.width + number of sinks", "at most 16777216 are possible"]);
    }
}

#[test]
fn a_place_without_rows_begins_nowhere_and_takes_no_memory() {
    let header = r#"{"__metadata__":{"kvsim":"1","self":"included","first_position":"16777215"},"attention.0.0":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#;
    let folder = Folder::new();
    let path = folder.write("a.safetensors", safetensors(header, &[]));
    let ran = kvsim(&["replay", &path, "--policy", "tova,h2o", "--budget", "3", "--recent-window", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(Csv::parse(&ran.stdout).column("peak_kept"), "0 0");
}

#[test]
fn a_shape_of_many_dimensions_is_told_by_their_number() {
    let ones = vec!["1"; 100_000].join(",");
    let header = format!(r#"{{"attention.0.0":{{"dtype":"F32","shape":[{ones}],"data_offsets":[0,4]}}}}"#);
    refused("a.safetensors", safetensors(&header, &[0; 4]), &["a shape of 100000 dimensions"]);
}

#[test]
fn long_texts_are_cut_where_they_are_quoted() {
    let long = "x".repeat(50_000);
    let metadata = format!(r#"{{"__metadata__":{{"kvsim":"1","self":"{long}"}}}}"#);
    refused("a.safetensors", safetensors(&metadata, &[]), &["self is \"xxx", "(50000 bytes)"]);
    let name = format!(
        r#"{{"__metadata__":{{"kvsim":"1","self":"included"}},"attention.{long}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#
    );
    refused("a.safetensors", safetensors(&name, &[0; 4]), &["expected a name attention.{layer}.{head}"]);
    refused("a.jsonl", format!(r#"{{"step":"{long}","attn":[1]}}"#), &["a.jsonl:1", "invalid type: string"]);
    let facts = format!("{{\"kvsim\":1,\"prompt_len\":\"{long}\"}}\n{{\"step\":1,\"attn\":[1]}}\n");
    refused("a.jsonl", facts, &["prompt_len is \"xxx", "must be a whole number"]);
}

#[test]
fn a_budget_beyond_any_trace_is_no_budget_at_all_and_wraps_nowhere() {
    let folder = Folder::new();
    let rows = |head: u32| {
        format!("{{\"head\":{head},\"step\":1,\"attn\":[1]}}\n{{\"head\":{head},\"step\":2,\"attn\":[0.5,0.5]}}\n")
    };
    let path = folder.write("a.jsonl", rows(0) + &rows(1));
    for budget in ["9223372036854775808", "18446744073709551615", "4294967296"] {
        let csv = Csv::parse(&kvsim(&["replay", &path, "--policy", "tova", "--budget", budget]).report());
        assert_eq!(
            (csv.column("retained_mass"), csv.column("layer_budget")),
            ("1".into(), "4294967295".into()),
            "{budget}"
        );
    }
}

/// As many handles as a shell needs to start it, and a few.
#[cfg(unix)]
#[test]
fn streams_side_by_side_share_the_handle_of_their_file() {
    let folder = Folder::new();
    let (layers, heads) = (40, 3);
    let rows: String = (0..layers * heads)
        .flat_map(|stream| (1..4).map(move |step| (stream / heads, stream % heads, step)))
        .map(|(layer, head, step)| {
            let weights = vec![(1.0 / f64::from(step)).to_string(); step as usize].join(",");
            format!("{{\"layer\":{layer},\"head\":{head},\"step\":{step},\"attn\":[{weights}]}}\n")
        })
        .collect();
    let path = folder.write("a.jsonl", rows);
    let native = folder.at("a.safetensors");
    assert_eq!(kvsim(&["convert", &path, "-o", &native, "-q"]).code, 0);
    let binary = command::<&str>(&[]).get_program().to_owned();
    for (trace, threads) in [(&path, "1"), (&path, "4"), (&native, "1"), (&native, "4")] {
        let script = "ulimit -n 24 && exec \"$0\" replay \"$1\" --policy scissorhands-cross-layer --budget 2 \
                      --recent-window 1 --threads \"$2\" --quiet";
        let ran =
            std::process::Command::new("sh").args(["-c", script]).arg(&binary).args([trace.as_str(), threads]).output();
        let ran = ran.expect("a shell");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}
