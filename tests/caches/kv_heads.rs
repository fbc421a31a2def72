//! Query heads that share a KV head: one kept set, chosen by the mean of their rows, measured on each.

use crate::agree::{assert_agree, tallies};
use crate::common::binary::{Csv, kvsim, without};
use crate::common::files::Folder;
use crate::common::lanes::{lane, rows_of};
use crate::common::shared;
use crate::made::{Dice, known_rows, native, trace};
use crate::reference::SelfKind;
use crate::slow::Situation;
use kvsim::replay::{NoObserver, Options, replay, shared_caches_of};
use kvsim::trace::Source;
use kvsim::trace::memory::{MemoryTrace, Rows};

/// Two heads over four rows: one always on position 0, the other on position 1 as soon as it can.
fn two_heads() -> [Rows; 2] {
    let sink = rows_of(&[&[1.0], &[1.0, 0.0], &[1.0, 0.0, 0.0], &[1.0, 0.0, 0.0, 0.0]]);
    let other = rows_of(&[&[1.0], &[0.0, 1.0], &[0.0, 1.0, 0.0], &[0.0, 1.0, 0.0, 0.0]]);
    [sink, other]
}

/// A trace of single query heads in these layers, with what its metadata says of them.
fn query_heads(layers: &[u32], heads: usize, group: &str, kv_heads: usize) -> MemoryTrace {
    let streams: Vec<(u32, String, Rows)> = layers
        .iter()
        .flat_map(|layer| {
            (0..heads).map(move |head| (*layer, head.to_string(), known_rows(100 * layer + head as u32, 24)))
        })
        .collect();
    let streams: Vec<_> = streams.iter().map(|(layer, head, rows)| (*layer, head.as_str(), rows)).collect();
    trace(SelfKind::Included, 0, &streams)
        .with_metadata("group", group)
        .with_metadata("query_heads", &heads.to_string())
        .with_metadata("kv_heads", &kv_heads.to_string())
}

#[test]
fn a_group_retains_three_quarters_of_what_its_heads_would_keep_alone() {
    let (folder, heads) = (Folder::new(), two_heads());
    let path =
        native(&folder, "a.safetensors", &trace(SelfKind::Excluded, 1, &[(0, "0", &heads[0]), (0, "1", &heads[1])]));
    let run = |kv_heads| {
        let args = ["replay", &path, "--policy", "h2o", "--budget", "2", "--recent-window", "1"];
        Csv::parse(&kvsim(&[&args[..], &["--kv-heads", kv_heads, "--per-stream"]].concat()).report())
    };
    let alone = run("off");
    assert_eq!((alone.column("head"), alone.column("retained_mass")), ("0 1".into(), "1 1".into()));
    let group = run("1");
    assert_eq!((group.column("head"), group.column("retained_mass")), ("kv0".into(), "0.75".into()));
    assert_eq!((group.column("steps"), group.column("rows_measured")), ("4".into(), "8".into()));
    let each = run("2");
    assert_eq!((each.column("head"), each.column("retained_mass")), ("kv0 kv1".into(), "1 1".into()));
}

#[test]
fn every_policy_serves_a_group_as_the_slow_replay_does() {
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(4, 30);
        let budget = 1 + dice.below(9);
        assert_agree(&situation, &dice.lanes(budget), &format!("seed {seed}"));
    }
}

