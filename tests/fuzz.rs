//! A short run of the fuzzer of examples/fuzz; docs/robustness.md says how many executions have run in all.

#[path = "../examples/fuzz/fuzzer/mod.rs"]
mod fuzzer;

use fuzzer::{Plan, run};

#[test]
fn twenty_thousand_damaged_inputs_end_in_sound_figures_or_an_error() {
    let keep = std::env::temp_dir().join("kvsim-fuzz");
    let summary = run(&Plan { seed: 1, from: 0, count: 20_000, keep }, &|_| ());
    assert_eq!(summary.findings, [""; 0], "run again with --seed 1 --from EXECUTION --count 1");
    assert!(summary.accepted > 2_000 && summary.refused > 2_000, "{summary:?}");
}
