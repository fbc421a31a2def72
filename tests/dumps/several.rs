//! Files of several arrays: the attention is found where only one kind can be, or chosen by name.

use crate::attention::{assert_same, failure, included, open, open_with, square, triangle};
use crate::cases::case;
use crate::files::{Folder, npy, npy_of, npz, safetensors};
use kvsim::trace::options::ReadOptions;
use std::path::Path;

const T: usize = 6;

fn choosing(name: &str) -> ReadOptions {
    ReadOptions { arrays: vec![name.to_owned()], ..Default::default() }
}

/// Numbers of both signs, as hidden states are.
fn hidden(count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919 % 101) as f32 - 50.0) / 25.0).collect()
}

#[track_caller]
fn assert_streams(path: &Path, options: &ReadOptions, streams: usize, left_out: &[&str]) {
    let source = open_with(path, options);
    assert_eq!(source.info().streams.len(), streams);
    for name in left_out {
        let said = |note: &String| note.contains(&format!("array {name:?}")) && note.contains("left out");
        assert!(source.info().notes.iter().any(said), "{name}: {:?}", source.info().notes);
    }
}

#[test]
fn attention_is_found_beside_other_arrays() {
    for (name, streams, left_out) in [
        ("mix_cross5.npz", 4, "cross_attentions"),
        ("mix_hidden.npz", 4, "hidden_states"),
        ("mix_mask.npz", 4, "attention_mask"),
        ("mix_hidden.safetensors", 6, "hidden"),
        ("transformerlens-cache.safetensors", 4, "hook_embed"),
    ] {
        assert_streams(&case(name), &ReadOptions::default(), streams, &[left_out]);
    }
    assert_streams(&case("macosx-junk.npz"), &ReadOptions::default(), 4, &[]);
}

#[test]
fn a_cache_of_activations_reads_the_same_with_and_without_a_name() {
    let path = case("transformerlens-cache.safetensors");
    assert_same(&*open(&path), &*open_with(&path, &choosing("*hook_pattern")));
    assert_streams(&path, &choosing("blocks.1.attn.hook_pattern"), 2, &[]);
}

#[test]
fn a_name_chooses_one_of_two_prompts() {
    let path = case("two_prompts4.npz");
    let problem = failure(&path, &ReadOptions::default());
    assert!(problem.contains("choose with --array from \"prompt_0\", \"prompt_1\""), "{problem}");
    assert_streams(&path, &choosing("prompt_1"), 4, &[]);
    let problem = failure(&path, &choosing("prompt_2"));
    assert!(problem.contains("--array \"prompt_2\" is not in") && problem.contains("\"prompt_0\""), "{problem}");
}

#[test]
fn what_was_chosen_is_refused_for_what_it_is() {
    let problem = failure(&case("mix_cross5.npz"), &choosing("cross*"));
    assert!(problem.contains("array \"cross_attentions\"") && problem.contains("cross-attention"), "{problem}");
    let problem = failure(&case("mix_mask.npz"), &choosing("*_mask"));
    assert!(problem.contains("a mask"), "{problem}");
    let folder = Folder::new();
    let ids = npy_of("<i8", false, &[1, 2], &[0; 16]);
    let path = folder.write("a.npz", &npz(&[("ids.npy", ids), ("a.npy", npy("<f4", &[T, T], &square(1, T)))], false));
    let problem = failure(&path, &choosing("ids"));
    assert!(problem.contains("--array \"ids\": array \"ids\" is left out"), "{problem}");
}

#[test]
fn where_nothing_looks_like_attention_all_are_named() {
    let folder = Folder::new();
    let members =
        [("keys.npy", npy("<f4", &[2, T, T], &hidden(2 * T * T))), ("states.npy", npy("<f4", &[T, T], &hidden(T * T)))];
    let problem = failure(&folder.write("a.npz", &npz(&members, false)), &ReadOptions::default());
    assert!(problem.contains("no array looks like attention"), "{problem}");
    assert!(
        problem.contains("\"keys\"") && problem.contains("\"states\"") && problem.contains("--array NAME"),
        "{problem}"
    );
}

#[test]
fn objects_beside_attention_are_left_out_and_never_read() {
    let folder = Folder::new();
    let members = [
        ("config.npy", npy_of("|O", false, &[], b"\x80\x04cos\nsystem\n")),
        ("layer_0.npy", npy("<f4", &[T, T], &square(1, T))),
    ];
    for compressed in [false, true] {
        let source = open(&folder.write("a.npz", &npz(&members, compressed)));
        assert_same(&*source, &included(&[(0, 0, triangle(1, T))]));
        assert!(source.info().notes[0].contains("\"config\" is left out: pickled objects"));
    }
}

#[test]
fn a_damaged_layer_is_refused_and_not_left_out() {
    let folder = Folder::new();
    let scaled: Vec<f32> = square(2, T).iter().map(|weight| weight * 100.0).collect();
    let members = [
        ("layer_0.npy", npy("<f4", &[T, T], &square(1, T))),
        ("layer_1.npy", npy("<f4", &[T, T], &scaled)),
        ("hidden.npy", npy("<f4", &[T, T], &hidden(T * T))),
    ];
    let problem = failure(&folder.write("a.npz", &npz(&members, false)), &ReadOptions::default());
    assert!(problem.contains("array \"layer_1\": rows sum to about 100"), "{problem}");
}

#[test]
fn arrays_in_fortran_order_are_looked_at_too() {
    let folder = Folder::new();
    let members = [
        ("attention.npy", crate::files::npy_fortran("<f4", &[2, T, T], &[square(1, T), square(2, T)].concat())),
        ("hidden.npy", crate::files::npy_fortran("<f4", &[2, T, T], &hidden(2 * T * T))),
    ];
    let source = open(&folder.write("a.npz", &npz(&members, true)));
    assert_same(&*source, &included(&[(0, 0, triangle(1, T)), (0, 1, triangle(2, T))]));
}

#[test]
fn a_name_with_brackets_is_a_name() {
    let folder = Folder::new();
    let (a, b) = (square(1, T), square(2, T));
    let tensors = [("layers[0]", "F32", &[T, T][..], &a[..]), ("layers[1]", "F32", &[T, T], &b)];
    let path = folder.write("a.safetensors", &safetensors(&[], &tensors));
    assert_same(&*open_with(&path, &choosing("layers[1]")), &included(&[(1, 0, triangle(2, T))]));
}
