//! Scores and softmax against plain loops and f64, and every compiled version against the others.

use super::products::Products;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};
use super::simd::{Plain, Simd};
use super::softmax::{Softmax, capped, exp_of_one as exp};
use super::*;
use crate::trace::rng::Xoshiro128;

/// Numbers of both signs whose sums depend on the order of addition.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mut random = Xoshiro128::new(seed);
    (0..len).map(|_| (random.below(1 << 24) as f32 - 8_388_608.0) / 3e6).collect()
}

fn panel(keys: &[f32], width: usize) -> KeyPanel {
    let mut panel = KeyPanel::new(keys.len() / width, width);
    let (first, rest) = keys.split_at(keys.len() / width / 3 * width);
    panel.set(0, first);
    panel.set(first.len() / width, rest);
    panel
}

/// One chain of fused multiply-adds.
fn plain_score(query: &[f32], key: &[f32]) -> f32 {
    query.iter().zip(key).fold(0.0, |sum, (q, k)| q.mul_add(*k, sum))
}

/// Rows to be scored: their queries, the keys, the position of the first, and how many keys each attends to at most.
#[derive(Clone, Copy)]
struct Asked<'a> {
    queries: &'a [f32],
    keys: &'a KeyPanel,
    first: usize,
    window: usize,
}

impl Asked<'_> {
    /// The scores in the operations of one set; those that nobody wrote stay NaN.
    fn with(self, simd: impl Simd) -> Vec<Vec<f32>> {
        let Asked { queries, keys, first, window } = self;
        let from = |row: usize| (first + row + 1).saturating_sub(window);
        let rows = queries.len() / keys.width();
        let mut found: Vec<Vec<f32>> = (0..rows).map(|row| vec![f32::NAN; first + row + 1 - from(row)]).collect();
        let mut rows: Vec<ScoreRow<'_>> =
            found.iter_mut().enumerate().map(|(row, scores)| ScoreRow { from: from(row), scores }).collect();
        simd.run(Products { queries, keys, rows: &mut rows, packed: &mut Vec::new() });
        found
    }

    /// The scores in the operations of every set that this processor has.
    fn everywhere(self) -> Vec<Vec<Vec<f32>>> {
        let mut all = vec![self.with(Plain)];
        #[cfg(target_arch = "x86_64")]
        all.extend(Avx2::found().map(|simd| self.with(simd)));
        #[cfg(target_arch = "x86_64")]
        all.extend(Avx512::found().map(|simd| self.with(simd)));
        all
    }
}

