//! Traces that begin in the middle of their sequence: decode steps without the prompt's rows.

use crate::agree::{assert_agree, replayed, tallies};
use crate::common::binary::{Csv, kvsim};
use crate::common::files::Folder;
use crate::common::lanes::{lane, victims};
use crate::made::{Dice, known_rows, native, trace};
use crate::reference::SelfKind;
use crate::slow::Situation;
use kvsim::policy::table::Make;
use kvsim::replay::StepRecord;

/// One head from step `first` on.
fn decode_only(seed: u32, kind: SelfKind, first: usize, rows: usize) -> Situation {
    let rows = Dice::new(seed).rows(kind, first, rows, None);
    Situation { first, ..Situation::plain(kind, rows) }
}

#[test]
fn every_policy_starts_late_as_the_slow_replay_does() {
    for seed in 3000..3100 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(2, 1);
        let (kind, first) = (situation.kind, 2 + dice.below(30));
        let count = 1 + dice.below(20);
        let heads = situation.heads.iter().map(|_| dice.rows(kind, first, count, situation.window)).collect();
        let prompt = if dice.once_in(2) { 0 } else { dice.below(first + count + 1) };
        let situation = Situation { first, heads, prompt, ..situation };
        let budget = 1 + dice.below(25);
        assert_agree(&situation, &dice.lanes(budget), &format!("seed {seed}"));
    }
}

#[test]
fn full_retains_all_that_its_rows_hold() {
    for kind in [SelfKind::Included, SelfKind::Excluded] {
        let tally = tallies(&decode_only(1, kind, 50, 20), &[lane("full", 0, &[])]).remove(0);
        assert_eq!(tally.real("retained_mass_sum"), tally.real("row_mass_sum"));
        assert_eq!((tally.count("peak_kept"), tally.count("evicted")), (70, 0));
    }
}

#[test]
fn the_first_eviction_comes_after_the_first_row_and_cuts_to_the_budget() {
    for kind in [SelfKind::Included, SelfKind::Excluded] {
        let mut dice = Dice::new(2);
        let lanes = dice.lanes(10);
        for (lane, (tally, records)) in lanes.iter().zip(replayed(&decode_only(7, kind, 50, 20), &lanes)) {
            let name = lane.entry.name;
            let lost =
                |record: &StepRecord| record.measured.as_ref().is_some_and(|row| row.real("retained_mass_sum") < 0.99);
            if matches!(lane.entry.make, Make::Bound(_)) || name == "full" {
                continue;
            }
            assert!(!lost(&records[0]), "{name}: the first row meets everything");
            let gone = victims(&records)[0].len();
            assert!(gone == 41 || (gone > 41 && name == "scissorhands-paper"), "{name}: {gone} of 51 go");
            assert!(records.iter().all(|record| record.kept <= 10), "{name}");
            let measured = records[1..].iter().filter(|record| record.measured.is_some()).count();
            assert_eq!(tally.count("rows_full"), measured as u64, "{name}: all rows but the first follow an eviction");
        }
    }
}

#[test]
fn no_policy_is_above_the_oracle_though_all_of_the_first_row_is_kept() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let situation = decode_only(seed, SelfKind::Included, 20, 1 + dice.below(6));
        let lanes = dice.lanes(5);
        let tallies = tallies(&situation, &lanes);
        let of = |name: &str| &tallies[lanes.iter().position(|lane| lane.entry.name == name).expect("it is there")];
        let (oracle, optimal) = (of("oracle"), of("optimal"));
        assert_eq!(oracle.count("rows_full"), optimal.count("rows_full"), "seed {seed}");
        for (lane, tally) in lanes.iter().zip(&tallies).filter(|(lane, _)| lane.entry.budgeted) {
            let name = lane.entry.name;
            assert!(
                tally.real("retained_mass_sum") <= oracle.real("retained_mass_sum") + 1e-6,
                "seed {seed}: {name} above the oracle"
            );
            assert!(
                name == "oracle" || tally.real("retained_mass_sum") <= optimal.real("retained_mass_sum") + 1e-6,
                "seed {seed}: {name}"
            );
        }
    }
}

#[test]
fn a_late_start_is_told_by_the_file_and_reported_over_all_positions() {
    let folder = Folder::new();
    let rows = known_rows(3, 60)[40..].to_vec();
    let path = native(&folder, "late.safetensors", &trace(SelfKind::Included, 40, &[(0, "0", &rows)]));
    let args = ["replay", &path, "--policy", "full,tova,oracle", "--budget", "50%"];
    let csv = Csv::parse(&kvsim(&args).report());
    assert_eq!((csv.column("budget"), csv.column("steps")), (" 30 30".into(), "20 20 20".into()));
    assert_eq!(csv.text(0, "retained_mass"), csv.text(0, "row_mass"));
    assert_eq!((csv.text(1, "eviction_calls"), csv.text(1, "evicted")), ("20", "30"));
    assert_eq!(csv.column("rows_full"), "0 19 19");
}

#[test]
fn rows_of_a_prompt_that_are_missing_are_not_missed() {
    // The prompt ends where the rows begin, or later, or before.
    let folder = Folder::new();
    let rows = known_rows(3, 60)[40..].to_vec();
    let path = native(&folder, "late.safetensors", &trace(SelfKind::Included, 40, &[(0, "0", &rows)]));
    let run = |more: &[&str]| {
        let args = ["replay", &path, "--policy", "sliding-window,tova,optimal,oracle", "--budget", "10"];
        kvsim(&[&args[..], more].concat()).report()
    };
    let stream = run(&[]);
    for len in ["0", "1", "20", "40"] {
        assert_eq!(run(&["--prompt", "block", "--prompt-len", len]), stream, "prompt of {len}");
    }
    let later = Csv::parse(&run(&["--prompt", "block", "--prompt-len", "45"]));
    assert_eq!(later.column("prompt_steps"), "5 5 5 5");
    assert_eq!(later.column("rows_full"), "15 15 15 15");
    assert_eq!(later.text(0, "evicted"), "50");
}

#[test]
fn positions_that_left_the_window_before_the_first_row_go_with_it() {
    let mut situation = decode_only(5, SelfKind::Included, 50, 10);
    situation.window = Some(8);
    let tally = tallies(&situation, &[lane("streaming-llm", 20, &[])]).remove(0);
    assert_eq!((tally.count("expired"), tally.count("evicted"), tally.count("peak_kept")), (53, 0, 7));
}
