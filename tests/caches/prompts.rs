//! Prompts that are observed whole and then cut down at once, beside those that stream.

use crate::agree::{assert_agree, tallies};
use crate::common::binary::{Csv, Ran, kvsim};
use crate::common::files::{Folder, json_lines};
use crate::common::lanes::{lane, rows_of};
use crate::made::{Dice, known_rows, native, trace};
use crate::reference::SelfKind;
use crate::slow::{Situation, best_by_brute_force};
use kvsim::replay::LanePlan;
use kvsim::trace::memory::Rows;

const EVERYTHING: &str = "full,sliding-window,streaming-llm,random,h2o,scissorhands,scissorhands-paper,\
                          scissorhands-cross-layer,tova,decay,snapkv,pyramidkv,oracle,optimal,future-greedy";

/// Trace B: four rows, the token itself included.
fn trace_b() -> Rows {
    rows_of(&[&[1.0], &[0.5, 0.5], &[0.5, 0.25, 0.25], &[0.5, 0.125, 0.125, 0.25]])
}

/// A native file of one stream over so many positions.
fn file(folder: &Folder, positions: usize, prompt_len: Option<&str>) -> String {
    let source = trace(SelfKind::Included, 0, &[(0, "0", &known_rows(9, positions))]);
    let source = match prompt_len {
        None => source,
        Some(len) => source.with_metadata("prompt_len", len),
    };
    native(folder, "a.safetensors", &source)
}

fn run(path: &str, policies: &str, budget: &str, more: &[&str]) -> Ran {
    let args = ["replay", path, "--policy", policies, "--budget", budget];
    kvsim(&[&args[..], more].concat())
}

#[test]
fn every_policy_cuts_a_prompt_down_as_the_slow_replay_does() {
    for seed in 1000..1100 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(1, 40);
        let rows = situation.heads[0].len();
        let situation = Situation { prompt: dice.below(situation.first + rows + 1), window: None, ..situation };
        let budget = 1 + dice.below(12);
        assert_agree(&situation, &dice.lanes(budget), &format!("seed {seed}"));
    }
}

#[test]
fn trace_b_as_a_prompt_drops_two_positions_in_one_call() {
    let folder = Folder::new();
    let path = folder.write("b.jsonl", json_lines(0, &trace_b()));
    let more = ["--prompt", "block", "--prompt-len", "4", "--recent-window", "1", "--sinks", "1"];
    let ran = run(&path, "sliding-window,streaming-llm,h2o,scissorhands,tova", "2", &more);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.starts_with("warning: ") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("the prompt of 4 positions takes up every row"), "{}", ran.stderr);
    let csv = Csv::parse(&ran.stdout);
    for (column, wanted) in [("steps", "0"), ("prompt_steps", "4"), ("eviction_calls", "1"), ("evicted", "2")] {
        assert_eq!(csv.column(column), [wanted; 5].join(" "), "{column}");
    }
    for column in ["retained_mass", "retained_mass_full", "heavy_recall", "pivotal_hit_rate", "peak_miss_rate"] {
        assert_eq!(csv.column(column), "    ", "{column} is blank");
    }
    for column in ["broken_row_rate", "row_mass", "min_step_mass", "mean_kept"] {
        assert_eq!(csv.column(column), "    ", "{column} is blank");
    }
}

#[test]
fn which_positions_trace_b_loses_depends_on_all_of_its_rows() {
    // Sums over the rows: 5/2, 7/8, 3/8, 1/4; votes: position 0 three times, position 1 never.
    let situation = Situation { prompt: 4, ..Situation::plain(SelfKind::Included, trace_b()) };
    let records = crate::agree::replayed(&situation, &[lane("h2o", 2, &[("recent-window", 1)])]).remove(0).1;
    let victims: Vec<Vec<u32>> = crate::common::lanes::victims(&records);
    assert_eq!(victims, [vec![], vec![], vec![], vec![1, 2]]);
    assert!(records.iter().all(|record| record.measured.is_none()));
    assert_eq!(records.iter().map(|record| record.kept).collect::<Vec<_>>(), [1, 2, 3, 2]);
}

