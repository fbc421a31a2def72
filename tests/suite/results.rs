//! Results that say what they are: read back, joined, compared, merged, whichever version or program
//! wrote them.

use crate::common::binary::{Csv, Ran, kvsim, kvsim_in};
use crate::common::files::{Folder, package};
use kvsim::report::format::{self, Look};
use kvsim::report::read::read;
use kvsim::report::results::Results;

const REAL: &str = "traces/smollm2-prose-384.safetensors";
const SMALL: &str = "traces/smollm2-prose-512.safetensors";

/// Replays into a file of a folder.
#[track_caller]
fn replay_to(folder: &Folder, name: &str, args: &[&str]) -> String {
    let path = folder.at(name);
    let output = ["--quiet", "-o", &path];
    kvsim(&[&["replay"], args, &output].concat()).report();
    path
}

fn table(args: &[&str]) -> Ran {
    kvsim(&[&["table"], args].concat())
}

fn fixture(name: &str) -> String {
    package("tests/results").join(name).to_str().expect("a plain name").to_owned()
}

#[track_caller]
fn read_file(path: &str) -> Results {
    read(&std::fs::read(path).expect("there")).expect("sound results")
}

#[test]
fn two_layers_of_one_trace_are_two_lines() {
    let folder = Folder::new();
    let layer = |number| {
        let args = [REAL, "--kv-heads", "off", "--layers", number, "--policy", "h2o", "--budget", "64"];
        replay_to(&folder, &format!("layer-{number}.csv"), &args)
    };
    let (three, ten) = (layer("3"), layer("10"));
    table(&[&three, &ten]).refuses(1, &["several lines would fill one cell; they differ in layer: add one to --rows"]);
    let both = table(&[&three, &ten, "--rows", "layer,policy", "--values", "retained_mass", "--no-bold"]).report();
    let rows: Vec<&str> = both.lines().skip(2).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("| 3 ") && rows[1].starts_with("| 10 "), "{both}");
    table(&[&three, &three]).refuses(1, &["two lines of the results are the same: the same file twice?"]);
    let one = Csv::parse(&std::fs::read_to_string(&ten).expect("there"));
    assert_eq!([one.text(0, "layer"), one.text(0, "head"), one.text(0, "caches")], ["10", "all", "9"]);
    let some = replay_to(&folder, "some.csv", &[REAL, "--layers", "3,10", "--heads", "0..3", "--policy", "tova"]);
    let some = Csv::parse(&std::fs::read_to_string(some).expect("there"));
    assert_eq!([some.text(0, "layer"), some.text(0, "head"), some.text(0, "caches")], ["3,10", "0..3", "8"]);
}

#[test]
fn caches_of_groups_and_of_single_heads_are_two_lines() {
    let folder = Folder::new();
    let base = [REAL, "--policy", "h2o", "--budget", "64", "--kv-heads"];
    let groups = replay_to(&folder, "groups.csv", &[&base[..], &["3"]].concat());
    let single = replay_to(&folder, "single.jsonl", &[&base[..], &["off"]].concat());
    table(&[&groups, &single]).refuses(1, &["several lines would fill one cell; they differ in kv_heads, caches"]);
    let both = table(&[&groups, &single, "--columns", "kv_heads", "--values", "retained_mass"]).report();
    assert!(both.contains("kv_heads 3") && both.contains("kv_heads off"), "{both}");
    assert!(both.contains("0.908529") && both.contains("0.916585"), "{both}");
}

#[test]
fn a_part_of_the_rows_does_not_stand_beside_all_of_them() {
    let folder = Folder::new();
    let base = [REAL, "--kv-heads", "3", "--budget", "64", "--policy"];
    let part = replay_to(&folder, "part.csv", &[&base[..], &["h2o,tova", "--steps", "200"]].concat());
    let whole = replay_to(&folder, "whole.csv", &[&base[..], &["scissorhands"]].concat());
    table(&[&part, &whole]).refuses(1, &["they differ in rows: 200 and 384", "--filter rows="]);
    let both = table(&[&part, &whole, "--columns", "rows", "--values", "retained_mass"]).report();
    assert!(both.contains("rows 200") && both.contains("rows 384") && both.contains("0.918088"), "{both}");
    let rows = table(&[&part, &whole, "--rows", "rows,policy"]).report();
    assert_eq!(rows.lines().count(), 5, "{rows}");
    assert_eq!(table(&[&part, &whole, "--filter", "rows=384"]).report().lines().count(), 3);
}

