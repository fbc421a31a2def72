//! Every dispatched loop against the plain one that it stands for.

use super::*;

fn weights(len: usize, seed: u32) -> Vec<f32> {
    let mut random = crate::trace::rng::Xoshiro128::new(seed);
    (0..len).map(|_| random.below(50) as f32 / 64.0).collect()
}

#[test]
fn a_scan_counts_and_sums_as_a_plain_loop_does() {
    for len in [0, 1, 15, 16, 17, 31, 100, 1000] {
        let row = weights(len, len as u32);
        let scan = scan_row(&row, 0.25, 0.5);
        assert_eq!(scan.total, row.iter().map(|w| f64::from(*w)).sum::<f64>(), "sums of dyadic numbers are exact");
        assert_eq!(scan.pivotal as usize, row.iter().filter(|w| **w > 0.25).count());
        assert_eq!(scan.peaks as usize, row.iter().filter(|w| **w > 0.5).count());
        assert!(scan.sound);
    }
}

#[test]
fn a_scan_sees_every_unsound_weight_wherever_it_stands() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1e-30] {
        for at in 0..40 {
            let mut row = weights(40, 1);
            row[at] = bad;
            assert!(!scan_row(&row, 0.1, 0.1).sound, "{bad} at {at}");
        }
    }
    assert!(scan_row(&[-0.0], 0.1, 0.1).sound, "negative zero is zero");
}

#[test]
fn a_gather_agrees_with_a_plain_loop_on_runs_and_gaps() {
    let row = weights(200, 3);
    for step in [1, 2, 3] {
        for len in 0..60_usize {
            let kept: Vec<Position> = (0..len).map(|i| Position((i * step) as u32)).collect();
            let at = Thresholds { pivotal: 0.25, peak: 0.6, heavy: 0.5, heavy_last: Position(40) };
            let mut out = vec![0.0; len];
            let found = gather(&row, &kept, at, &mut out);
            let plain: Vec<f32> = kept.iter().map(|position| row[position.index()]).collect();
            assert_eq!(out, plain);
            assert_eq!(found.mass, plain.iter().map(|w| f64::from(*w)).sum::<f64>());
            assert_eq!(found.pivotal as usize, plain.iter().filter(|w| **w > 0.25).count());
            assert_eq!(found.peaks as usize, plain.iter().filter(|w| **w > 0.6).count());
            let heavy = |(w, p): &(&f32, &Position)| **w > 0.5 || (**w == 0.5 && p.0 <= 40);
            assert_eq!(found.heavy as usize, plain.iter().zip(&kept).filter(heavy).count());
        }
    }
}

#[test]
fn the_lowest_is_the_first_of_those_that_tie() {
    for len in 0..80 {
        let values: Vec<u32> = weights(len, 9).iter().map(|w| (w * 8.0) as u32).collect();
        let plain = values.iter().enumerate().min_by_key(|(index, value)| (**value, *index)).map(|(index, _)| index);
        assert_eq!(lowest(&values), plain);
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
fn collecting_stops_at_the_limit() {
    let row = weights(100, 5);
    let mut found = Vec::new();
    assert!(collect_from(&row, 0.5, 100, &mut found));
    let plain: Vec<(f32, u32)> = row.iter().zip(0..).filter(|(w, _)| **w >= 0.5).map(|(w, i)| (*w, i)).collect();
    assert_eq!(found, plain);
    found.clear();
    assert!(!collect_from(&row, 0.0, 20, &mut found));
}
