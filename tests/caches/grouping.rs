//! Lines over several streams: all of them, by layer, by head; sums over sums.

use crate::common::binary::{Csv, kvsim};
use crate::common::files::Folder;
use crate::made::{Dice, native, trace};
use crate::reference::SelfKind;
use kvsim::trace::memory::Rows;

const SUMS: [&str; 19] = [
    "steps",
    "skipped_rows",
    "prompt_steps",
    "eviction_calls",
    "evicted",
    "expired",
    "state_bytes",
    "retained_mass_sum",
    "rows_measured",
    "retained_mass_full_sum",
    "rows_full",
    "row_mass_sum",
    "heavy_hits",
    "heavy_possible",
    "pivotal_hits",
    "pivotal_possible",
    "peak_misses",
    "broken_rows",
    "kept_sum",
];

/// Means, each with the sum and the count behind it.
const MEANS: [(&str, &str, &str); 7] = [
    ("retained_mass", "retained_mass_sum", "rows_measured"),
    ("retained_mass_full", "retained_mass_full_sum", "rows_full"),
    ("heavy_recall", "heavy_hits", "heavy_possible"),
    ("pivotal_hit_rate", "pivotal_hits", "pivotal_possible"),
    ("peak_miss_rate", "peak_misses", "rows_measured"),
    ("broken_row_rate", "broken_rows", "rows_measured"),
    ("row_mass", "row_mass_sum", "rows_measured"),
];

/// Layers 2, 10 and 0 with heads 0, 11 and mean; layer 2 has a window.
fn file(folder: &Folder) -> String {
    let mut dice = Dice::new(17);
    let labels = [2, 10, 0].into_iter().flat_map(|layer| ["0", "11", "mean"].map(|head| (layer, head)));
    let mut known = |window| -> Rows {
        let rows = dice.rows(SelfKind::Included, 0, 50, window);
        rows.into_iter().zip(1..).map(|(row, len)| row.or_else(|| Some(vec![1.0 / len as f32; len]))).collect()
    };
    let rows: Vec<_> = labels.map(|(layer, head)| (layer, head, known((layer == 2).then_some(15)))).collect();
    let streams: Vec<_> = rows.iter().map(|(layer, head, rows)| (*layer, *head, rows)).collect();
    native(folder, "a.safetensors", &trace(SelfKind::Included, 0, &streams).with_metadata("sliding_window.2", "15"))
}

fn run(path: &str, more: &[&str]) -> Csv {
    let args = ["replay", path, "--policy", "h2o,optimal,oracle", "--budget", "9,20", "--recent-window", "3", "-q"];
    Csv::parse(&kvsim(&[&args[..], &["--prompt", "block", "--prompt-len", "12"], more].concat()).report())
}

/// The lines of a report that are of this lane and, where they are named, this layer and head.
fn of(csv: &Csv, keys: &[(&str, &str)]) -> Vec<usize> {
    (0..csv.len()).filter(|row| keys.iter().all(|(column, text)| csv.text(*row, column) == *text)).collect()
}

#[track_caller]
fn assert_sums(groups: &Csv, row: usize, streams: &Csv, members: &[usize]) {
    for column in SUMS {
        let number = |csv: &Csv, row| csv.text(row, column).parse::<f64>().ok();
        let parts: Option<Vec<f64>> = members.iter().map(|member| number(streams, *member)).collect();
        match (number(groups, row), parts) {
            (Some(sum), Some(parts)) => {
                assert!((sum - parts.iter().sum::<f64>()).abs() < 1e-9, "{column}: {sum} of {parts:?}");
            }
            (None, None) => {}
            (sum, parts) => panic!("{column}: {sum:?} of {parts:?}"),
        }
    }
    for (mean, sum, count) in MEANS {
        if groups.text(row, mean).is_empty() {
            let none = |column| ["", "0"].contains(&groups.text(row, column));
            assert!(none(sum) && (none(count) || groups.text(row, sum).is_empty()), "{mean}");
        } else {
            assert_eq!(groups.number(row, mean), groups.number(row, sum) / groups.number(row, count), "{mean}");
        }
    }
    if !groups.text(row, "mean_kept").is_empty() {
        let steps = groups.number(row, "steps") + groups.number(row, "skipped_rows");
        assert_eq!(groups.number(row, "mean_kept"), groups.number(row, "kept_sum") / steps);
    }
}

