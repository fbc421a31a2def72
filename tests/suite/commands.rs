//! `kvsim generate`, `inspect`, `policies`, and the help of every command.

use crate::common::binary::{Csv, PACKAGE, kvsim, kvsim_in, without};
use crate::common::files::{Folder, json_lines};
use kvsim::policy::table::POLICIES;
use serde_json::Value;

/// Every command, with defaults and other promises of its help.
const HELP: &[(&str, &[&str])] = &[
    (
        "replay",
        &[
            "[default: decode-4096]",
            "[default: all that manage one cache, and oracle]",
            "[default: 512]",
            "[default: 32]",
            "[default: raw]",
            "[default: error]",
            "[default: one for each core]",
            "[default: as the output's name ends; without a name, table on a terminal",
            "jsonl: one object a line, exact numbers",
        ],
    ),
    (
        "table",
        &["[default: policy]", "[default: budget]", "[default: retained_mass,heavy_recall]", "markdown for table]"],
    ),
    ("generate", &["[default: f32]", "Seed, instead of the spec's", "Number of positions, instead of the spec's"]),
    ("inspect", &["[default: text]"]),
    ("analyze", &["[default: text]", "[default: 0.01]", "[default: error]", "csv: For programs, one figure a line"]),
    ("vectors", &["exits with 1"]),
    ("policies", &["budget of 512"]),
    ("completions", &["bash", "zsh", "fish"]),
    ("memory", &["[default: 1]", "[default: text]", "[default: as typed, else gib]"]),
];

/// Lines wrap by the width of the terminal: compare words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_help_of_every_command_shows_its_defaults_and_an_example() {
    for (command, promises) in HELP {
        let help = words(&kvsim(&[command, "--help"]).report());
        promises.iter().for_each(|promise| assert!(help.contains(promise), "{command}: {promise}"));
        assert!(help.contains("Example") && help.contains(&format!("kvsim {command}")), "{command}");
    }
    let overview = words(&kvsim(&["--help"]).report());
    HELP.iter().for_each(|(command, _)| assert!(overview.contains(command), "{command}"));
    assert!(overview.contains("Exit status: 0 done, 1 bad data or I/O, 2 usage."));
    assert_eq!(kvsim(&["--version"]).report(), format!("kvsim {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_help_of_replay_shows_every_parameter_with_its_default_for_every_policy() {
    let help = words(&kvsim(&["replay", "--help"]).report());
    for entry in POLICIES {
        for (parameter, default) in entry.parameters {
            let flag = help.split(&format!("--{} <LIST>", parameter.name)).nth(1).expect("every parameter is a flag");
            let own = flag.split("--").next().expect("text up to the next flag");
            let group = own.split("[default: ").find(|group| group.starts_with(&format!("{default} in ")));
            assert!(group.is_some_and(|group| group.contains(entry.name)), "{}: {}", entry.name, parameter.name);
        }
    }
}

#[test]
fn a_request_for_nothing_or_the_unknown_exits_with_2() {
    for args in [&[][..], &["nonsense"], &["inspect"], &["table"], &["vectors"], &["generate", "decode-4096"]] {
        let ran = kvsim(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
    }
}

#[test]
fn a_run_without_arguments_says_in_ten_lines_what_to_do_next() {
    let said = kvsim::<&str>(&[]).stderr;
    assert!((5..=10).contains(&said.trim_end().lines().count()), "{said}");
    for command in ["kvsim replay --policy", "kvsim inspect TRACE", "kvsim policies", "kvsim help"] {
        assert!(said.contains(command), "{command}: {said}");
    }
}

#[test]
fn the_overview_groups_commands_by_task() {
    let help = kvsim(&["help"]).report();
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let order =
        ["Sweep policies", "  replay ", "  table ", "Look at a trace", "  inspect ", "Convert and make", "Options:"];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{help}");
    assert!(!help.contains("More:") && !help.contains("  man "), "{help}");
    assert_eq!(kvsim(&["--help"]).report(), help);
}

#[test]
fn completions_and_manual_know_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let text = kvsim(&["completions", shell]).report();
        ["replay", "inspect", "recent-window", "layer-budget"].iter().for_each(|word| assert!(text.contains(word)));
    }
    assert!(kvsim(&["man"]).report().contains(".TH kvsim 1"));
    let folder = Folder::new();
    kvsim_in(folder.path(), &["man", "."]).report();
    let page = std::fs::read_to_string(folder.path().join("kvsim-replay.1")).expect("a page for each command");
    assert!(page.contains("layer\\-budget") && page.contains("Examples"), "{page}");
}