#[test]
fn rows_of_a_prompt_are_observed() {
    // Position 1 matters in the prompt only, position 2 in the first row after it only.
    let rows = rows_of(&[
        &[1.0],
        &[0.25, 0.75],
        &[0.25, 0.75, 0.0],
        &[0.25, 0.75, 0.0, 0.0],
        &[0.25, 0.0, 0.5, 0.0, 0.25],
        &[0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
    ]);
    let lanes = [lane("h2o", 2, &[("recent-window", 0)])];
    let prompt = |prompt| Situation { prompt, ..Situation::plain(SelfKind::Included, rows.clone()) };
    let block = crate::agree::replayed(&prompt(4), &lanes).remove(0);
    assert_eq!(crate::common::lanes::kept_at_the_end(&block.1), [0, 1], "by the scores of the prompt");
    assert_eq!(block.0.real("retained_mass_sum"), 0.5 + 1.0, "rows 4 and 5, the token itself included");
}

#[test]
fn a_prompt_shorter_than_every_window_evicts_nothing() {
    let folder = Folder::new();
    let path = file(&folder, 60, None);
    let stream = Csv::parse(&run(&path, "h2o,snapkv,tova,random", "40", &[]).report());
    let block =
        Csv::parse(&run(&path, "h2o,snapkv,tova,random", "40", &["--prompt", "block", "--prompt-len", "20"]).report());
    for column in ["eviction_calls", "evicted", "peak_kept", "retained_mass_full", "rows_full"] {
        assert_eq!(stream.column(column), block.column(column), "{column}: no prompt row is missed");
    }
    assert_eq!((block.text(0, "steps"), block.text(0, "prompt_steps")), ("40", "20"));
}

#[test]
fn a_prompt_longer_than_the_budget_is_cut_before_the_first_measured_row() {
    let folder = Folder::new();
    let path = file(&folder, 60, None);
    let csv = Csv::parse(&run(&path, EVERYTHING, "40", &["--prompt", "block", "--prompt-len", "50"]).report());
    for row in 0..csv.len() {
        let policy = csv.text(row, "policy").to_owned();
        assert_eq!((csv.text(row, "steps"), csv.text(row, "prompt_steps")), ("10", "50"), "{policy}");
        if policy == "full" {
            assert_eq!(csv.text(row, "rows_full"), "0");
            continue;
        }
        assert_eq!(csv.text(row, "rows_full"), "10", "{policy}: every row comes after the cut");
        assert_eq!(csv.text(row, "retained_mass"), csv.text(row, "retained_mass_full"), "{policy}");
        if !["oracle", "scissorhands-paper"].contains(&policy.as_str()) {
            assert_eq!((csv.text(row, "eviction_calls"), csv.text(row, "evicted")), ("11", "20"), "{policy}");
            assert_eq!((csv.text(row, "peak_kept"), csv.text(row, "mean_kept")), ("40", "40"), "{policy}");
        }
    }
}

#[test]
fn a_prompt_as_long_as_the_sequence_leaves_nothing_to_measure() {
    let folder = Folder::new();
    let path = file(&folder, 60, None);
    let ran = run(&path, EVERYTHING, "40", &["--prompt", "block", "--prompt-len", "60"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("takes up every row: there is none to measure"), "{}", ran.stderr);
    let csv = Csv::parse(&ran.stdout);
    assert!((0..csv.len()).all(|row| csv.text(row, "steps") == "0" && csv.text(row, "retained_mass").is_empty()));
    let quiet = run(&path, EVERYTHING, "40", &["--prompt", "block", "--prompt-len", "60", "--quiet"]);
    assert_eq!(quiet.report(), ran.stdout);
}

#[test]
fn a_prompt_longer_than_the_sequence_is_refused() {
    let folder = Folder::new();
    let path = file(&folder, 60, None);
    let ran = run(&path, "tova", "40", &["--prompt", "block", "--prompt-len", "61"]);
    ran.refuses(2, &["a.safetensors", "a prompt of 61 positions is longer than its 60"]);
    let told = file(&folder, 60, Some("61"));
    run(&told, "tova", "40", &["--prompt", "block"]).refuses(2, &["a prompt of 61 positions is longer than its 60"]);
}

#[test]
fn a_block_without_any_length_is_refused() {
    let folder = Folder::new();
    for said in [None, Some("0")] {
        let path = file(&folder, 60, said);
        let ran = run(&path, "tova", "40", &["--prompt", "block"]);
        ran.refuses(2, &["a.safetensors", "it does not say how long its prompt is", "--prompt-len"]);
    }
    let lines =
        format!("{}\n{}", r#"{"kvsim":1,"self":"included","prompt_len":"some"}"#, json_lines(0, &known_rows(9, 60)));
    let path = folder.write("a.jsonl", lines);
    run(&path, "tova", "40", &["--prompt", "block"]).refuses(1, &["a.jsonl", "prompt_len is \"some\""]);
}

#[test]
fn a_length_without_a_block_is_refused() {
    let folder = Folder::new();
    let path = file(&folder, 60, None);
    run(&path, "tova", "40", &["--prompt-len", "20"]).refuses(2, &["--prompt-len", "add --prompt block"]);
}

#[test]
fn the_metadata_says_how_long_the_prompt_is_and_the_flag_overrides_it() {
    let folder = Folder::new();
    let path = file(&folder, 60, Some("25"));
    let steps = |more: &[&str]| {
        let csv = Csv::parse(&run(&path, "tova,oracle", "20", &[&["-q"], more].concat()).report());
        format!("{} / {}", csv.column("prompt_steps"), csv.column("steps"))
    };
    assert_eq!(steps(&["--prompt", "block"]), "25 25 / 35 35");
    assert_eq!(steps(&["--prompt", "block", "--prompt-len", "30"]), "30 30 / 30 30");
    let against = run(&path, "tova", "20", &["--prompt", "block", "--prompt-len", "30"]);
    let note = "its metadata says that the prompt has 25 positions: --prompt-len makes it 30";
    assert!(against.stderr.contains(note), "{}", against.stderr);
    assert_eq!(steps(&["--prompt", "stream"]), "0 0 / 60 60");
    assert_eq!(steps(&[]), "0 0 / 60 60");
    assert_eq!(steps(&["--prompt", "block", "--steps", "30"]), "25 25 / 5 5");
}

#[test]
fn rows_of_a_prompt_without_attention_are_no_problem() {
    let folder = Folder::new();
    let mut rows = known_rows(4, 30);
    [0, 3, 19, 25].into_iter().for_each(|row| rows[row] = None);
    let path = folder.write("a.jsonl", json_lines(0, &rows));
    let csv = Csv::parse(
        &run(&path, EVERYTHING, "12", &["--recent-window", "3", "--prompt", "block", "--prompt-len", "20"]).report(),
    );
    for row in 0..csv.len() {
        let counts = ["prompt_steps", "steps", "skipped_rows"].map(|column| csv.text(row, column));
        assert_eq!(counts, ["20", "9", "1"], "{}: null rows of the prompt are prompt rows", csv.text(row, "policy"));
    }
}

#[test]
fn a_prompt_of_no_more_than_one_position_behaves_as_a_stream() {
    for seed in 0..30 {
        let mut dice = Dice::new(seed);
        let situation = Situation { prompt: 0, ..dice.situation(2, 25) };
        let kind = situation.kind;
        let situation =
            Situation { first: kind.step_at(0), heads: vec![dice.rows(kind, kind.step_at(0), 25, None)], ..situation };
        let budget = 1 + dice.below(6);
        let lanes = dice.lanes(budget);
        let stream = tallies(&situation, &lanes);
        let one = tallies(&Situation { prompt: 1, ..situation.clone() }, &lanes);
        for ((lane, stream), one) in lanes.iter().zip(stream).zip(one) {
            if kind == SelfKind::Excluded {
                assert_eq!(stream, one, "{}: position 0 has no row", lane.entry.name);
            } else {
                let evictions = |tally: &kvsim::replay::Tally| {
                    [tally.count("evicted"), tally.count("eviction_calls"), tally.count("expired")]
                };
                let all_steps = |tally: &kvsim::replay::Tally| tally.count("steps") + tally.count("skipped_rows");
                assert_eq!(evictions(&stream), evictions(&one), "{}", lane.entry.name);
                assert_eq!(all_steps(&stream), all_steps(&one) + 1, "{}: row 0 is of the prompt", lane.entry.name);
            }
        }
    }
    let folder = Folder::new();
    let path = file(&folder, 60, None);
    let stream = run(&path, EVERYTHING, "40", &[]).report();
    assert_eq!(run(&path, EVERYTHING, "40", &["--prompt", "block", "--prompt-len", "0"]).report(), stream);
}

#[test]
fn the_optimum_of_a_block_is_what_trying_everything_finds() {
    for seed in 0..250 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(2, 6);
        let rows = situation.heads[0].len().min(6_usize.saturating_sub(situation.first));
        if rows == 0 {
            continue;
        }
        let heads = situation.heads.iter().map(|head| head[..rows].to_vec()).collect();
        let prompt = dice.below(situation.first + rows + 1);
        let situation = Situation { heads, prompt, ..situation };
        let budget = 1 + dice.below(4);
        let best = best_by_brute_force(&situation, budget);
        let lanes = dice.lanes(budget);
        let tallies = tallies(&situation, &lanes);
        let of = |name: &str| {
            let at = lanes.iter().position(|lane| lane.entry.name == name).expect("bounds are always possible");
            tallies[at].real("retained_mass_sum")
        };
        let what = format!("seed {seed}: {situation:?} at {budget}");
        assert!((of("optimal") - best).abs() < 1e-6, "{what}: {} is not {best}", of("optimal"));
        assert!(of("oracle") >= best - 1e-6, "{what}: oracle");
        // Blocks of a policy of its own are cut a row later than a prompt ends.
        let held = |lane: &LanePlan| lane.entry.budgeted && lane.entry.own.cuts.is_none();
        for (lane, tally) in lanes.iter().zip(&tallies).filter(|(lane, _)| held(lane)) {
            let name = lane.entry.name;
            assert!(tally.real("retained_mass_sum") <= of("oracle") + 1e-6, "{what}: {name} above the oracle");
            assert!(
                tally.real("retained_mass_sum") <= best + 1e-6 || name == "oracle",
                "{what}: {name} above the optimum"
            );
        }
    }
}
