//! The binary on traces of queries, keys and values.

use crate::common::binary::kvsim;
use crate::common::files::Folder;
use crate::common::lanes::{open, read_rows};
use crate::made::{File, Shape, Stored, layer};
use crate::slow::file::Layer;

const SHAPE: Shape = Shape { heads: 4, kv_heads: 2, positions: 40, width: 8, value_width: 3 };

fn file() -> File {
    let plain = layer(SHAPE, 1, Stored::F16);
    File::of(&[plain.clone(), Layer { number: 1, softcap: Some(20.0), window: Some(12), ..plain }], Stored::F16)
}

#[test]
fn inspect_says_what_the_file_holds_and_whether_it_looks_like_attention() {
    let folder = Folder::new();
    let path = folder.write("made.safetensors", file().bytes());
    let report = kvsim(&["inspect", &path]).report();
    for part in [
        "made.safetensors: qkv, self included, 40 positions, 8 streams",
        "layer 0: 4 query heads of 8 channels in f16, 2 KV heads in f16, values of 3 channels in f16, scale 0.5\n",
        "layer 1: 4 query heads of 8 channels in f16, 2 KV heads in f16, values of 3 channels in f16, scale 0.5, soft cap 20, \
         sliding window 12\n",
        "figures are of 16 rows of each query head",
        "sample rows look like attention: of ",
    ] {
        assert!(report.contains(part), "{part:?} is missing: {report}");
    }
}

#[test]
fn inspect_doubts_a_scale_that_makes_rows_no_attention() {
    for (scale, doubt) in [("1000", "is the scale too large"), ("0.001", "is the scale too small")] {
        let (folder, mut file) = (Folder::new(), file());
        file.say("scale.0", scale);
        file.say("scale.1", scale);
        file.metadata.remove("softcap.1");
        file.metadata.remove("sliding_window.1");
        let report = kvsim(&["inspect", &folder.write("made.safetensors", file.bytes())]).report();
        assert!(
            report.contains("warning: sample rows do not look like attention") && report.contains(doubt),
            "{report}"
        );
    }
}

#[test]
fn convert_writes_rows_and_says_what_they_take() {
    let folder = Folder::new();
    let (from, to) = (folder.write("made.safetensors", file().bytes()), folder.at("rows.safetensors"));
    let ran = kvsim(&["convert", &from, "-o", &to]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("320 rows of 8 query heads are rebuilt and take 1 MiB in the file"), "{}", ran.stderr);
    let (made, rows) = (open(&from), open(&to));
    for stream in 0..8 {
        assert!(read_rows(&*made, stream) == read_rows(&*rows, stream), "f32 holds every weight");
    }
    let metadata = &rows.info().metadata;
    assert_eq!((metadata["query_heads"].as_str(), metadata["kv_heads"].as_str()), ("4", "2"));
    assert_eq!((metadata["group"].as_str(), metadata["sliding_window.1"].as_str()), ("none", "12"));
    assert!(!["kind", "scale.0", "softcap.1"].iter().any(|key| metadata.contains_key(*key)), "{metadata:?}");
}

#[test]
fn a_cache_is_a_kv_head_and_nothing_else() {
    let folder = Folder::new();
    let path = folder.write("made.safetensors", file().bytes());
    let replay = |flags: &[&str]| {
        kvsim(&[&["replay", "-q", "--budget", "8", "--policy", "tova", "--format", "csv", &path], flags].concat())
    };
    assert!(replay(&["--per-stream"]).stdout.contains("kv1"));
    assert_eq!(replay(&["--kv-heads", "2"]).code, 0);
    for flags in
        [&["--kv-heads", "off"][..], &["--kv-heads", "4", "--force"], &["--kv-heads", "1:1"], &["--share-cache", "1:0"]]
    {
        replay(flags).refuses(2, &[flags[0], "a cache is a KV head", "convert the trace to rows"]);
    }
}

#[test]
fn a_replay_gives_the_figures_of_the_rows_that_convert_writes() {
    let folder = Folder::new();
    let (from, to) = (folder.write("made.safetensors", file().bytes()), folder.at("rows.safetensors"));
    assert_eq!(kvsim(&["convert", "--quiet", &from, "-o", &to]).code, 0);
    let replay = |trace: &str, threads: &str| {
        let args = [
            "replay",
            "--quiet",
            "--budget",
            "8",
            "--recent-window",
            "2",
            "--obs-window",
            "4",
            "--format",
            "json",
            // Outputs are what rows do not have.
            "--meters",
            "mass,heavy,pivotal,peaks,kept",
        ];
        let report = kvsim(&[&args[..], &["--per-stream", "--threads", threads, trace]].concat()).report();
        // The name of the file and the hash of its content are another's.
        let of_file =
            |line: &&str| ["trace", "content", "output_every"].iter().any(|key| line.contains(&format!("\"{key}\":")));
        report.lines().filter(|line| !of_file(line)).map(|line| format!("{line}\n")).collect::<String>()
    };
    let wanted = replay(&to, "1");
    assert!(wanted.contains("kv1") && wanted.contains("expired"), "{wanted}");
    for threads in ["1", "2", "5"] {
        assert_eq!(replay(&from, threads), wanted);
    }
}
