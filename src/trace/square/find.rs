//! From arrays to streams: which layer, head and rows of which arrays each is. Reads no weights.

use super::array::Array;
use super::choose::listed;
use super::dump::Dump;
use super::layout::{Layout, layout, layout_of, reading};
use super::{names, steps};
use crate::error::{Error, Result};
use crate::trace::limits::check_positions;
use crate::trace::options::ReadOptions;
use crate::trace::{Head, StreamLabel};
use std::sync::Arc;

/// More streams than any model has: a shape that claims more is a mistake or made up.
const MAX_STREAMS: usize = 1 << 20;
/// Notes on names, at most.
const MAX_NOTES: usize = 8;

/// The streams of a dump, whose positions are not known yet.
#[derive(Default)]
pub(super) struct Streams {
    pub found: Vec<Found>,
    pub notes: Vec<String>,
    /// Flags that say aloud how shapes were read.
    pub read_as: Vec<String>,
    /// Positions of the prompt, where the arrays tell it.
    pub prompt_len: Option<usize>,
}

/// An array, by its index in the dump, and how it is laid out.
pub(super) type Piece = (usize, Layout);

/// Streams that lie in the same arrays.
struct Group {
    first: StreamLabel,
    /// Indices of the arrays in the dump with their layouts, in the order of their rows.
    parts: Vec<Piece>,
    /// The position of row 0, where the arrays tell it.
    stands_at: Option<usize>,
}

/// A stream whose positions are not known yet.
pub(super) struct Found {
    pub label: StreamLabel,
    /// The indices of its arrays in the dump, with their layouts, in the order of their rows.
    pub parts: Arc<[Piece]>,
    pub rows: usize,
    /// The position of row 0, where the arrays tell it and not the shape of one.
    pub stands_at: Option<usize>,
    /// Which of the layers in the arrays it is.
    pub layer: usize,
    /// Which of the heads in the arrays it is.
    pub head: usize,
}

/// Finds the streams of a dump, by label.
///
/// # Errors
/// When names or shapes do not tell layers, heads and steps.
pub(super) fn find_streams(dump: &mut Dump, options: &ReadOptions) -> Result<Streams> {
    let place = |dump: &Dump, (index, problem): (usize, String)| {
        Error::data(dump.arrays[index].place(&dump.file), problem + &others(dump, options))
    };
    let mut streams = Streams::default();
    let chains = steps::chains(&dump.arrays, options.axes.as_ref()).map_err(|problem| place(dump, problem))?;
    let groups = match chains {
        Some(chains) => groups_of_chains(dump, chains, &mut streams),
        None => (0..dump.arrays.len())
            .map(|index| group_of_array(dump, index, options, &mut streams).map_err(|problem| (index, problem)))
            .collect(),
    }
    .map_err(|problem| place(dump, problem))?;
    for group in groups {
        let index = group.parts[0].0;
        add_streams(group, &mut streams.found).map_err(|problem| place(dump, (index, problem)))?;
    }
    streams.found.sort_by(|a, b| a.label.cmp(&b.label));
    check_streams(dump, &streams.found)?;
    Ok(streams)
}

/// How to choose other arrays, where there are some.
fn others(dump: &Dump, options: &ReadOptions) -> String {
    if dump.arrays.len() < 2 || !options.arrays.is_empty() {
        return String::new();
    }
    let names = listed(dump.arrays.iter().map(|array| array.name.as_str()));
    format!("; or choose with --array from {names}")
}

