//! Every dispatched loop against the plain one that it stands for, and each twin against the other.

use super::kept::{gather_portably, measure_portably};
use super::row::scan_row_portably;
use super::*;
use crate::position::Position;
use crate::trace::rng::Xoshiro128;

fn weights(len: usize, seed: u32) -> Vec<f32> {
    let mut random = Xoshiro128::new(seed);
    (0..len).map(|_| random.below(50) as f32 / 64.0).collect()
}

/// Weights whose sums depend on the order of addition.
fn rough_weights(len: usize, seed: u32) -> Vec<f32> {
    let mut random = Xoshiro128::new(seed);
    (0..len).map(|_| f32::from_bits(0x3000_0000 + random.below(0x0e00_0000))).collect()
}

const LENGTHS: [usize; 9] = [0, 1, 15, 16, 17, 31, 32, 100, 1000];

fn scan(row: &[f32], how: fn(&[f32], RowLimits, &mut Picked) -> RowScan, floor: f32) -> (RowScan, Vec<f32>, Vec<u32>) {
    let mut picked = Picked::default();
    picked.start(row.len());
    let found = how(row, RowLimits { pivotal: 0.25, floor }, &mut picked);
    (found, picked.weights().to_vec(), picked.positions().to_vec())
}

#[test]
fn a_scan_counts_sums_and_picks_as_a_plain_loop_does() {
    for len in LENGTHS {
        let row = weights(len, len as u32);
        let (found, picked, positions) = scan(&row, scan_row, 0.375);
        assert_eq!(found.total, row.iter().map(|w| f64::from(*w)).sum::<f64>(), "sums of dyadic numbers are exact");
        assert_eq!(found.pivotal as usize, row.iter().filter(|w| **w > 0.25).count());
        assert!(!found.signed);
        let plain: Vec<u32> = (0..len as u32).filter(|i| row[*i as usize] >= 0.375).collect();
        assert_eq!(positions, plain);
        assert_eq!(picked, plain.iter().map(|i| row[*i as usize]).collect::<Vec<_>>());
    }
}

#[test]
fn a_sum_and_a_count_over_a_threshold_are_those_of_a_plain_loop() {
    for len in LENGTHS {
        let row = weights(len, len as u32);
        for threshold in [-1.0, 0.0, 0.375, 1.0] {
            let over = row.iter().filter(|weight| **weight > threshold);
            assert_eq!(count_over(&row, threshold) as usize, over.clone().count());
            assert_eq!(sum_over(&row, threshold), over.map(|weight| f64::from(*weight)).sum::<f64>());
        }
    }
}

#[test]
fn the_versions_of_a_scan_agree_to_the_bit() {
    for len in LENGTHS {
        for seed in 0..20 {
            let row = rough_weights(len, seed);
            for floor in [f32::INFINITY, 0.5, 1e-3, 0.0] {
                assert_eq!(scan(&row, scan_row, floor), scan(&row, scan_row_portably, floor));
            }
        }
    }
}

#[test]
fn a_scan_sees_every_unsound_weight_wherever_it_stands() {
    for how in [scan_row as fn(&[f32], RowLimits, &mut Picked) -> RowScan, scan_row_portably] {
        for at in 0..40 {
            let mut row = weights(40, 1);
            for bad in [f32::NAN, f32::INFINITY] {
                row[at] = bad;
                assert!(!scan(&row, how, 0.5).0.total.is_finite(), "{bad} at {at}");
            }
            for bad in [f32::NEG_INFINITY, -1e-30, -0.0] {
                row[at] = bad;
                assert!(scan(&row, how, 0.5).0.signed, "{bad} at {at}");
            }
        }
    }
}

#[test]
fn a_gather_agrees_with_a_plain_loop_on_runs_and_gaps() {
    let row = weights(200, 3);
    for step in [1, 2, 3] {
        for len in 0..60_usize {
            let kept: Vec<Position> = (0..len).map(|i| Position((i * step) as u32)).collect();
            let mut out = vec![0.0; len];
            let found = gather(&row, &kept, KeptLimits { pivotal: 0.25, heavy: 0.5 }, &mut out);
            let plain: Vec<f32> = kept.iter().map(|position| row[position.index()]).collect();
            assert_eq!(out, plain);
            assert_eq!(found.mass, plain.iter().map(|w| f64::from(*w)).sum::<f64>());
            assert_eq!(found.pivotal as usize, plain.iter().filter(|w| **w > 0.25).count());
            assert_eq!(found.heavy as usize, plain.iter().filter(|w| **w > 0.5).count());
        }
    }
}

#[test]
fn the_versions_of_a_gather_agree_to_the_bit() {
    let mut random = Xoshiro128::new(8);
    for seed in 0..200 {
        let row = rough_weights(300, seed);
        let one_in = 1 + random.below(4);
        let kept: Vec<Position> = (0..300).filter(|_| random.below(one_in) == 0).map(Position).collect();
        let limits = KeptLimits { pivotal: 0.01, heavy: 0.1 };
        let (mut a, mut b) = (vec![0.0; kept.len()], vec![0.0; kept.len()]);
        assert_eq!(gather(&row, &kept, limits, &mut a), gather_portably(&row, &kept, limits, &mut b));
        assert_eq!(a, b);
        assert_eq!(measure(&row, &kept, limits), gather(&row, &kept, limits, &mut a));
        assert_eq!(measure_portably(&row, &kept, limits), gather(&row, &kept, limits, &mut a));
    }
}

