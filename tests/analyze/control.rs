//! The control trace, in which no position matters more than another: near-uniform attention with noise.
//! A reading of persistence that finds importance here finds it everywhere.

use crate::common::lanes::read_rows;
use crate::reference::random::Generator;
use kvsim::analyze::analyze_stream;
use kvsim::analyze::persistence::Overlap;
use kvsim::replay::BadRows;
use kvsim::trace::Source;
use kvsim::trace::spec::MixtureSpec;
use kvsim::trace::synthetic::SyntheticTrace;

fn control(seed: u32) -> SyntheticTrace {
    SyntheticTrace::new(MixtureSpec { seed, ..MixtureSpec::built_in("control-2048").expect("it is built in") })
}

fn persistence(seed: u32) -> Vec<Overlap> {
    analyze_stream(&control(seed), 0, BadRows::Error, &|_| ()).expect("it is sound").persistence
}

#[test]
fn the_union_readings_find_persistence_where_there_is_none() {
    for seed in [7, 1, 2] {
        for union in &persistence(seed)[..2] {
            assert!(union.ratio.is_some_and(|ratio| ratio > 0.99), "{union:?}");
        }
    }
}

#[test]
fn the_equal_visibility_reading_falls_to_its_chance_level() {
    for seed in [7, 1, 2] {
        let equal = &persistence(seed)[2];
        let (ratio, chance) = (equal.ratio.expect("half of them"), equal.chance.expect("positions"));
        assert!((0.4..0.6).contains(&chance), "{equal:?}");
        // Some 250 draws of 512 without replacement: four standard deviations.
        assert!((ratio - chance).abs() < 0.09, "{equal:?}");
    }
}

#[test]
fn the_control_trace_is_as_its_definition_says() {
    let mut random = Generator::seeded(7 ^ 0x9e37_79b9);
    let rows = read_rows(&control(7), 0);
    assert_eq!(rows.len(), 2047);
    for (t, row) in (1..=200_u32).zip(rows) {
        let noise = |_| (1.0 + 0.5 * (2.0 * (f64::from(random.draw()) / 4_294_967_296.0) - 1.0)) * (1.0 / f64::from(t));
        let noise: Vec<f64> = (0..t).map(noise).collect();
        let total: f64 = noise.iter().sum();
        let weights: Vec<f32> = noise.iter().map(|weight| (weight / total) as f32).collect();
        assert_eq!(row, Some(weights), "row {t}");
    }
}

#[test]
fn spread_does_not_move_the_heavy_hitters() {
    let canonical = MixtureSpec { positions: 700, ..MixtureSpec::built_in("decode-4096").expect("it is built in") };
    let mut spread = canonical.clone();
    spread.noise.spread = 0.5;
    let heaviest = |row: Vec<f32>| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        order[0]
    };
    let (even, spread) = (SyntheticTrace::new(canonical), SyntheticTrace::new(spread));
    assert_eq!(even.info().positions, spread.info().positions);
    for (even, spread) in read_rows(&even, 0).into_iter().zip(read_rows(&spread, 0)).skip(511) {
        let (even, spread) = (even.expect("a row"), spread.expect("a row"));
        assert_ne!(even, spread);
        assert_eq!(heaviest(even), heaviest(spread), "the heavy hitters come from a generator of their own");
    }
}