fn groups_of_chains(
    dump: &mut Dump,
    chains: Vec<steps::Chain>,
    streams: &mut Streams,
) -> Result<Vec<Group>, (usize, String)> {
    let mut groups = Vec::new();
    let arrays: usize = chains.iter().map(|chain| chain.arrays.len()).sum();
    streams.prompt_len = chains.iter().map(steps::Chain::prompt_len).reduce(|a, b| a.filter(|_| a == b)).flatten();
    let prompt = streams.prompt_len.map_or_else(String::new, |len| format!(", after a prompt of {len} positions"));
    streams
        .notes
        .push(format!("{arrays} arrays are steps of one generation: joined in the order of their numbers{prompt}"));
    for chain in chains {
        let index = chain.arrays[0];
        let (alone, stands_at) = (true, chain.first());
        let name = names::without_step(&dump.arrays[index].name);
        let first = names::first_label(&name, &chain.layouts[0], alone).map_err(|problem| (index, problem))?;
        streams.notes.extend(first.note);
        let parts = chain.arrays.into_iter().zip(chain.layouts).collect();
        groups.push(Group { first: first.label, parts, stands_at });
    }
    Ok(groups)
}

fn group_of_array(dump: &Dump, index: usize, options: &ReadOptions, streams: &mut Streams) -> Result<Group, String> {
    let (array, alone) = (&dump.arrays[index], dump.arrays.len() == 1);
    let layout = layout_as_said(array, alone, options)?;
    let first = names::first_label(&array.name, &layout, alone)?;
    if let Some(note) = first.note.filter(|_| streams.notes.len() < MAX_NOTES) {
        streams.notes.push(note);
    }
    if let Some(note) = reading(&array.shape).filter(|_| options.axes.is_none() && alone) {
        streams.notes.push(note);
        streams.read_as.push(format!("--axes {}", layout.axes(array.shape.len())));
    }
    Ok(Group { first: first.label, parts: vec![(index, layout)], stands_at: None })
}

/// The layout of an array, by `--axes` or by its shape.
pub(super) fn layout_as_said(array: &Array, alone: bool, options: &ReadOptions) -> Result<Layout, String> {
    match &options.axes {
        Some(axes) => layout_of(&array.shape, array.fortran, axes),
        None => layout(&array.shape, array.fortran, alone),
    }
}

fn add_streams(group: Group, found: &mut Vec<Found>) -> Result<(), String> {
    let Group { first, parts, stands_at } = group;
    let layout = parts[0].1;
    parts.iter().try_for_each(|(_, layout)| check_size(layout, found.len()))?;
    let rows = parts.iter().map(|(_, layout)| layout.rows.len).sum();
    let parts: Arc<[Piece]> = parts.into();
    for (layer, head) in pairs(layout.layers.len, layout.heads.len) {
        let label = match head {
            0 if layer == 0 => first.clone(),
            _ => StreamLabel { layer: first.layer + layer as u32, head: Head::Number(head as u32) },
        };
        found.push(Found { label, parts: Arc::clone(&parts), rows, stands_at, layer, head });
    }
    Ok(())
}

fn pairs(layers: usize, heads: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..layers).flat_map(move |layer| (0..heads).map(move |head| (layer, head)))
}

/// Refuses more streams or positions than there can be.
pub(super) fn check_size(layout: &Layout, before: usize) -> Result<(), String> {
    let streams = layout.layers.len.checked_mul(layout.heads.len).filter(|count| *count <= MAX_STREAMS - before);
    if streams.is_none() {
        return Err(format!("{} layers of {} heads are more than any model has", layout.layers.len, layout.heads.len));
    }
    check_positions(layout.rows.len.max(layout.width))
}

fn check_streams(dump: &Dump, found: &[Found]) -> Result<()> {
    if found.is_empty() {
        return Err(Error::data(&dump.file, "holds no attention: no array with layers, heads and rows"));
    }
    let array = |found: &Found| &dump.arrays[found.parts[0].0];
    let place = |found: &Found| array(found).place(&dump.file);
    for pair in found.windows(2) {
        if pair[0].label == pair[1].label {
            let other = &array(&pair[0]).name;
            let problem = format!(
                "layer and head {} are in array {other:?} too: name arrays by layer, or choose with --array",
                pair[1].label
            );
            return Err(Error::data(place(&pair[1]), problem));
        }
    }
    Ok(())
}