#[test]
fn windows_with_sinks_and_without_are_measured_as_they_are_gathered() {
    for (sinks, len) in [0, 1, 4, 16, 20].into_iter().flat_map(|sinks| (0..70).map(move |len| (sinks, len))) {
        let row = rough_weights(200, len);
        let kept: Vec<Position> = (0..sinks).chain(120..120 + len).map(Position).collect();
        let limits = KeptLimits { pivotal: 0.01, heavy: 0.1 };
        let gathered = gather_portably(&row, &kept, limits, &mut vec![0.0; kept.len()]);
        assert_eq!(measure(&row, &kept, limits), gathered);
        assert_eq!(measure_portably(&row, &kept, limits), gathered);
    }
}

#[test]
fn a_gather_past_the_row_is_refused_by_every_version() {
    let kept: Vec<Position> = (0..16).map(|i| Position(i * 7)).collect();
    let limits = KeptLimits { pivotal: 0.0, heavy: 0.0 };
    for gather in [gather, gather_portably] {
        let past = || gather(&[0.0; 100], &kept, limits, &mut [0.0; 16]);
        assert!(std::panic::catch_unwind(past).is_err(), "position 105 of a row of 100");
    }
    for measure in [measure, measure_portably] {
        let past = || measure(&[0.0; 100], &kept, limits);
        assert!(std::panic::catch_unwind(past).is_err(), "position 105 of a row of 100");
    }
}

#[test]
fn the_lowest_is_the_first_of_those_that_tie() {
    for len in 0..80 {
        let values: Vec<u32> = weights(len, 9).iter().map(|w| (w * 8.0) as u32).collect();
        let plain = values.iter().enumerate().min_by_key(|(index, value)| (**value, *index)).map(|(index, _)| index);
        assert_eq!(lowest(&values), plain);
        assert_eq!(lowest(&values.iter().map(|value| *value as f32).collect::<Vec<_>>()), plain);
        assert_eq!(lowest(&values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>()), plain);
    }
}

#[test]
fn the_nth_largest_is_that_of_a_sort() {
    for seed in 0..50 {
        for (len, make) in
            [(1, weights as fn(usize, u32) -> Vec<f32>), (33, weights), (200, weights), (77, rough_weights)]
        {
            let values = make(len, seed);
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            for count in 1..=len {
                assert_eq!(nth_largest(&values, count), sorted[count - 1]);
            }
        }
    }
}

#[test]
fn comparing_in_f32_is_comparing_in_f64() {
    for n in 1..5000_u32 {
        let share = 1.0 / f64::from(n);
        let limit = f32_not_above(share);
        for weight in [limit.next_down(), limit, limit.next_up(), share as f32] {
            assert_eq!(weight > limit, f64::from(weight) > share, "{weight} against 1/{n}");
        }
    }
}

#[test]
fn pooling_takes_the_maximum_of_the_neighbours() {
    let values: Vec<f64> = weights(40, 2).into_iter().map(f64::from).collect();
    let mut pooled = Vec::new();
    for reach in 0..50_usize {
        pool_max(&values, reach, &mut pooled);
        for (slot, found) in pooled.iter().enumerate() {
            let near = &values[slot.saturating_sub(reach)..values.len().min(slot + reach + 1)];
            assert_eq!(*found, near.iter().copied().fold(0.0, f64::max));
        }
    }
}

#[test]
fn rows_are_added_one_after_the_other() {
    let rows: Vec<Vec<f32>> = (0..7).map(|seed| rough_weights(40, seed)).collect();
    let mut sums = vec![f64::NAN; 40];
    add_rows(&rows, &mut sums);
    for (slot, sum) in sums.iter().enumerate() {
        assert_eq!(*sum, rows.iter().fold(0.0, |sum, row| sum + f64::from(row[slot])));
    }
}

#[test]
fn replacing_weights_that_add_exactly_leaves_the_sum_of_the_ring() {
    let mut random = Xoshiro128::new(4);
    let mut exact = || f32::from_bits(0x3380_0000 + random.below(0x0c80_0000));
    let mut rows: Vec<Vec<f32>> = (0..32).map(|_| (0..40).map(|_| exact()).collect()).collect();
    let mut sums = vec![0.0; 40];
    add_rows(&rows, &mut sums);
    for round in 0..200 {
        let new: Vec<f32> = (0..40).map(|_| exact()).collect();
        assert!(add_exactly(&new));
        replace(&mut sums, &mut rows[round % 32], &new);
        let mut fresh = vec![0.0; 40];
        add_rows(&rows, &mut fresh);
        assert_eq!(sums, fresh);
    }
    assert!(!add_exactly(&[0.5, 5e-8]) && !add_exactly(&[2.0]) && add_exactly(&[0.0, 1.0]));
}

#[test]
fn every_stored_number_widens_to_its_own_value() {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    for skip in [0, 3] {
        let bits = &bits[skip..];
        let mut wide = vec![0.0; bits.len()];
        widen_f16(bits, &mut wide);
        let same = |wide: f32, value: f32| wide.to_bits() == value.to_bits() || (wide.is_nan() && value.is_nan());
        assert!(bits.iter().zip(&wide).all(|(bits, wide)| same(*wide, half::f16::from_bits(*bits).to_f32())));
        widen_bf16(bits, &mut wide);
        assert!(bits.iter().zip(&wide).all(|(bits, wide)| same(*wide, half::bf16::from_bits(*bits).to_f32())));
    }
}