#[test]
fn heads_that_attend_alike_are_served_as_one_head_is() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let one = Situation { renormalized: false, ..dice.situation(1, 30) };
        let one = Situation { heads: vec![one.heads[0].clone()], ..one };
        let three = Situation { heads: vec![one.heads[0].clone(); 3], ..one.clone() };
        let budget = 1 + dice.below(9);
        let lanes = dice.lanes(budget);
        for ((lane, one), three) in lanes.iter().zip(tallies(&one, &lanes)).zip(tallies(&three, &lanes)) {
            let what = format!("seed {seed}: {}", lane.entry.name);
            let cache = [
                one.count("steps"),
                one.count("evicted"),
                one.count("expired"),
                one.count("eviction_calls"),
                one.count("kept_sum"),
                one.count("peak_kept"),
            ];
            let shared = [
                three.count("steps"),
                three.count("evicted"),
                three.count("expired"),
                three.count("eviction_calls"),
                three.count("kept_sum"),
                three.count("peak_kept"),
            ];
            assert_eq!(cache, shared, "{what}");
            let pooled = [
                one.count("rows_measured"),
                one.count("rows_full"),
                one.count("heavy_hits"),
                one.count("pivotal_hits"),
                one.count("peak_misses"),
                one.count("broken_rows"),
            ];
            let of_three = [
                three.count("rows_measured"),
                three.count("rows_full"),
                three.count("heavy_hits"),
                three.count("pivotal_hits"),
                three.count("peak_misses"),
                three.count("broken_rows"),
            ];
            assert_eq!(pooled.map(|count| 3 * count), of_three, "{what}");
            assert!((3.0 * one.real("retained_mass_sum") - three.real("retained_mass_sum")).abs() < 1e-9, "{what}");
            assert_eq!(
                (one.number("min_step_mass"), one.count("state_bytes")),
                (three.number("min_step_mass"), three.count("state_bytes")),
                "{what}"
            );
        }
    }
}

#[test]
fn a_cache_for_each_query_head_is_what_off_gives() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &query_heads(&[0, 1], 4, "none", 2));
    let run = |kv_heads| {
        let args = ["replay", &path, "--budget", "8", "--recent-window", "2", "--policy", "h2o,tova,snapkv,oracle"];
        kvsim(&[&args[..], &["--kv-heads", kv_heads, "--force", "--per-stream"]].concat()).report()
    };
    let figures = |kv_heads| without(&run(kv_heads), &["kv_heads"]).replace(",kv", ",");
    assert_eq!(figures("4"), figures("off"));
    assert_eq!(["4", "off"].map(|kv_heads| Csv::parse(&run(kv_heads)).text(0, "kv_heads").to_owned()), ["4", "off"]);
}

#[test]
fn figures_are_pooled_over_heads_while_steps_count_once() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &query_heads(&[0, 1], 6, "none", 2));
    let args = ["replay", &path, "--policy", "h2o,oracle", "--budget", "8", "--recent-window", "2", "--kv-heads", "2"];
    let csv = Csv::parse(&kvsim(&args).report());
    assert_eq!(csv.column("steps"), "96 96", "two layers, two caches, 24 steps");
    assert_eq!(csv.column("rows_measured"), "288 288", "three heads each");
    assert_eq!(csv.column("layer_budget"), "8 8");
    assert!((csv.number(0, "row_mass") - 1.0).abs() < 1e-6);
}

