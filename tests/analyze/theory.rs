//! The power law as `kvsim analyze` prints it: found again where rows are drawn from a known law, held
//! against what is retained, and honest where it does not fit.

use crate::common::binary::{Csv, kvsim};
use crate::common::files::Folder;
use kvsim::trace::SelfAttention;
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::safetensors::{StoredType, write};

/// Rows of draws from the density c (x + b)^-k, by the inverse of its distribution, each divided by its sum.
fn drawn(exponent: f64, positions: usize) -> Rows {
    let mut random = Xoshiro128::new(5);
    let mut draw = || {
        let uniform = (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
        uniform.powf(-1.0 / (exponent - 1.0)) - 1.0
    };
    let mut row = |length: usize| {
        let weights: Vec<f64> = (0..length).map(|_| draw()).collect();
        let total: f64 = weights.iter().sum();
        Some(weights.iter().map(|weight| (weight / total) as f32).collect())
    };
    (1..=positions).map(&mut row).collect()
}

fn analysis(trace: &MemoryTrace, more: &[&str]) -> String {
    let folder = Folder::new();
    let mut bytes = Vec::new();
    write(trace, StoredType::F32, &mut bytes, &|_| ()).expect("it can be written");
    let path = folder.write("law.safetensors", bytes);
    kvsim(&[&["analyze", &path, "-q"], more].concat()).report()
}

fn of_law(exponent: f64) -> MemoryTrace {
    MemoryTrace::new("law", SelfAttention::Included).with_stream(0, "0", drawn(exponent, 800)).expect("sound rows")
}

fn figure(csv: &Csv, analysis: &str, budget: &str, name: &str) -> f64 {
    let is_it = |row: &usize| {
        let at = |column: &str| csv.text(*row, column);
        (at("analysis"), at("budget"), at("figure")) == (analysis, budget, name)
    };
    csv.number((0..csv.len()).find(is_it).unwrap_or_else(|| panic!("no {name} at {budget}")), "value")
}

#[test]
fn rows_drawn_from_a_law_show_it_and_retain_what_it_predicts() {
    for exponent in [4.0, 7.0] {
        let csv = Csv::parse(&analysis(&of_law(exponent), &["--budget", "40,100,400", "--format", "csv"]));
        let law = |name| figure(&csv, "power-law", "", name);
        assert!((law("exponent") - exponent).abs() < 0.05 * exponent, "{} for {exponent}", law("exponent"));
        assert!(law("exponent_from") < law("exponent") && law("exponent") < law("exponent_to"));
        assert!(law("distance") < 0.01, "{}", law("distance"));
        for budget in ["40", "100", "400"] {
            let [predicted, oracle] = ["predicted", "oracle"].map(|name| figure(&csv, "theory", budget, name));
            assert!((predicted - oracle).abs() < 0.01, "{exponent} at {budget}: {predicted} for {oracle}");
            assert!(figure(&csv, "theory", budget, "best_retained_mass") <= oracle + 1e-9);
        }
        assert!(figure(&csv, "theory", "400", "deviation_bound") > 0.0, "half of the positions is enough for a bound");
    }
}

#[test]
fn the_text_says_what_fits_and_where_the_bound_is_void() {
    let text = analysis(&of_law(5.0), &["--budget", "80,400"]);
    assert!(text.contains("Power law of attention") && text.contains("0.0     good"), "{text}");
    assert!(text.contains("The law fits all 1 stream within 0.1.\n"), "{text}");
    let small = text.lines().find(|line| line.starts_with(" ") && line.contains("  0.100000  ")).expect("budget 80");
    assert!(small.ends_with("  -"), "void at a tenth: {small}");
}

#[test]
fn a_fit_that_is_bad_is_called_bad() {
    let text = kvsim(&["analyze", "decode-4096", "-q", "--budget", "512", "--recent-window", "32"]).report();
    assert!(text.contains("The law fits badly in 1 of 1 stream"), "{text}");
    let without = kvsim(&["analyze", "decode-4096", "-q", "--no-advice"]).report();
    assert!(without.contains("Power law of attention") && !without.contains("Theory:"), "{without}");
}
