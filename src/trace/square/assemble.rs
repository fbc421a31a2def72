//! From the arrays of a file to a trace: one step after the other, each in a file of its own.

use super::array::Array;
use super::choose::{choose, listed};
use super::frame::Known;
use super::layout::{Layout, layout, layout_of, reading};
use super::positions::check_positions;
use super::probe::{Likeness, look};
use super::report::Report;
use super::source::SquareTrace;
use super::stream::{Part, Stream};
use super::{names, padding, positions, row_order, self_kind, steps};
use crate::error::{Error, Result};
use crate::trace::options::{ColumnOrder, ReadOptions};
use crate::trace::storage::Storage;
use crate::trace::{Head, Metadata, ModelFacts, SelfAttention, Source, StreamInfo, StreamLabel, TraceInfo};
use crate::word::Word;
use std::sync::Arc;

/// The arrays of a file, and what else it says.
#[derive(Default)]
pub(in crate::trace) struct Dump {
    /// The file's name, for reports and messages.
    pub file: String,
    /// The name of its format.
    pub format: &'static str,
    /// The file itself, or all of several files.
    pub content: Vec<Storage>,
    pub arrays: Vec<Array>,
    /// Arrays that can only be companions of the attention.
    pub left_out: Vec<LeftOut>,
    pub metadata: Metadata,
    /// What the container has to say.
    pub notes: Vec<String>,
}

/// An array that cannot be attention, by its number type or its shape alone.
pub(in crate::trace) struct LeftOut {
    pub name: String,
    /// What it is instead.
    pub why: String,
}

impl LeftOut {
    /// One line about it.
    pub(super) fn note(&self) -> String {
        format!("array {:?} is left out: {}", self.name, self.why)
    }
}

/// More streams than any model has: a shape that claims more is a mistake or made up.
const MAX_STREAMS: usize = 1 << 20;
/// Notes on single arrays, at most.
const MAX_NOTES: usize = 8;

/// Makes a trace of the arrays.
///
/// # Errors
/// When they are not attention, when it cannot be known which position a row or a column stands for, or when
/// the file cannot be read.
pub(in crate::trace) fn open(mut dump: Dump, options: &ReadOptions) -> Result<Box<dyn Source>> {
    choose(&mut dump, options)?;
    note_left_out(&mut dump, options);
    let found = find_streams(&mut dump, options)?;
    for array in &mut dump.arrays {
        row_order::make_rows_contiguous(array, &dump.file, options.max_memory, &mut dump.notes)?;
    }
    let streams = place_streams(&dump, &found, options)?;
    check_ring(&streams, options)?;
    dump.notes.extend(positions::notes(&streams));
    dump.notes.extend(found.notes);
    refuse_what_is_not_attention(&streams, options)?;
    let said = said_self(&dump, options)?;
    let self_attention = match said {
        Some(kind) => kind,
        None => self_kind::from_diagonal(&dump.file, &streams)?,
    };
    let mut read_as = found.read_as;
    if said.is_none() && self_attention == SelfAttention::Excluded {
        dump.notes.push(self_kind::EXCLUDED_NOTE.to_owned());
        read_as.push("--self excluded".to_owned());
    }
    if let Some(len) = found.prompt_len {
        let len = len.saturating_sub(options.start.unwrap_or(0));
        dump.metadata.entry("prompt_len".to_owned()).or_insert_with(|| len.to_string());
    }
    if self_attention == SelfAttention::Included {
        dump.notes.extend(padding::note(&streams)?);
    }
    Ok(Box::new(trace(dump, streams, self_attention, read_as)?))
}

fn check_ring(streams: &[Stream], options: &ReadOptions) -> Result<()> {
    if options.columns == ColumnOrder::Ascending || streams.iter().any(Stream::slides) {
        return Ok(());
    }
    Err(Error::usage("--columns ring is for layers as wide as their sliding window: say it with --layer-window"))
}

fn note_left_out(dump: &mut Dump, options: &ReadOptions) {
    let left_out = if options.arrays.is_empty() { &dump.left_out[..] } else { &[] };
    dump.notes.extend(left_out.iter().take(MAX_NOTES).map(LeftOut::note));
    if left_out.len() > MAX_NOTES {
        dump.notes.push(format!("{} more arrays are left out", left_out.len() - MAX_NOTES));
    }
}

/// The streams of a dump, whose positions are not known yet.
#[derive(Default)]
struct Streams {
    found: Vec<Found>,
    notes: Vec<String>,
    read_as: Vec<String>,
    prompt_len: Option<usize>,
}

/// Streams that lie in the same arrays.
struct Group {
    first: StreamLabel,
    /// Indices of the arrays in the dump with their layouts, in the order of their rows.
    parts: Vec<(usize, Layout)>,
    /// The position of row 0, where the arrays tell it.
    stands_at: Option<usize>,
}

/// A stream whose positions are not known yet.
pub(super) struct Found {
    pub label: StreamLabel,
    /// The indices of its arrays in the dump, with their layouts, in the order of their rows.
    pub parts: Arc<[(usize, Layout)]>,
    pub rows: usize,
    /// The position of row 0, where the arrays tell it and not the shape of one.
    pub stands_at: Option<usize>,
    layer: usize,
    head: usize,
}