#[track_caller]
fn assert_worst(groups: &Csv, row: usize, streams: &Csv, members: &[usize]) {
    let mass = |member: &usize| streams.number(*member, "retained_mass");
    let worst = members.iter().copied().min_by(|a, b| mass(a).total_cmp(&mass(b))).expect("members");
    assert_eq!(groups.number(row, "worst_retained_mass"), mass(&worst));
    let label = format!("{}/{}", streams.text(worst, "layer"), streams.text(worst, "head"));
    assert_eq!(groups.text(row, "worst_stream"), label);
}

#[test]
fn lines_by_layer_are_sums_over_the_sums_of_its_heads() {
    let folder = Folder::new();
    let path = file(&folder);
    let (streams, layers) = (run(&path, &["--per-stream"]), run(&path, &["--by", "layer"]));
    assert_eq!((streams.len(), layers.len()), (54, 18));
    assert_eq!(layers.column("layer"), [["0"; 6], ["2"; 6], ["10"; 6]].concat().join(" "));
    assert_eq!(layers.column("head"), ["all"; 18].join(" "));
    for row in 0..layers.len() {
        let keys = ["layer", "policy", "budget"].map(|column| (column, layers.text(row, column)));
        let members = of(&streams, &keys);
        assert_eq!(members.len(), 3);
        assert_sums(&layers, row, &streams, &members);
        assert_worst(&layers, row, &streams, &members);
    }
}

#[test]
fn lines_by_head_are_sums_over_the_sums_of_its_layers() {
    let folder = Folder::new();
    let path = file(&folder);
    let (streams, heads) = (run(&path, &["--per-stream"]), run(&path, &["--by", "head"]));
    assert_eq!(heads.column("head"), [["0"; 6], ["11"; 6], ["mean"; 6]].concat().join(" "));
    assert_eq!(heads.column("layer"), ["all"; 18].join(" "));
    for row in 0..heads.len() {
        let keys = ["head", "policy", "budget"].map(|column| (column, heads.text(row, column)));
        let members = of(&streams, &keys);
        assert_eq!(members.len(), 3);
        assert_sums(&heads, row, &streams, &members);
        assert_worst(&heads, row, &streams, &members);
    }
}

#[test]
fn one_line_over_all_is_the_sum_of_any_grouping() {
    let folder = Folder::new();
    let path = file(&folder);
    let all = run(&path, &[]);
    assert_eq!((all.column("layer"), all.column("head")), (["all"; 6].join(" "), ["all"; 6].join(" ")));
    for parts in [run(&path, &["--per-stream"]), run(&path, &["--by", "layer"]), run(&path, &["--by", "head"])] {
        for row in 0..all.len() {
            let keys = ["policy", "budget"].map(|column| (column, all.text(row, column)));
            assert_sums(&all, row, &parts, &of(&parts, &keys));
        }
    }
    let streams = run(&path, &["--per-stream"]);
    for row in 0..all.len() {
        let keys = ["policy", "budget"].map(|column| (column, all.text(row, column)));
        assert_worst(&all, row, &streams, &of(&streams, &keys));
    }
}

#[test]
fn groups_are_made_of_the_streams_that_were_chosen() {
    let folder = Folder::new();
    let path = file(&folder);
    let layers = run(&path, &["--by", "layer", "--heads", "mean", "--layers", "0,10"]);
    let streams = run(&path, &["--per-stream", "--heads", "mean", "--layers", "0,10"]);
    assert_eq!((layers.column("layer"), streams.column("layer")), (streams.column("layer"), layers.column("layer")));
    assert_eq!(layers.column("retained_mass"), streams.column("retained_mass"));
    assert_eq!(layers.text(0, "worst_stream"), "", "one stream is not several");
}

#[test]
fn one_line_a_stream_and_lines_by_group_exclude_each_other() {
    let ran = kvsim(&["replay", "--per-stream", "--by", "layer"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    let ran = kvsim(&["replay", "--by", "stream"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
}
