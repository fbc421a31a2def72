//! What is no attention that can be read is refused in words that help, and nothing is ever unpickled.

use crate::attention::{failure, square};
use crate::files::{Folder, npy, npy_of, npz, safetensors};
use kvsim::trace::options::ReadOptions;

fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = Folder::new();
    let problem = failure(&folder.write(name, bytes), &ReadOptions::default());
    let (_, said) = problem.split_once(name).expect("the file is named");
    said.to_owned()
}

#[track_caller]
fn assert_refused(name: &str, bytes: &[u8], expected: &str) {
    let problem = refused(name, bytes);
    assert!(problem.contains(expected), "{problem}");
    assert!(!problem.contains('\n') && !problem.ends_with('.'), "{problem}");
}

#[test]
fn pickled_files_are_refused_with_the_lines_that_convert_them() {
    for name in ["a.pt", "a.PTH", "a.bin", "a.pkl", "a.pickle"] {
        let problem = refused(name, b"\x80\x04cos\nsystem\n");
        assert_eq!(problem.lines().count(), 4, "{problem}");
        assert!(problem.contains("import torch") && problem.contains("weights_only=True"), "{problem}");
        assert!(problem.contains("a.safetensors"), "{problem}");
    }
    // What torch saves is a zip archive, too.
    let problem = refused("a.npz", &npz(&[("a/data.pkl", vec![1]), ("a/data/0", vec![2])], false));
    assert!(problem.contains("import torch"), "{problem}");
}

#[test]
fn arrays_of_objects_are_refused_with_the_lines_that_convert_them() {
    let array = npy_of("|O", false, &[2], b"\x80\x04");
    let problem = refused("a.npy", &array);
    assert_eq!(problem.lines().count(), 4, "{problem}");
    assert!(problem.contains("allow_pickle=True)\n"), "{problem}");
    let problem = refused("a.npz", &npz(&[("arr_0.npy", array)], true));
    assert!(problem.contains("allow_pickle=True)[\"arr_0\"]\n"), "{problem}");
}

#[test]
fn types_that_are_no_weights_are_refused_with_a_remedy() {
    assert_refused("a.npy", &npy_of("|V2", false, &[2, 2], &[0; 8]), "dtype \"|V2\", what numpy makes of bfloat16");
    assert_refused("a.npy", &npy_of("|u1", false, &[2, 2], &[0; 4]), "dtype \"|u1\", must be float16");
    assert_refused("a.npy", &npy_of("<c8", false, &[2, 2], &[0; 32]), "save .astype(np.float32)");
    assert_refused("a.safetensors", &safetensors(&[], &[("x", "I32", &[2, 2], &[0.0; 4])]), "\"x\" is left out: I32");
    assert_refused("a.npz", &npz(&[("x.npy", npy_of("<i4", false, &[2, 2], &[0; 16]))], false), "\"x\" is left out");
}

#[test]
fn shapes_that_are_no_attention_are_refused() {
    assert_refused("a.npy", &npy("<f4", &[4], &[0.0; 4]), "shape [4] is not attention");
    assert_refused("a.npy", &npy("<f4", &[1; 6], &[0.0; 1]), "is not attention");
    assert_refused("a.npy", &npy("<f4", &[2, 2, 1, 2, 2], &[0.0; 16]), "a batch of 2 sequences");
    assert_refused("a.npy", &npy("<f4", &[3, 1, 4], &[0.0; 12]), "heads or decode steps");
    assert_refused("a.npy", &npy("<f4", &[0, 4, 4], &[]), "holds no attention");
}

#[test]
fn names_that_do_not_tell_layers_apart_are_refused() {
    let member = || npy("<f4", &[3, 3], &square(1, 3));
    let archive = |a, b| npz(&[(a, member()), (b, member())], false);
    assert_refused("a.npz", &archive("a.npy", "b.npy"), "array \"a\": the name tells no layer");
    assert_refused("a.npz", &archive("a1.npy", "b2x3.npy"), "array \"b2x3\": the name holds several numbers");
    assert_refused("a.npz", &archive("a1.npy", "b1.npy"), "layer and head 1.0 are in array \"a1\" too");
    let weights = square(1, 3);
    let tensors = [("a", "F32", &[3, 3][..], &weights[..]), ("b", "F32", &[3, 3], &weights)];
    assert_refused("a.safetensors", &safetensors(&[], &tensors), "the name tells no layer");
}

#[test]
fn a_transposed_square_is_refused() {
    let weights = square(1, 6);
    let transposed: Vec<f32> = (0..36).map(|at| weights[at % 6 * 6 + at / 6]).collect();
    assert_refused("a.npy", &npy("<f4", &[6, 6], &transposed), "transposed attention: save its .swapaxes(-1, -2)");
}

#[test]
fn a_square_in_a_file_that_claims_to_be_native_is_told_so() {
    let bytes =
        safetensors(&[("kvsim", "1"), ("self", "included")], &[("attention.0.0", "F32", &[3, 3], &square(1, 3))]);
    assert_refused("a.safetensors", &bytes, "must be one-dimensional");
}
