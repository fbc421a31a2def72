//! Layers that attend through a sliding window: what has left it goes by itself.

use crate::agree::{assert_agree, replayed, replayed_on, tallies};
use crate::as_reference::setting_of;
use crate::common::binary::{Csv, Ran, kvsim, without};
use crate::common::files::{Folder, json_lines};
use crate::common::lanes::{lane, rows_of, victims};
use crate::made::{Dice, known_rows, native, trace};
use crate::reference::SelfKind;
use crate::reference::cross_layer::caches_of_layers;
use crate::slow::{Lane, Situation, best_by_brute_force};
use kvsim::keeping::{Keeping, PromptPlan};
use kvsim::policy::table::Make;
use kvsim::replay::{Options, caches_of};
use kvsim::trace::Source;
use kvsim::trace::memory::Rows;

/// Rows of one head that obey a window.
fn windowed(seed: u32, kind: SelfKind, positions: usize, window: usize) -> Situation {
    let rows = Dice::new(seed).rows(kind, kind.step_at(0), positions, Some(window));
    Situation { window: Some(window), ..Situation::plain(kind, rows) }
}

fn run(path: &str, policies: &str, budget: &str, more: &[&str]) -> Ran {
    let args = ["replay", path, "--policy", policies, "--budget", budget];
    kvsim(&[&args[..], more].concat())
}

/// A native file of two layers; what its metadata says of windows.
fn two_layers(folder: &Folder, windows: &[(&str, &str)]) -> String {
    let [first, second] = [1, 2].map(|seed| known_rows(seed, 40));
    let source = trace(SelfKind::Included, 0, &[(0, "0", &first), (1, "0", &second)]);
    let key = |layer: &str| format!("sliding_window.{layer}");
    let source = windows.iter().fold(source, |source, (layer, window)| source.with_metadata(&key(layer), window));
    native(folder, "layers.safetensors", &source)
}

#[test]
fn every_policy_lets_positions_expire_as_the_slow_replay_does() {
    for seed in 2000..2120 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(2, 40);
        let situation = Situation { window: Some(1 + dice.below(12)), ..situation };
        let budget = 1 + dice.below(14);
        assert_agree(&situation, &dice.lanes(budget), &format!("seed {seed}"));
    }
}

#[test]
fn what_has_left_the_window_goes_after_the_last_row_that_could_see_it() {
    // Window 3: the row of step 4 sees 2, 3 and 4, so position 1 goes after step 3.
    let rows: Rows = (1..=6).map(|len| Some(vec![1.0 / len as f32; len])).collect();
    let situation = Situation { window: Some(3), ..Situation::plain(SelfKind::Included, rows) };
    let (tally, records) = replayed(&situation, &[lane("sliding-window", 100, &[])]).remove(0);
    assert_eq!(records.iter().map(|record| record.kept).collect::<Vec<_>>(), [1, 2, 2, 2, 2, 2]);
    assert_eq!((tally.count("expired"), tally.count("evicted"), tally.count("eviction_calls")), (4, 0, 0));
    let seen = [1.0, 1.0, 1.0, 3.0 / 4.0, 3.0 / 5.0, 3.0 / 6.0];
    for (record, seen) in records.iter().zip(seen) {
        let retained = record.measured.as_ref().expect("attention").real("retained_mass_sum");
        assert!((retained - seen).abs() < 1e-6, "step {}: {retained}", record.step);
    }
}

#[test]
fn a_budget_that_holds_the_window_never_evicts() {
    for kind in [SelfKind::Included, SelfKind::Excluded] {
        let situation = windowed(3, kind, 60, 9);
        for budget in [8, 9, 30] {
            let mut dice = Dice::new(budget as u32);
            let lanes = dice.lanes(budget);
            for (lane, tally) in lanes.iter().zip(tallies(&situation, &lanes)) {
                let name = lane.entry.name;
                assert_eq!(
                    (tally.count("evicted"), tally.count("eviction_calls"), tally.count("rows_full")),
                    (0, 0, 0),
                    "{name} at {budget}"
                );
                assert!(
                    (tally.real("retained_mass_sum") - tally.real("row_mass_sum")).abs() < 1e-9,
                    "{name} at {budget}"
                );
                if !matches!(lane.entry.make, Make::Bound(_)) && name != "pyramidkv" {
                    assert_eq!(tally.count("peak_kept"), 8, "{name}: the next row sees itself and eight more");
                }
            }
        }
        let tally = tallies(&situation, &[lane("tova", 7, &[])]).remove(0);
        assert!(tally.count("evicted") > 0 && tally.count("expired") > 0, "one less than the window needs: {tally:?}");
    }
}

