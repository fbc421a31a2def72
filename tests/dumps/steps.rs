//! Generation in steps: a prompt, then a row or more a step, in arrays of their own, is one trace.

use crate::attention::{assert_same, failure, included, open, open_with, padded, triangle};
use crate::cases::case;
use crate::files::{Folder, npy, npz};
use kvsim::position::Position;
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::options::ReadOptions;

const T: usize = 9;
const PROMPT: usize = 5;

/// Streams of two layers of two heads.
fn streams() -> Vec<(u32, u32, Vec<Vec<f32>>)> {
    (0..4).map(|seed| (seed / 2, seed % 2, triangle(seed, T))).collect()
}

fn expected() -> MemoryTrace {
    included(&streams())
}

/// The rows from `first` to before `end` of these streams, as wide as the last of them, or `width`.
fn cells(of: &[(u32, u32, Vec<Vec<f32>>)], first: usize, end: usize, width: Option<usize>) -> Vec<f32> {
    of.iter().flat_map(|(_, _, rows)| padded(&rows[first..end], width.unwrap_or(end)).concat()).collect()
}

/// The steps of a generation, whose first has the prompt.
fn steps(chunk: usize) -> Vec<(usize, usize)> {
    let rest = (PROMPT..T).step_by(chunk).map(|first| (first, (first + chunk).min(T)));
    [(0, PROMPT)].into_iter().chain(rest).collect()
}

fn archive(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let members: Vec<(&str, Vec<u8>)> = members.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    npz(&members, true)
}

#[test]
fn all_layers_of_a_step_in_an_array() {
    let folder = Folder::new();
    for chunk in [1, 3] {
        let member = |(index, (first, end)): (usize, (usize, usize))| {
            let shape = [2, 1, 2, end - first, end];
            (format!("step_{index}.npy"), npy("<f4", &shape, &cells(&streams(), first, end, None)))
        };
        let members: Vec<_> = steps(chunk).into_iter().enumerate().map(member).collect();
        let source = open(&folder.write("a.npz", &archive(&members)));
        assert_same(&*source, &expected());
        assert_eq!(source.info().metadata["prompt_len"], PROMPT.to_string());
        assert!(source.info().notes[0].contains("steps of one generation"), "{:?}", source.info().notes);
    }
}

#[test]
fn one_layer_by_the_number_of_positions() {
    let folder = Folder::new();
    let layer = &streams()[..2];
    let member = |(first, end): (usize, usize)| {
        (format!("{end}.npy"), npy("<f2", &[1, 2, end - first, end], &cells(layer, first, end, None)))
    };
    let members: Vec<_> = steps(1).into_iter().rev().map(member).collect();
    let source = open(&folder.write("a.npz", &archive(&members)));
    assert_same(&*source, &included(layer));
    assert_eq!(source.info().metadata["prompt_len"], PROMPT.to_string());
}

#[test]
fn layers_and_steps_in_the_names() {
    let folder = Folder::new();
    let all = streams();
    let members: Vec<_> = (0..2)
        .flat_map(|layer| steps(1).into_iter().enumerate().map(move |(index, rows)| (layer, index, rows)))
        .map(|(layer, index, (first, end))| {
            let weights = cells(&all[2 * layer..2 * layer + 2], first, end, None);
            (format!("step{index}.layer{layer}.npy"), npy("<f4", &[1, 2, end - first, end], &weights))
        })
        .collect();
    assert_same(&*open(&folder.write("a.npz", &archive(&members))), &expected());
}

#[test]
fn a_cache_of_one_size_needs_to_be_told_where_rows_stand() {
    let folder = Folder::new();
    let layer = &streams()[..2];
    let member = |(index, (first, end)): (usize, (usize, usize))| {
        (format!("step_{index}.npy"), npy("<f4", &[2, end - first, 12], &cells(layer, first, end, Some(12))))
    };
    let members: Vec<_> = steps(1).into_iter().enumerate().map(member).collect();
    let path = folder.write("a.npz", &archive(&members));
    assert!(failure(&path, &ReadOptions::default()).contains("--first-position"));
    assert_same(&*open_with(&path, &ReadOptions { first_position: Some(0), ..Default::default() }), &included(layer));
}

#[test]
fn decode_steps_alone_stand_where_their_widths_say() {
    let folder = Folder::new();
    let layer = &streams()[..1];
    let member = |end: usize| (format!("step_{end}.npy"), npy("<f4", &[1, 1, end], &cells(layer, end - 1, end, None)));
    let members: Vec<_> = (PROMPT + 1..=T).map(member).collect();
    let source = open(&folder.write("a.npz", &archive(&members)));
    assert_eq!((source.info().first_position, source.info().positions), (Position(5), 9));
    assert!(!source.info().metadata.contains_key("prompt_len"));
}

#[test]
fn missing_steps_beams_and_unclear_axes_are_refused() {
    let folder = Folder::new();
    let layer = &streams()[..2];
    let member = |(index, (first, end)): (usize, (usize, usize)), shape: &[usize]| {
        (format!("step_{index}.npy"), npy("<f4", shape, &cells(layer, first, end, None)))
    };
    let refused =
        |members: &[(String, Vec<u8>)]| failure(&folder.write("a.npz", &archive(members)), &ReadOptions::default());
    let some = [(0, (0, 5)), (2, (6, 7)), (3, (7, 8))];
    let missing: Vec<_> = some.map(|step| member(step, &[2, step.1.1 - step.1.0, step.1.1])).to_vec();
    assert!(refused(&missing).contains("array \"step_2\": 1 layers, 2 heads, 1 rows of 7 columns do not follow"));
    let some = [(0, (0, 5)), (1, (5, 6))];
    let beams: Vec<_> = some.map(|step| member(step, &[1, 2, 1, step.1.1 - step.1.0, step.1.1])).to_vec();
    assert!(refused(&beams).contains("a batch of 2 sequences"));
    let unclear: Vec<_> = some.map(|step| member(step, &[2, 1, step.1.1 - step.1.0, step.1.1])).to_vec();
    let problem = refused(&unclear);
    assert!(
        problem.contains("2 layers or a batch of 2") && problem.contains("--axes layer,head,query,key"),
        "{problem}"
    );
    let axes = ReadOptions { axes: Some("layer,head,query,key".parse().expect("axes")), ..Default::default() };
    let streams: Vec<String> = open_with(&folder.write("a.npz", &archive(&unclear)), &axes)
        .info()
        .streams
        .iter()
        .map(|stream| stream.label.to_string())
        .collect();
    assert_eq!(streams, ["0.0", "1.0"]);
}

#[test]
fn the_recorded_case_of_two_layers_is_one_trace_of_four_streams() {
    let source = open(&case("hf-generate-steps.npz"));
    assert_eq!((source.info().streams.len(), source.info().positions), (4, 10));
    assert_eq!(source.info().metadata["prompt_len"], "6");
    let whole = open(&case("hf-generate-by-position.npz"));
    assert_same(&*whole, &*open(&case("hf-generate-full.npy")));
}