#[test]
fn a_score_is_one_chain_whatever_the_vectors_the_block_and_the_window() {
    for (width, first, rows, window) in
        [(1, 0, 5, 9), (3, 30, 1, 99), (64, 0, 50, 99), (64, 37, 23, 11), (65, 100, 12, 33), (128, 64, 17, 99)]
    {
        let keys = numbers((first + rows) * width, 1);
        let queries = numbers(rows * width, 2);
        let panel = panel(&keys, width);
        let plain = |row: usize, len: usize| -> Vec<f32> {
            let query = &queries[row * width..(row + 1) * width];
            let attended = &keys[(first + row + 1 - len) * width..(first + row + 1) * width];
            attended.chunks(width).map(|key| plain_score(query, key)).collect()
        };
        for block in [1, 2, 5, rows] {
            for at in (0..rows).step_by(block) {
                let queries = &queries[at * width..rows.min(at + block) * width];
                for found in (Asked { queries, keys: &panel, first: first + at, window }).everywhere() {
                    for (row, scores) in (at..).zip(found) {
                        assert_eq!(scores, plain(row, scores.len()), "{width} {block} {row}");
                    }
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "keys")]
fn a_row_past_the_keys_is_refused() {
    let mut room = [0.0; 5];
    let mut rows = [ScoreRow { from: 0, scores: &mut room }];
    products(&[1.0], &KeyPanel::new(4, 1), &mut rows, &mut Vec::new());
}

const PLAIN: Logits = Logits { scale: 0.125, softcap: None, sink: None };
const KINDS: [Logits; 4] = [
    PLAIN,
    Logits { softcap: Some(5.0), ..PLAIN },
    Logits { sink: Some(0.7), ..PLAIN },
    Logits { scale: 11.3, softcap: Some(30.0), sink: Some(-2.0) },
];

/// The weights of a row in f64.
fn weights_in_f64(scores: &[f32], logits: Logits) -> Vec<f64> {
    let scaled = |score: &f32| f64::from(*score) * f64::from(logits.scale);
    let cap = |x: f64| logits.softcap.map_or(x, |cap| f64::from(cap) * (x / f64::from(cap)).tanh());
    let logit: Vec<f64> = scores.iter().map(|score| cap(scaled(score))).collect();
    let sink = logits.sink.map(f64::from);
    let most = logit.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logit.iter().copied().chain(sink).map(|x| (x - most).exp()).sum();
    logit.into_iter().map(|x| (x - most).exp() / sum).collect()
}

/// A softmax in the operations of every set that this processor has.
fn softmax_everywhere(scores: &[f32], logits: Logits) -> Vec<(Vec<f32>, Option<Normalizer>)> {
    fn with(simd: impl Simd, scores: &[f32], logits: Logits) -> (Vec<f32>, Option<Normalizer>) {
        let mut weights = scores.to_vec();
        let found = simd.run(Softmax { scores: &mut weights, logits });
        (weights, found)
    }
    let mut all = vec![with(Plain, scores, logits)];
    #[cfg(target_arch = "x86_64")]
    all.extend(Avx2::found().map(|simd| with(simd, scores, logits)));
    #[cfg(target_arch = "x86_64")]
    all.extend(Avx512::found().map(|simd| with(simd, scores, logits)));
    all
}

#[test]
fn weights_are_those_of_f64_and_the_same_bits_in_every_version() {
    for (len, logits) in [1, 2, 15, 16, 17, 100, 1000].into_iter().flat_map(|len| KINDS.map(|kind| (len, kind))) {
        let scores: Vec<f32> = numbers(len, len as u32).iter().map(|number| number * 9.0).collect();
        let mut best = scores.clone();
        let normalizer = softmax(&mut best, logits).expect("finite");
        // A logit is rounded to f32, and exp turns that into a share of the weight.
        let largest = scores.iter().map(|score| f64::from(score.abs() * logits.scale)).fold(9.0, f64::max);
        for (weight, exact) in best.iter().zip(weights_in_f64(&scores, logits)) {
            let off = (f64::from(*weight) - exact).abs();
            assert!(off <= 1.5e-7 * largest * exact.max(1e-38), "{weight} is not {exact}");
        }
        for found in softmax_everywhere(&scores, logits) {
            assert_eq!(found, (best.clone(), Some(normalizer)));
        }
    }
}

#[test]
fn a_uniform_row_meets_its_own_share_exactly() {
    for len in 1..3000_u16 {
        let mut weights = vec![17.3; usize::from(len)];
        softmax(&mut weights, PLAIN).expect("finite");
        assert!(weights.iter().all(|weight| *weight == 1.0 / f32::from(len)), "1/{len}");
    }
}

#[test]
fn the_reciprocal_turns_no_share_into_something_else() {
    let mut random = Xoshiro128::new(3);
    let sampled: Vec<u32> = (0..100_000).map(|_| 1 + random.below((1 << 24) - 1)).collect();
    for n in (1..100_000).chain(sampled) {
        for raised in [1.0_f32, 0.3, 1e-30] {
            let sum = f64::from(raised) * f64::from(n);
            assert_eq!((f64::from(raised) * (1.0 / sum)) as f32, 1.0 / n as f32, "1/{n}");
        }
    }
}

#[test]
fn exp_is_one_at_zero_and_close_everywhere() {
    assert_eq!(exp(0.0), 1.0);
    assert_eq!([exp(-110.0), exp(-1e30), exp(f32::NEG_INFINITY)], [0.0; 3]);
    for index in 0..200_000 {
        let x = -0.0005 * index as f32;
        let exact = f64::from(x).exp();
        let allowed = (exact * 2e-7_f64).max(0.0) + f64::from(x).abs() * exact * 3e-8 + 7.1e-46;
        assert!((f64::from(exp(x)) - exact).abs() <= allowed, "exp({x}) is {} for {exact}", exp(x));
    }
}

#[test]
fn a_cap_is_close_to_tanh_and_odd() {
    for index in 0..20_000 {
        let x = 0.02 * index as f32;
        let exact = 50.0 * (f64::from(x) / 50.0).tanh();
        assert!((f64::from(capped(x, 50.0)) - exact).abs() <= 6e-8 * exact, "{x}");
        assert_eq!(capped(-x, 50.0), -capped(x, 50.0));
    }
}

#[test]
fn scores_that_are_no_numbers_or_too_large_make_no_row() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 5, 16, 20] {
            let mut scores = [1.0; 21];
            scores[at] = bad;
            for logits in KINDS {
                assert_eq!(softmax(&mut scores.clone(), logits), None, "{bad} at {at}");
            }
        }
    }
    assert_eq!(softmax(&mut [1e38, 0.0], Logits { scale: 100.0, ..PLAIN }), None);
    let mut low = [-1e38, 0.0];
    assert!(softmax(&mut low, Logits { scale: 100.0, ..PLAIN }).is_some());
    assert_eq!(low, [0.0, 1.0]);
}

#[test]
fn a_row_can_be_made_again_from_its_two_numbers() {
    let scores = numbers(77, 5);
    for logits in [PLAIN, KINDS[2]] {
        let mut weights = scores.clone();
        let Normalizer { most, sum } = softmax(&mut weights, logits).expect("finite");
        let again = |score: &f32| (f64::from(exp(score * logits.scale - most)) * (1.0 / sum)) as f32;
        assert!(scores.iter().map(again).eq(weights.iter().copied()));
    }
}