#[test]
fn a_window_of_one_position_holds_nothing_between_steps() {
    for kind in [SelfKind::Included, SelfKind::Excluded] {
        let situation = windowed(4, kind, 20, 1);
        let mut dice = Dice::new(5);
        let lanes = dice.lanes(6);
        for (lane, tally) in lanes.iter().zip(tallies(&situation, &lanes)) {
            if !matches!(lane.entry.make, Make::Bound(_)) {
                assert_eq!((tally.count("peak_kept"), tally.count("evicted")), (0, 0), "{}", lane.entry.name);
            }
            assert!((tally.real("retained_mass_sum") - tally.real("row_mass_sum")).abs() < 1e-9, "{}", lane.entry.name);
        }
    }
}

#[test]
fn expired_positions_are_never_counted_as_evicted() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let situation = windowed(seed, SelfKind::Included, 50, 2 + dice.below(20));
        let budget = 1 + dice.below(20);
        let lanes = dice.lanes(budget);
        for (lane, (tally, records)) in lanes.iter().zip(replayed(&situation, &lanes)) {
            if matches!(lane.entry.make, Make::Bound(_)) {
                assert_eq!((tally.count("expired"), tally.count("evicted")), (0, 0));
                continue;
            }
            let evicted = victims(&records).concat().len() as u64;
            let left = records.last().expect("rows").kept as u64;
            assert_eq!(tally.count("evicted"), evicted, "seed {seed}: {}", lane.entry.name);
            assert_eq!(tally.count("evicted") + tally.count("expired") + left, 50, "seed {seed}: {}", lane.entry.name);
        }
    }
}

#[test]
fn policies_that_protect_sinks_do_not_hold_them_once_they_are_dead() {
    let situation = windowed(6, SelfKind::Included, 40, 12);
    let lanes = [lane("streaming-llm", 6, &[("sinks", 4)]), lane("sliding-window", 6, &[])];
    let [sinks, plain] = replayed(&situation, &lanes).try_into().expect("two lanes");
    let late = |records: &[kvsim::replay::StepRecord]| victims(records)[20..].to_vec();
    assert_eq!(late(&sinks.1), late(&plain.1), "without living sinks both drop the oldest");
    let kept = Situation { window: None, ..situation };
    let held = replayed(&kept, &lanes).remove(0);
    assert!(crate::common::lanes::kept_at_the_end(&held.1).starts_with(&[0, 1, 2, 3]), "else they are held for ever");
}

#[test]
fn letting_the_dead_go_leaves_more_room_for_the_living() {
    // Every row obeys the window: what expires is worth nothing, and a policy that knows the future, or
    // drops the oldest, can only gain.
    for seed in 0..30 {
        let situation = windowed(seed, SelfKind::Included, 60, 10);
        let lanes = [lane("sliding-window", 6, &[]), lane("optimal", 6, &[]), lane("oracle", 6, &[])];
        let with = tallies(&situation, &lanes);
        let without = tallies(&Situation { window: None, ..situation }, &lanes);
        for (lane, (with, without)) in lanes.iter().zip(with.iter().zip(&without)) {
            assert!(
                with.real("retained_mass_sum") >= without.real("retained_mass_sum") - 1e-6,
                "seed {seed}: {}",
                lane.entry.name
            );
        }
        assert!(
            (with[1].real("retained_mass_sum") - without[1].real("retained_mass_sum")).abs() < 1e-6,
            "the optimum holds nothing dead anyway"
        );
    }
}

#[test]
fn the_optimum_knows_of_the_window_even_where_rows_do_not() {
    let mut smaller = 0;
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let kind = [SelfKind::Included, SelfKind::Excluded][dice.below(2)];
        let rows = dice.rows(kind, kind.step_at(0), 6, None);
        let situation = Situation { window: Some(2 + dice.below(4)), ..Situation::plain(kind, rows) };
        let budget = 1 + dice.below(3);
        let best = best_by_brute_force(&situation, budget);
        let found = tallies(&situation, &[lane("optimal", budget, &[])]).remove(0).real("retained_mass_sum");
        assert!((found - best).abs() < 1e-6, "seed {seed}: {found} is not {best}: {situation:?} at {budget}");
        smaller += usize::from(best < best_by_brute_force(&Situation { window: None, ..situation }, budget) - 1e-6);
    }
    assert!(smaller > 20, "windows that rows do not obey take something away: {smaller}");
}

