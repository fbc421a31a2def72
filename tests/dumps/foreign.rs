//! Matrices that are not causal attention are named as what they look like, whichever check meets them first.

use crate::attention::{failure, square, triangle};
use crate::cases::case;
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::SelfAttention;
use kvsim::trace::options::ReadOptions;

const T: usize = 12;

/// Every check that may meet a square first: by its shape, with the token's kind said, with padding cut.
fn readings() -> [ReadOptions; 4] {
    let none = ReadOptions::default;
    [
        none(),
        ReadOptions { self_attention: Some(SelfAttention::Included), ..none() },
        ReadOptions { self_attention: Some(SelfAttention::Excluded), ..none() },
        ReadOptions { start: Some(2), ..none() },
    ]
}

#[track_caller]
fn assert_named(weights: &[f32], expected: &[&str]) {
    let folder = Folder::new();
    let beside =
        npz(&[("layer_0.npy", npy("<f4", &[T, T], weights)), ("layer_1.npy", npy("<f4", &[T, T], weights))], true);
    let paths = [
        folder.write("a.npy", &npy("<f4", &[T, T], weights)),
        folder.write("a.npz", &beside),
        folder.write("a.safetensors", &safetensors(&[], &[("x", "F64", &[1, 1, T, T], weights)])),
    ];
    for path in paths {
        for options in readings() {
            let problem = failure(&path, &options);
            expected.iter().for_each(|part| assert!(problem.contains(part), "{part:?} is missing: {problem}"));
        }
    }
}

/// Scores: what the softmax of a row turns into its weights, or near it.
fn scores(mark: f32) -> Vec<f32> {
    let mut scores = vec![mark; T * T];
    for (row, weights) in triangle(1, T).iter().enumerate() {
        for (column, weight) in weights.iter().enumerate() {
            scores[row * T + column] = (weight + 0.01).ln() + 3.0;
        }
    }
    scores
}

#[test]
fn recorded_cases_are_named() {
    for (name, expected) in [("cross-attention-square.npy", "cross-attention"), ("transposed.npy", "transposed")] {
        for options in readings() {
            let problem = failure(&case(name), &options);
            assert!(problem.contains(expected), "{problem}");
        }
    }
}

#[test]
fn transposed_attention_is_named_with_its_remedy() {
    let weights = square(1, T);
    let transposed: Vec<f32> = (0..T * T).map(|at| weights[at % T * T + at / T]).collect();
    assert_named(&transposed, &["transposed attention", "swapaxes(-1, -2)"]);
}

#[test]
fn transposed_cross_attention_is_told_by_its_columns() {
    let row = |query: usize| {
        let cells: Vec<f32> = (0..T).map(|key| (1 + query * key % 7) as f32).collect();
        let sum: f32 = cells.iter().sum();
        cells.into_iter().map(move |cell| cell / sum)
    };
    let cross: Vec<f32> = (0..T).flat_map(row).collect();
    let weights: Vec<f32> = (0..T * T).map(|at| cross[at % T * T + at / T]).collect();
    let folder = Folder::new();
    let problem = failure(&folder.write("a.npy", &npy("<f4", &[T, T], &weights)), &ReadOptions::default());
    assert!(problem.contains("transposed"), "{problem}");
}

#[test]
fn scores_are_named_whatever_masks_them() {
    for mark in [f32::NEG_INFINITY, f32::MIN, -65504.0, -3.389_531_4e38, -1e9, -10000.0] {
        assert_named(&scores(mark), &["scores before the softmax", "save what the softmax returns"]);
    }
}

#[test]
fn scores_above_zero_are_told_by_their_sums() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[T, T], &scores(0.0)));
    let problem = failure(&path, &ReadOptions::default());
    assert!(problem.contains("not to one: scores before the softmax"), "{problem}");
}

#[test]
fn scores_stored_in_narrow_types_are_named() {
    let folder = Folder::new();
    for (dtype, mark) in [("F16", -65504.0), ("BF16", -3.389_531_4e38), ("F16", f32::NEG_INFINITY)] {
        let weights = scores(mark);
        let path = folder.write("a.safetensors", &safetensors(&[], &[("x", dtype, &[T, T], &weights)]));
        let problem = failure(&path, &ReadOptions::default());
        assert!(problem.contains("scores before the softmax"), "{dtype}: {problem}");
    }
}

#[test]
fn log_probabilities_are_named_whatever_masks_them() {
    for mark in [f32::NEG_INFINITY, f32::MIN, 0.0] {
        let logarithms = |(at, weight): (usize, f32)| if at % T > at / T { mark } else { weight.ln() };
        let weights: Vec<f32> = square(1, T).into_iter().enumerate().map(logarithms).collect();
        assert_named(&weights, &["log-probabilities", "save their exp"]);
    }
}

#[test]
fn cross_attention_is_named_whatever_its_shape() {
    let row = |width: usize| vec![1.0 / width as f32; width];
    assert_named(&row(T).repeat(T), &["cross-attention"]);
    let folder = Folder::new();
    for (rows, width) in [(6, 7), (6, 12), (7, 6)] {
        let weights: Vec<f32> = (0..rows).flat_map(|_| row(width)).collect();
        let path = folder.write("a.npy", &npy("<f4", &[rows, width], &weights));
        let problem = failure(&path, &ReadOptions::default());
        assert!(problem.contains("cross-attention"), "{rows} x {width}: {problem}");
    }
}

#[test]
fn infinities_and_numbers_that_are_none_are_told_apart() {
    let folder = Folder::new();
    let words = |bytes: &[u8]| failure_of_rows(&folder.write("a.jsonl", bytes));
    assert!(words(b"{\"step\":1,\"attn\":[-Infinity]}").contains("weight -inf is infinite"));
    assert!(words(b"{\"step\":1,\"attn\":[Infinity]}").contains("weight inf is infinite"));
    assert!(words(b"{\"step\":1,\"attn\":[NaN]}").contains("weight NaN is not a number"));
}

fn failure_of_rows(path: &std::path::Path) -> String {
    let ran = crate::binary::kvsim(&["replay", path.to_str().expect("plain"), "--policy", "tova", "--budget", "1"]);
    ran.refusal(1).to_owned()
}