#[test]
fn results_of_version_0_1_0_are_read_and_joined_with_those_of_this_one() {
    let (folder, old) = (Folder::new(), fixture("v0.1.0.csv"));
    let alone = table(&[&old, "--values", "retained_mass,rows_measured", "--no-bold"]).report();
    assert!(alone.contains("| h2o    |                 | 0.822876 / 1024 |"), "{alone}");
    let new = replay_to(&folder, "new.csv", &[SMALL, "--policy", "snapkv", "--budget", "64,128"]);
    let joined = table(&[&old, &new, "--no-bold", "--quiet"]).report();
    let old_rows: Vec<String> = table(&[&old, "--no-bold"]).report().lines().map(str::to_owned).collect();
    assert!(old_rows.iter().skip(2).all(|row| joined.contains(row.trim_end_matches(['|', ' ']))), "{joined}");
    assert!(joined.contains("| snapkv "), "{joined}");
    let noted = table(&[&old, &new]);
    assert!(
        noted.stderr.contains("v0.1.0.csv: it does not say prompt_len, output_every, kv_heads, caches, rows, "),
        "{}",
        noted.stderr
    );
    assert_eq!(read_file(&old).cell(1, "worst_stream").exact(), "16/6", "as it is spelled now");
    // What is measured is the same in both versions, column by column.
    let same = replay_to(&folder, "same.csv", &[SMALL, "--policy", "full,h2o,tova,oracle", "--budget", "64,128"]);
    let (old, same) = (read_file(&old), read_file(&same));
    for line in 0..old.lines().len() {
        for column in old.columns() {
            assert_eq!(old.cell(line, &column.name), same.cell(line, &column.name), "{}", column.name);
        }
    }
}

#[test]
fn columns_of_a_newer_version_are_carried_along() {
    let (folder, old) = (Folder::new(), fixture("v0.1.0.csv"));
    let text = std::fs::read_to_string(&old).expect("there");
    let add = |(index, line): (usize, &str)| format!("{line},{}\n", if index == 0 { "spread" } else { "0.25" });
    let newer = folder.write("newer.csv", text.lines().enumerate().map(add).collect::<String>());
    let found = table(&[&newer, "--values", "spread"]).report();
    assert!(found.contains("0.250000"), "{found}");
    let csv = format::find("csv").expect("a format").write(&read_file(&newer), Look::default()).text;
    assert!(csv.lines().next().expect("a header").ends_with(",spread"), "{csv}");
}

#[test]
fn two_files_laid_end_to_end_are_refused_with_the_line() {
    table(&[&fixture("concatenated.csv")]).refuses(1, &["concatenated.csv: line 6: a second header", "each part"]);
    let folder = Folder::new();
    let files = folder.write("b.csv", "policy,budget,retained_mass\nh2o,64,0.5\npolicy,budget,view,retained_mass\n");
    table(&[&files]).refuses(1, &["b.csv: line 3: a second header"]);
}

#[test]
fn a_file_that_pandas_wrote_back_is_read() {
    let found = table(&[&fixture("pandas.csv"), "--values", "retained_mass,evicted", "--no-bold"]).report();
    assert!(found.contains("budget 64 ") && found.contains("| h2o    |              | 0.822876 / 896 |"), "{found}");
    let results = read_file(&fixture("pandas.csv"));
    assert!(results.find("Unnamed: 0").is_none() && results.find("").is_none());
    assert_eq!([results.cell(0, "good").exact(), results.cell(1, "good").exact()], ["true", "false"]);
    assert_eq!([results.cell(1, "recent_window").exact(), results.cell(1, "rows").exact()], ["32", "512"]);
    let good = table(&[&fixture("pandas.csv"), "--filter", "good=True", "--filter", "policy=tova"]).report();
    assert!(good.contains("0.957865") && !good.contains("0.883886"), "{good}");
}

#[test]
fn the_weakest_stream_is_never_a_number() {
    let folder = Folder::new();
    let heads = ["--kv-heads", "off", "--by", "head"];
    let path = replay_to(&folder, "r.csv", &[&[REAL, "--policy", "h2o,tova", "--budget", "64"], &heads[..]].concat());
    let csv = Csv::parse(&std::fs::read_to_string(path).expect("there"));
    assert_eq!(csv.len(), 18);
    for row in 0..csv.len() {
        let worst = csv.text(row, "worst_stream");
        assert!(worst.contains('/') && worst.parse::<f64>().is_err(), "{worst}");
    }
}