#[test]
fn policies_lists_the_table_with_defaults_bytes_and_papers() {
    for (args, separator) in [(&["policies"][..], "  "), (&["policies", "--markdown"], "|")] {
        let list = kvsim(args).report();
        for entry in POLICIES {
            let line =
                list.lines().find(|line| line.trim_start_matches(['|', ' ']).starts_with(&format!("{} ", entry.name)));
            let line = line.unwrap_or_else(|| panic!("{} is missing", entry.name));
            assert!(line.contains(entry.summary) && line.contains(separator));
            assert!(entry.paper.is_none_or(|paper| line.contains(paper)), "{line}");
            for (parameter, default) in entry.parameters {
                assert!(line.contains(&format!("{} {default}", parameter.name)), "{line}");
            }
        }
    }
    let list = words(&kvsim(&["policies"]).report());
    assert!(
        list.contains("and the newest recent-window 32, score sum 12 6156 Zhang"),
        "h2o: 8 + 4 bytes a slot, 513 slots"
    );
}

#[test]
fn a_generated_file_replays_as_the_built_in_trace_but_for_its_name() {
    let folder = Folder::new();
    kvsim_in(folder.path(), &["generate", "decode-4096", "-o", "d.safetensors"]).report();
    let lanes = ["--budget", "256,512"];
    let file = kvsim_in(folder.path(), &[&["replay", "d.safetensors"], &lanes[..]].concat()).report();
    let built_in = kvsim(&[&["replay", "decode-4096"], &lanes[..]].concat()).report();
    let figures = |report: &str| without(report, &["trace", "content"]);
    assert_eq!(figures(&file), figures(&built_in));
    assert_eq!(folder.names(), ["d.safetensors"]);
}

#[test]
fn generate_takes_seed_length_and_stored_type() {
    let folder = Folder::new();
    let size = |name: &str, more: &[&str]| {
        let args = [&["generate", "decode-4096", "--seq-len", "200", "-o", name], more].concat();
        kvsim_in(folder.path(), &args).report();
        let bytes = std::fs::read(folder.at(name)).expect("it was written");
        let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
        assert_eq!(header % 8, 0, "tensors start at a multiple of eight bytes");
        (bytes.len() - 8 - header, bytes)
    };
    let weights = 199 * 200 / 2;
    let (four, seed_7) = size("a.safetensors", &[]);
    let (two, _) = size("b.safetensors", &["--dtype", "f16"]);
    let (also_two, _) = size("c.safetensors", &["--dtype", "bf16"]);
    let (_, seed_8) = size("d.safetensors", &["--seed", "8"]);
    let (_, again) = size("e.safetensors", &["--seed", "7"]);
    assert_eq!((four, two, also_two), (4 * weights, 2 * weights, 2 * weights));
    assert!(seed_7 != seed_8 && seed_7 == again);
    let inspected = kvsim_in(folder.path(), &["inspect", "b.safetensors", "--format", "json"]).report();
    let inspected: Value = serde_json::from_str(&inspected).expect("JSON");
    assert_eq!((&inspected["positions"], &inspected["streams"][0]["dtype"]), (&200.into(), &"f16".into()));
}

