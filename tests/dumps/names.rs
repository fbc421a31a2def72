//! Names that carry a head: the streams are labelled by it, and heads of one layer are one trace.

use crate::attention::{assert_same, failure, included, open, square, triangle};
use crate::cases::case;
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::Source;
use kvsim::trace::options::ReadOptions;

const T: usize = 6;

fn labels(source: &dyn Source) -> Vec<String> {
    source.info().streams.iter().map(|stream| stream.label.to_string()).collect()
}

#[test]
fn recorded_cases_carry_their_labels() {
    assert_eq!(labels(&*open(&case("per-head-names.npz"))), ["16.6", "20.14"]);
    assert_eq!(labels(&*open(&case("per-head-name-L16H6.npz"))), ["16.6"]);
    assert_eq!(labels(&*open(&case("per-head-names-clash.safetensors"))), ["0.0", "0.1"]);
}

#[test]
fn heads_of_one_layer_in_arrays_of_their_own_are_one_trace() {
    let folder = Folder::new();
    let expected = included(&[(3, 0, triangle(0, T)), (3, 1, triangle(1, T)), (3, 10, triangle(2, T))]);
    for names in [
        ["layer_3_head_0", "layer_3_head_1", "layer_3_head_10"],
        ["L3H0", "L3H1", "L3H10"],
        ["blocks.3.attn.0", "blocks.3.attn.1", "blocks.3.attn.10"],
        ["h.3.head.0", "h.3.head.1", "h.3.head.10"],
    ] {
        let member = |seed: u32| npy("<f4", &[T, T], &square(seed, T));
        let members: Vec<(String, Vec<u8>)> =
            names.iter().zip(0..).map(|(name, seed)| (format!("{name}.npy"), member(seed))).collect();
        let members: Vec<(&str, Vec<u8>)> =
            members.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
        assert_same(&*open(&folder.write("a.npz", &npz(&members, true))), &expected);
    }
}

#[test]
fn a_number_taken_for_the_head_is_said() {
    let folder = Folder::new();
    let weights = square(1, T);
    let bytes = safetensors(&[], &[("blocks.16.attn.6", "F32", &[T, T], &weights)]);
    let source = open(&folder.write("a.safetensors", &bytes));
    assert_eq!(labels(&*source), ["16.6"]);
    assert_eq!(source.info().notes, ["the 6 in \"blocks.16.attn.6\" is taken for the head"]);
}

#[test]
fn what_cannot_be_told_is_said() {
    let folder = Folder::new();
    let one = |name: &str| npz(&[(&format!("{name}.npy"), npy("<f4", &[T, T], &square(1, T)))], false);
    let source = open(&folder.write("a.npz", &one("run_2_of_7_x_3")));
    assert_eq!(labels(&*source), ["0.0"]);
    assert!(source.info().notes[0].contains("cannot be told: called layer 0"), "{:?}", source.info().notes);
    let many = npz(&[("layer_3_head_6.npy", npy("<f4", &[2, T, T], &[square(1, T), square(2, T)].concat()))], false);
    let problem = failure(&folder.write("b.npz", &many), &ReadOptions::default());
    assert!(problem.contains("the name tells head 6, the array holds 2 heads"), "{problem}");
}