#[test]
fn csv_json_and_json_lines_read_back_alike() {
    let folder = Folder::new();
    let args = [SMALL, "--policy", "full,h2o,oracle", "--budget", "64", "--per-stream"];
    let paths = ["r.csv", "r.json", "r.jsonl"].map(|name| replay_to(&folder, name, &args));
    let [csv, json, lines] = paths.each_ref().map(|path| read_file(path));
    assert_eq!((&csv, &csv), (&json, &lines));
    let tables = paths.each_ref().map(|path| table(&[path, "--rows", "layer,policy"]).report());
    assert!(tables[0] == tables[1] && tables[1] == tables[2]);
    folder.write("bad.jsonl", "{\"policy\":\"h2o\",\"budget\":64}\n{\"policy\":\"h2o\",\"budget\":[1]}\n");
    table(&[&folder.at("bad.jsonl")]).refuses(1, &["bad.jsonl: line 2: budget: [1] is not a single value"]);
    folder.write("bad.csv", "policy,budget,retained_mass\nh2o,64,much\n");
    table(&[&folder.at("bad.csv")]).refuses(1, &["bad.csv: line 2: column retained_mass: \"much\" is not a number"]);
    folder.write("empty.csv", "");
    table(&[&folder.at("empty.csv")]).refuses(1, &["empty.csv: it is empty"]);
    folder.write("twice.csv", "policy,policy\nh2o,tova\n");
    table(&[&folder.at("twice.csv")]).refuses(1, &["twice.csv: two columns are called \"policy\""]);
}

#[test]
fn counts_are_whole_and_lines_are_sorted_and_rounded_as_asked() {
    let old = fixture("v0.1.0.csv");
    let base = [&*old, "--filter", "budget=64", "--values", "retained_mass,evicted", "--no-bold"];
    let first_column = |more: &[&str]| -> Vec<String> {
        let text = table(&[&base[..], more].concat()).report();
        text.lines().skip(2).map(|line| line[2..8].trim().to_owned()).collect()
    };
    assert_eq!(first_column(&[]), ["h2o", "tova", "oracle"]);
    assert_eq!(first_column(&["--sort", "retained_mass:desc"]), ["oracle", "tova", "h2o"]);
    assert_eq!(first_column(&["--sort", "policy"]), ["h2o", "oracle", "tova"]);
    assert_eq!(first_column(&["--sort", "evicted:desc"]), ["h2o", "tova", "oracle"], "blanks come last");
    let three = table(&[&base[..], &["--precision", "3"]].concat()).report();
    assert!(three.contains("| 0.823 / 896 |"), "{three}");
    table(&[&base[..], &["--sort", "nonsense"]].concat())
        .refuses(1, &["no column \"nonsense\"; there are trace, layer"]);
}

#[test]
fn a_comparison_table_is_written_for_programs_too() {
    let (folder, old) = (Folder::new(), fixture("v0.1.0.csv"));
    let base = ["--values", "retained_mass,evicted", "--filter", "policy=tova"];
    let to = |name: &str| {
        table(&[&[&*old, "-o", &folder.at(name)], &base[..]].concat()).report();
        folder.read(name)
    };
    assert_eq!(
        to("t.csv"),
        "policy,budget 64 retained_mass,budget 64 evicted,budget 128 retained_mass,budget 128 evicted\n\
         tova,0.8838856733636931,896,0.9578649125178345,768\n"
    );
    assert!(to("t.jsonl").starts_with("{\"policy\":\"tova\",\"budget 64 retained_mass\":0.8838856733636931,"));
    assert!(to("t.md").starts_with("| policy |") && to("t.txt").starts_with("policy "));
}

/// Merging what a run says of its streams gives what it says of the whole, to the digit.
#[test]
fn lines_about_parts_merge_into_the_line_about_the_whole() {
    let folder = Folder::new();
    let base = [REAL, "--kv-heads", "3", "--policy", "full,h2o,tova,oracle,optimal", "--budget", "64,128"];
    let shaped = [&base[..], &["--layer-budget", "pyramid:2"]].concat();
    for args in [&base[..], &shaped] {
        let whole = read_file(&replay_to(&folder, "whole.csv", args));
        for parts in [&["--per-stream"][..], &["--by", "layer"]] {
            let path = replay_to(&folder, "parts.jsonl", &[args, parts].concat());
            let merged = read_file(&path).merge().expect("parts");
            assert_eq!(merged.lines().len(), whole.lines().len());
            for line in 0..whole.lines().len() {
                for column in whole.columns().iter().filter(|column| !["layer", "head"].contains(&&*column.name)) {
                    let (found, wanted) = (merged.cell(line, &column.name), whole.cell(line, &column.name));
                    let near =
                        found.number().zip(wanted.number()).is_some_and(|(a, b)| (a - b).abs() <= 1e-12 * b.abs());
                    // Summed by layer first, floats may differ in the last digit.
                    assert!(found == wanted || parts.len() == 2 && near, "{}: {found:?} {wanted:?}", column.name);
                }
            }
            assert_eq!(merged.cell(0, "layer").exact(), "3,10,15,24");
        }
    }
}