#[test]
fn a_spec_of_ones_own_is_generated_and_replayed_alike() {
    let spec = std::fs::read_to_string(format!("{PACKAGE}/traces/decode-4096.json")).expect("it is there");
    let folder = Folder::new();
    let spec = spec
        .replace("\"width\": 64", "\"width\": 16")
        .replace("4096,", "600,")
        .replace("\"from\": 128", "\"from\": 60");
    folder.write("narrow.json", spec);
    kvsim_in(folder.path(), &["generate", "narrow.json", "-o", "n.safetensors"]).report();
    let run = |name: &str| kvsim_in(folder.path(), &["replay", name, "--budget", "64"]).report();
    let (direct, stored) = (run("narrow.json"), run("n.safetensors"));
    let figures = |report: &str| without(report, &["trace", "content"]);
    assert_eq!(figures(&direct), figures(&stored));
    assert_eq!(Csv::parse(&direct).text(0, "steps"), "599");
    kvsim_in(folder.path(), &["generate", "narrow.json", "--seq-len", "99999999", "-o", "x.safetensors"])
        .refuses(2, &["positions is 99999999, at most 16777216"]);
    kvsim_in(folder.path(), &["generate", "other.json", "-o", "x.safetensors"])
        .refuses(1, &["other.json: no such file, and no built-in spec (decode-4096, control-2048)"]);
    assert_eq!(folder.names(), ["n.safetensors", "narrow.json"]);
}

#[test]
fn inspect_says_where_the_mass_lies_in_text_and_json() {
    let folder = Folder::new();
    let rows = [Some(vec![1.0]), None, Some(vec![0.5, 0.0, 0.25]), Some(vec![0.25; 4])];
    let header = "{\"kvsim\":1,\"self\":\"included\",\"model\":\"by hand\"}\n";
    folder.write("t.jsonl", header.to_owned() + &json_lines(0, &rows));
    let text = kvsim_in(folder.path(), &["inspect", "t.jsonl"]).report();
    assert!(text.starts_with("t.jsonl: jsonl, self included, 4 positions, 1 stream"), "{text}");
    for part in [
        "model: by hand",
        "0.750000  0.916667  1.000000",
        "remark: rows that sum to less than one: 1, the worst layer 0 head 0 row 2 (0.7500)",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let json: Value =
        serde_json::from_str(&kvsim_in(folder.path(), &["inspect", "t.jsonl", "-f", "json"]).report()).expect("JSON");
    let stream = &json["streams"][0];
    let figures = ["rows", "null_rows", "bad_rows", "row_sum_min", "row_sum_max", "zeros", "first_4", "on_self"];
    let found: Vec<f64> = figures.iter().map(|figure| stream[*figure].as_f64().expect("a number")).collect();
    assert_eq!(found, [4.0, 1.0, 0.0, 0.75, 1.0, 0.125, 1.0, 1.5 / 2.75]);
    assert_eq!((&json["self"], &json["metadata"]["model"]), (&"included".into(), &"by hand".into()));
    let excluded = kvsim(&["inspect", "decode-4096", "--format", "json"]).report();
    let excluded: Value = serde_json::from_str(&excluded).expect("JSON");
    assert_eq!(excluded["streams"][0]["on_self"], Value::Null, "rows without the token itself have no such share");
}

#[test]
fn inspect_cuts_metadata_that_is_too_long_for_people_and_gives_all_of_it_as_json() {
    let folder = Folder::new();
    let tokens = "word ".repeat(100);
    let header = format!("{{\"kvsim\":1,\"self\":\"included\",\"tokens\":\"{tokens}\"}}\n");
    folder.write("long.jsonl", header + "{\"step\":0,\"attn\":[1.0]}\n");
    let text = kvsim_in(folder.path(), &["inspect", "long.jsonl"]).report();
    assert!(text.contains("word ... (500 characters)"), "{text}");
    let json = kvsim_in(folder.path(), &["inspect", "long.jsonl", "--format", "json"]).report();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["metadata"]["tokens"], tokens);
}