#[test]
fn what_cannot_be_shared_is_refused_with_the_reason() {
    let folder = Folder::new();
    let whole = native(&folder, "whole.safetensors", &query_heads(&[3], 6, "none", 2));
    let refuses = |path: &str, kv_heads: &str, parts: &[&str]| {
        let args = ["replay", path, "--policy", "h2o", "--budget", "40", "--kv-heads", kv_heads, "--force"];
        kvsim(&args).refuses(2, parts);
    };
    for kv_heads in ["4", "5", "7", "12"] {
        let problem = format!("layer 3: 6 query heads cannot share {kv_heads} KV heads evenly");
        refuses(&whole, kv_heads, &[&format!("--kv-heads {kv_heads}"), &problem]);
    }
    let some = native(&folder, "some.safetensors", &query_heads(&[3], 6, "none", 2).with_metadata("query_heads", "9"));
    refuses(&some, "2", &["layer 3: it holds 6 of the 9 query heads, all are needed"]);
    let rows = known_rows(1, 5);
    let mean = native(&folder, "mean.safetensors", &trace(SelfKind::Included, 0, &[(3, "mean", &rows)]));
    refuses(&mean, "1", &["layer 3: its streams are not the single query heads"]);
    let gap = trace(SelfKind::Included, 0, &[(3, "0", &rows), (3, "2", &rows)]);
    refuses(&native(&folder, "gap.safetensors", &gap), "1", &["its streams are not the single query heads 0, 1, 2"]);
    for text in ["0", "-1", "all", "1.5", ""] {
        let ran = kvsim(&["replay", &whole, &format!("--kv-heads={text}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{text}");
        assert!(
            ran.stderr.contains("write the number of KV heads in a layer, such as 4 or 0:4,1:8, or off"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn heads_share_as_the_trace_says_and_one_line_says_so() {
    let folder = Folder::new();
    let said = |name: &str, source: &MemoryTrace, more: &[&str]| {
        let path = native(&folder, name, source);
        let ran = kvsim(&[&["replay", &path, "--policy", "tova", "--budget", "8"], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    let single = query_heads(&[0, 1], 6, "none", 2);
    let line = said("single.safetensors", &single, &[]);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(
        line.starts_with("note: ") && line.contains("its 6 query heads share 2 KV heads: a cache for each"),
        "{line}"
    );
    let forced = ["--kv-heads", "1", "--force"];
    for more in [&["--kv-heads", "off"][..], &["--kv-heads", "2"], &forced, &["--quiet"], &["-q"]] {
        assert_eq!(said("single.safetensors", &single, more), "", "{more:?}");
    }
    assert_eq!(said("group.safetensors", &query_heads(&[0], 2, "kv", 2).with_metadata("query_heads", "6"), &[]), "");
    assert_eq!(said("each.safetensors", &query_heads(&[0], 6, "none", 6), &[]), "");
}

#[test]
fn what_the_trace_says_of_kv_heads_is_what_the_flag_would_say() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &query_heads(&[0, 1], 6, "none", 2));
    let run = |more: &[&str]| {
        let args = ["replay", &path, "--policy", "h2o,tova", "--budget", "8", "--recent-window", "2", "--per-stream"];
        kvsim(&[&args[..], &["--quiet"], more].concat()).report()
    };
    assert_eq!(run(&[]), run(&["--kv-heads", "2"]));
    assert_eq!(Csv::parse(&run(&[])).column("head"), "kv0 kv0 kv1 kv1 kv0 kv0 kv1 kv1");
    assert_ne!(run(&[]), run(&["--kv-heads", "off"]));
    let single = run(&["--heads", "3,4"]);
    assert_eq!(Csv::parse(&single).column("head"), "3 3 4 4 3 3 4 4", "single query heads were chosen");
}

#[test]
fn kv_heads_against_the_trace_are_refused_unless_forced() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &query_heads(&[0, 1], 6, "none", 2));
    let run = |more: &[&str]| kvsim(&[&["replay", &path, "--policy", "tova", "--budget", "8"], more].concat());
    run(&["--kv-heads", "3"])
        .refuses(2, &["--kv-heads 3 contradicts the metadata", "layer 0 has 2 KV heads", "--force"]);
    run(&["--kv-heads", "0:2,1:3"]).refuses(2, &["--kv-heads 3 contradicts", "layer 1 has 2 KV heads"]);
    let forced = Csv::parse(&run(&["--kv-heads", "3", "--force", "--per-stream"]).report());
    assert_eq!(forced.column("head"), "kv0 kv1 kv2 kv0 kv1 kv2");
}

#[test]
fn layers_may_have_different_numbers_of_kv_heads() {
    let folder = Folder::new();
    let plain = |name: &str, entries: &[(&str, &str)]| {
        let streams: Vec<_> = (0..2)
            .flat_map(|layer| (0..6).map(move |head| (layer, head.to_string(), known_rows(100 * layer + head, 24))))
            .collect();
        let streams: Vec<_> = streams.iter().map(|(layer, head, rows)| (*layer, head.as_str(), rows)).collect();
        let source = trace(SelfKind::Included, 0, &streams);
        native(&folder, name, &entries.iter().fold(source, |source, (key, value)| source.with_metadata(key, value)))
    };
    let run = |path: &str, more: &[&str]| {
        let args = ["replay", path, "--policy", "h2o", "--budget", "8", "--recent-window", "2", "--per-stream", "-q"];
        Csv::parse(&kvsim(&[&args[..], more].concat()).report())
    };
    let unsaid = plain("unsaid.safetensors", &[]);
    let said = plain("said.safetensors", &[("group", "none"), ("kv_heads.0", "3"), ("kv_heads.1", "1")]);
    let (by_flag, by_trace) = (run(&unsaid, &["--kv-heads", "0:3,1:1"]), run(&said, &[]));
    assert_eq!((by_flag.column("layer"), by_flag.column("head")), ("0 0 0 1".into(), "kv0 kv1 kv2 kv0".into()));
    for column in ["layer", "head", "retained_mass"] {
        assert_eq!(by_flag.column(column), by_trace.column(column));
    }
    let alone = run(&unsaid, &["--kv-heads", "1", "--layers", "1"]);
    assert_eq!(by_flag.text(3, "retained_mass"), alone.text(0, "retained_mass"));
    let one = run(&unsaid, &["--kv-heads", "1:2"]);
    assert_eq!(one.column("head"), "0 1 2 3 4 5 kv0 kv1", "nothing is said of layer 0");
}

#[test]
fn layers_are_chosen_before_heads_are_grouped() {
    let (folder, rows) = (Folder::new(), known_rows(5, 24));
    let mixed = query_heads(&[2], 4, "mixed", 2).with_stream(0, "mean", rows).expect("sound");
    let path = native(&folder, "a.safetensors", &mixed);
    let run = |more: &[&str]| {
        let args = ["replay", &path, "--policy", "h2o", "--budget", "8", "--recent-window", "2", "--kv-heads", "2"];
        kvsim(&[&args[..], &["--per-stream"], more].concat())
    };
    run(&[]).refuses(2, &["layer 0: its streams are not the single query heads"]);
    let both = Csv::parse(&run(&["--layers", "2"]).report());
    assert_eq!((both.column("layer"), both.column("head")), ("2 2".into(), "kv0 kv1".into()));
    let second = Csv::parse(&run(&["--layers", "2", "--heads", "kv1"]).report());
    assert_eq!(second.text(0, "retained_mass"), both.text(1, "retained_mass"));
    run(&["--layers", "2", "--heads", "3"]).refuses(2, &["no head \"3\"; there are kv0, kv1"]);
}

#[test]
fn a_step_without_attention_in_one_head_is_none_for_the_group() {
    let mut heads = two_heads();
    heads[1][2] = None;
    let situation = Situation { heads: heads.to_vec(), ..Situation::plain(SelfKind::Excluded, Rows::new()) };
    let tally = tallies(&situation, &[lane("h2o", 2, &[("recent-window", 1)])]).remove(0);
    assert_eq!(
        (tally.count("steps"), tally.count("skipped_rows"), tally.count("rows_measured"), tally.count("evicted")),
        (3, 1, 6, 3)
    );
}

#[test]
fn heads_of_unequal_length_cannot_share_a_cache() {
    let [long, mut short] = two_heads();
    short.pop();
    let source = trace(SelfKind::Excluded, 1, &[(0, "0", &long), (0, "1", &short)]);
    let caches = shared_caches_of(source.info(), 1).expect("the labels are sound");
    let lanes = [lane("h2o", 2, &[("recent-window", 1)])];
    let refused = replay(&source, &caches, &lanes, &Options::default(), &NoObserver).expect_err("unequal");
    assert!(refused.to_string().contains("streams that share a cache are not equally long"), "{refused}");
}

#[test]
fn recorded_query_heads_lose_more_together_than_alone() {
    let Some(path) = shared::trace("smollm2-prose-512-layer15.safetensors") else { return };
    let run = |kv_heads: &str| {
        let path = path.to_str().expect("a plain name");
        let args = ["replay", path, "--policy", "tova,h2o,oracle", "--budget", "64", "--kv-heads", kv_heads];
        Csv::parse(&kvsim(&args).report())
    };
    let (alone, together) = (run("off"), run("3"));
    for row in 0..2 {
        assert!(alone.number(row, "retained_mass") > together.number(row, "retained_mass"));
        assert_eq!((together.text(row, "steps"), together.text(row, "rows_measured")), ("1536", "4608"));
    }
    assert_eq!(alone.text(2, "rows_measured"), together.text(2, "rows_measured"));
    let gap = alone.number(2, "retained_mass") - together.number(2, "retained_mass");
    assert!(gap.abs() < 1e-12, "the oracle looks at each head on its own");
}