fn find_streams(dump: &mut Dump, options: &ReadOptions) -> Result<Streams> {
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

fn layout_as_said(array: &Array, alone: bool, options: &ReadOptions) -> Result<Layout, String> {
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
    let parts: Arc<[(usize, Layout)]> = parts.into();
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

fn check_size(layout: &Layout, before: usize) -> Result<(), String> {
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

/// Finds where rows stand; where that fails because the arrays are something else, says what they look like.
fn place_streams(dump: &Dump, streams: &Streams, options: &ReadOptions) -> Result<Vec<Stream>> {
    let first = positions::first_position(dump, &streams.found, options);
    let placed = first.and_then(|(first, known)| placed(dump, &streams.found, first, &known, options));
    placed.map_err(|error| {
        let array = &dump.arrays[streams.found[0].parts[0].0];
        let looked = provisional(dump, array, options).ok().and_then(|stream| look(&stream).ok());
        match looked {
            Some(Likeness::Foreign(what)) => Error::data(array.place(&dump.file), what),
            _ => error,
        }
    })
}

fn placed(dump: &Dump, found: &[Found], first: usize, known: &[Known], options: &ReadOptions) -> Result<Vec<Stream>> {
    let file: Arc<str> = Arc::from(dump.file.as_str());
    let mut last: Option<(Arc<[(usize, Layout)]>, Arc<[Part]>)> = None;
    let mut streams = Vec::with_capacity(found.len());
    for (found, known) in found.iter().zip(known) {
        let parts = match &last {
            Some((same, parts)) if Arc::ptr_eq(same, &found.parts) => Arc::clone(parts),
            _ => parts(dump, &found.parts),
        };
        last = Some((Arc::clone(&found.parts), Arc::clone(&parts)));
        let stream = Stream {
            label: found.label.clone(),
            file: Arc::clone(&file),
            parts,
            layer: found.layer,
            head: found.head,
            first,
            start: options.start.unwrap_or(0),
            known: *known,
            rows: found.rows,
        };
        let checked = check_positions(first.saturating_add(found.rows)).and_then(|()| stream.check());
        let stream = checked.and_then(|()| stream.before(options.end));
        let place = || dump.arrays[found.parts[0].0].place(&dump.file);
        streams.push(stream.map_err(|problem| Error::data(place(), problem))?);
    }
    Ok(streams)
}

fn parts(dump: &Dump, parts: &[(usize, Layout)]) -> Arc<[Part]> {
    let mut first_row = 0;
    let part = |(index, layout): &(usize, Layout)| {
        let part = Part { array: dump.arrays[*index].clone(), layout: *layout, first_row };
        first_row += layout.rows.len;
        part
    };
    parts.iter().map(part).collect()
}

/// The first stream of an array, its rows as late in the sequence as its columns allow: for looking at it before
/// it is known where they stand.
pub(super) fn provisional(dump: &Dump, array: &Array, options: &ReadOptions) -> Result<Stream, String> {
    let layout = layout_as_said(array, true, options)?;
    check_size(&layout, 0)?;
    let (rows, width) = (layout.rows.len, layout.width);
    let (first, known) = match width.checked_sub(rows) {
        Some(first) if !layout.decode => (first, Known::default()),
        // Every column of every row, as in a window that is full.
        _ => (width, Known { window: Some(width), ..Known::default() }),
    };
    if layout.layers.len * layout.heads.len == 0 || width == 0 {
        return Err("holds no rows".to_owned());
    }
    Ok(Stream {
        label: StreamLabel { layer: 0, head: Head::Number(0) },
        file: Arc::from(dump.file.as_str()),
        parts: Arc::new([Part { array: array.clone(), layout, first_row: 0 }]),
        layer: 0,
        head: 0,
        first,
        start: 0,
        known,
        rows,
    })
}

fn said_self(dump: &Dump, options: &ReadOptions) -> Result<Option<SelfAttention>> {
    let word = dump.metadata.get("self").filter(|_| options.self_attention.is_none());
    match word.map(|word| SelfAttention::from_word(word).ok_or(word)) {
        None => Ok(options.self_attention),
        Some(Ok(kind)) => Ok(Some(kind)),
        Some(Err(word)) => {
            let problem = format!("self is {word:?} in the metadata, must be \"included\" or \"excluded\"");
            Err(Error::data(&dump.file, problem))
        }
    }
}

fn refuse_what_is_not_attention(streams: &[Stream], options: &ReadOptions) -> Result<()> {
    // The heads of an array have gone through the same hands: one of each layer will do.
    for same_layer in streams.chunk_by(|a, b| a.label.layer == b.label.layer) {
        let stream = &same_layer[0];
        let problem = match look(stream)? {
            Likeness::Attention => continue,
            Likeness::Scaled(_) if options.normalize.is_some() => continue,
            Likeness::Scaled(what) | Likeness::Foreign(what) => what,
        };
        return Err(Error::data(stream.place(stream.first_sound_row()), problem));
    }
    Ok(())
}

fn trace(dump: Dump, streams: Vec<Stream>, kind: SelfAttention, read_as: Vec<String>) -> Result<SquareTrace> {
    let describe = |stream: &Stream| StreamInfo {
        label: stream.label.clone(),
        rows: stream.rows - stream.first_row(kind),
        dtype: stream.dtype(),
    };
    let mut info = TraceInfo {
        name: dump.file,
        format: dump.format,
        self_attention: kind,
        first_position: kind.first_step(),
        positions: 0,
        streams: streams.iter().map(describe).collect(),
        metadata: Metadata::new(),
        facts: ModelFacts::default(),
        notes: dump.notes,
        read_as,
    };
    // Streams begin together, but one may end before the others.
    let longest = streams.iter().filter(|stream| stream.first_row(kind) < stream.rows).max_by_key(|stream| stream.rows);
    if let Some(stream) = longest {
        info.first_position = stream.step(stream.first_row(kind));
        info.positions = stream.step(stream.rows).index();
    }
    info.set_metadata(positions::without_applied(dump.metadata))?;
    let report = Report::new(streams.len());
    Ok(SquareTrace { info, streams, report, content: dump.content })
}