#[test]
fn a_coupled_policy_lets_each_layer_expire_by_its_own_window() {
    for seed in 0..30 {
        let mut dice = Dice::new(seed);
        let windows = [Some(3 + dice.below(6)), None, Some(3 + dice.below(12))];
        let (kind, budget) = (SelfKind::Included, 2 + dice.below(6));
        let rows = windows.map(|window| dice.rows(kind, 0, 30, window));
        let plan = lane("scissorhands-cross-layer", budget, &[("recent-window", 1)]);
        let layers: Vec<_> = (0..3).map(|layer| (layer, "0", &rows[layer as usize])).collect();
        let source = trace(kind, 0, &layers);
        let source = (0..3).filter(|layer| windows[*layer].is_some()).fold(source, |source, layer| {
            source.with_metadata(&format!("sliding_window.{layer}"), &windows[layer].unwrap_or(0).to_string())
        });
        let prompt = dice.below(12);
        let options = Options { heavy_hitters: 3, ..Options::default() };
        let kept = plan.clone().kept(Keeping { prompt: PromptPlan::block(prompt), ..plan.keeping });
        let found = replayed_on(&source, &caches_of(source.info()).expect("sound"), &[kept], &options);
        let situation =
            |layer: usize| Situation { window: windows[layer], prompt, ..Situation::plain(kind, rows[layer].clone()) };
        let shared = caches_of_layers(&setting_of(&plan), 3);
        let mut lanes: Vec<Lane> =
            shared.into_iter().enumerate().map(|(layer, cache)| Lane::new(&situation(layer), cache, budget)).collect();
        (0..30).for_each(|_| lanes.iter_mut().for_each(Lane::step));
        for (layer, (found, lane)) in found.iter().zip(&lanes).enumerate() {
            let what = format!("seed {seed}: layer {layer}");
            crate::agree::assert_same_steps(&found[0].1, &lane.steps, &what);
            crate::agree::assert_same_counts(&found[0].0, &lane.steps, &what);
        }
    }
}

#[test]
fn the_metadata_or_a_flag_says_which_layers_have_a_window() {
    let folder = Folder::new();
    let expired = |path: &str, more: &[&str]| {
        let more = [&["--per-stream", "-q"], more].concat();
        Csv::parse(&run(path, "sliding-window", "100", &more).report()).column("expired")
    };
    let none = two_layers(&folder, &[]);
    assert_eq!(expired(&none, &[]), "0 0");
    assert_eq!(expired(&none, &["--layer-window", "1:10"]), "0 31");
    assert_eq!(expired(&none, &["--layer-window", "10"]), "31 31");
    let said = two_layers(&folder, &[("1", "10")]);
    assert_eq!(expired(&said, &[]), "0 31");
    assert_eq!(expired(&said, &["--layer-window", "0:20,1:30"]), "21 11");
    let against = run(&said, "sliding-window", "100", &["--layer-window", "0:20,1:30"]);
    let note = "its metadata says that layer 1 has a sliding window of 10 positions: --layer-window makes it 30";
    assert!(against.stderr.contains(note) && against.stderr.lines().count() == 1, "{}", against.stderr);
    assert_eq!(expired(&said, &["--keep-expired"]), "0 0");
    assert_eq!(expired(&said, &["--keep-expired", "--layer-window", "10"]), "0 0");
    assert_eq!(expired(&two_layers(&folder, &[("0", "0")]), &[]), "0 0", "a window of 0 is none");
}

#[test]
fn keeping_the_expired_is_replaying_without_windows() {
    let folder = Folder::new();
    let policies = "full,h2o,scissorhands,tova,snapkv,optimal,oracle,scissorhands-cross-layer";
    let with = two_layers(&folder, &[("0", "8"), ("1", "12")]);
    let kept = run(&with, policies, "10", &["--recent-window", "2", "--keep-expired"]).report();
    let gone = run(&with, policies, "10", &["--recent-window", "2"]).report();
    let plain = two_layers(&folder, &[]);
    let plain = run(&plain, policies, "10", &["--recent-window", "2"]).report();
    let figures = |report: &str| without(report, &["content", "expiry"]);
    assert_eq!(figures(&kept), figures(&plain));
    assert_ne!(figures(&kept), figures(&gone));
    let expiry = |report: &str| Csv::parse(report).text(0, "expiry").to_owned();
    assert_eq!([expiry(&kept), expiry(&gone)], ["off", "on"]);
    assert!(!Csv::parse(&gone).column("expired").contains(" 0 "), "every policy lets go");
}

#[test]
fn json_lines_say_it_in_their_header() {
    let folder = Folder::new();
    let header = "{\"kvsim\":1,\"self\":\"included\",\"sliding_window.0\":5}\n";
    let path = folder.write("a.jsonl", header.to_owned() + &json_lines(0, &known_rows(8, 20)));
    let csv = Csv::parse(&run(&path, "full,tova,oracle", "3", &[]).report());
    assert_eq!(csv.text(0, "expired"), "16");
    assert_eq!(csv.text(0, "peak_kept"), "4");
    assert_eq!(csv.number(1, "expired") + csv.number(1, "evicted"), 17.0);
    assert_eq!(csv.text(2, "expired"), "", "a bound without a kept set has none");
}

#[test]
fn the_first_row_that_is_cut_short_is_not_a_row_after_an_eviction() {
    let rows = rows_of(&[&[1.0], &[0.5, 0.5], &[0.0, 0.5, 0.5], &[0.0, 0.0, 0.5, 0.5]]);
    let situation = Situation { window: Some(2), ..Situation::plain(SelfKind::Included, rows) };
    for tally in tallies(&situation, &[lane("tova", 1, &[]), lane("oracle", 1, &[]), lane("optimal", 1, &[])]) {
        assert_eq!(
            (tally.count("rows_measured"), tally.count("rows_full"), tally.real("retained_mass_sum")),
            (4, 0, 4.0)
        );
    }
}