#[test]
fn shards_of_one_trace_merge_and_overlapping_ones_are_refused() {
    let folder = Folder::new();
    let base = [REAL, "--policy", "h2o,oracle", "--budget", "64", "--layers"];
    let shard = |layers| read_file(&replay_to(&folder, "shard.csv", &[&base[..], &[layers]].concat()));
    let (mut both, again) = (shard("3"), shard("3,10"));
    both.join(shard("10"));
    let merged = both.merge().expect("two parts");
    for line in 0..2 {
        for column in again.columns() {
            assert_eq!(merged.cell(line, &column.name), again.cell(line, &column.name), "{}", column.name);
        }
    }
    both.join(again);
    let problem = both.merge().expect_err("layer 3 is in it twice");
    assert!(problem.contains("layer/head 3/all and 3,10/all may hold the same caches"), "{problem}");
}

#[test]
fn names_from_a_file_cannot_harm_a_terminal_a_table_or_a_spreadsheet() {
    let folder = Folder::new();
    let names = fixture("names.safetensors");
    let base = ["replay", &*names, "--policy", "tova", "--budget", "3", "--per-stream", "--quiet", "--format"];
    let harmless =
        |text: &str| text.chars().all(|letter| letter == '\n' || !letter.is_control() && letter != '\u{202e}');
    for format in ["table", "markdown", "csv", "json", "jsonl"] {
        let report = kvsim(&[&base[..], &[format]].concat()).report();
        assert!(harmless(&report), "{format}: {report:?}");
    }
    for command in [&["inspect", &names][..], &["analyze", &names, "--no-advice"]] {
        let ran = kvsim(command);
        assert!(ran.code == 0 && harmless(&ran.stdout) && harmless(&ran.stderr), "{command:?}: {ran:?}");
    }
    let markdown = kvsim(&[&base[..], &["markdown"]].concat()).report();
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let first = markdown.lines().next().expect("a header");
    assert!(markdown.lines().all(|line| bars(line) == bars(first)), "{markdown}");
    assert!(!markdown.contains("<!--"), "{markdown}");
    let csv = kvsim(&[&base[..], &["csv"]].concat()).report();
    let cells = Csv::parse(&csv);
    assert!((0..cells.len()).all(|row| !cells.text(row, "head").starts_with(['=', '+', '-', '@'])), "{csv}");
    assert!(cells.column("head").starts_with("'=cmd|'/c calc'!A1 '@SUM(1) "), "{csv}");
    let read_back = read(csv.as_bytes()).expect("sound");
    assert_eq!(read_back.cell(0, "head").exact(), "=cmd|'/c calc'!A1");
    assert_eq!(read_back.cell(3, "head").exact(), "-1");
    // The mark of a block among the names leaves the block as it is.
    let results = folder.write("r.csv", &csv);
    let document = folder.write("d.md", "<!-- kvsim:begin b -->\n<!-- kvsim:end b -->\nafter\n");
    let into = ["table", &*results, "--rows", "layer,head", "--into", &document, "--block", "b"];
    for format in ["markdown", "table", "markdown"] {
        kvsim(&[&into[..], &["--format", format]].concat()).report();
        let text = folder.read("d.md");
        assert!(text.ends_with("\n<!-- kvsim:end b -->\nafter\n") && text.matches("<!--").count() == 2, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_bar_in_the_name_of_a_trace_does_not_break_the_table() {
    let folder = Folder::new();
    std::fs::copy(fixture("pipe-name.npy"), folder.path().join("pipe|name.npy")).expect("copied");
    std::fs::copy(fixture("pipe-name.npy"), folder.path().join("b\n|.npy")).expect("copied");
    let args = ["replay", "pipe|name.npy", "b\n|.npy", "--policy", "tova", "--budget", "5", "-o", "p.md"];
    kvsim_in(folder.path(), &args).report();
    let text = folder.read("p.md");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 4 && lines[2].starts_with("| pipe\\|name.npy |"), "{text}");
    assert!(lines[3].starts_with("| b\\n\\|.npy "), "{text}");
    let missing = kvsim_in(folder.path(), &["replay", "no\x1b[31m\nsuch.npy"]);
    assert!(missing.stderr.contains("no\\u{1b}[31m\\nsuch.npy") && missing.stderr.lines().count() == 1, "{missing:?}");
}

#[test]
fn the_content_is_that_of_the_file_however_much_of_it_was_read() {
    let content = |flags: &[&str]| {
        let args = ["replay", "traces/smollm2-prose-384.safetensors", "-p", "tova", "-b", "64", "-f", "csv", "-q"];
        Csv::parse(&kvsim(&[&args[..], flags].concat()).report()).column("content")
    };
    let whole = content(&[]);
    for flags in
        [&["--steps", "9"][..], &["--layers", "3"], &["--threads", "1"], &["--kv-heads", "off", "--heads", "4"]]
    {
        assert_eq!(content(flags), whole, "{flags:?}");
    }
}
