//! From the arrays of a file to a trace: one step after the other, each in a file of its own.

use super::array::Array;
use super::frame::Frame;
use super::layout::{Layout, layout};
use super::positions::check_positions;
use super::read::RowPlace;
use super::report::Report;
use super::source::{SquareTrace, Stream};
use super::{names, padding, positions, probe, row_order, self_kind};
use crate::error::{Error, Result};
use crate::trace::options::ReadOptions;
use crate::trace::storage::Storage;
use crate::trace::{Head, Metadata, ModelFacts, SelfAttention, Source, StreamInfo, StreamLabel, TraceInfo};
use crate::word::Word;
use std::sync::Arc;

/// The arrays of a file, and what else it says.
pub(in crate::trace) struct Dump {
    /// The file's name, for reports and messages.
    pub file: String,
    /// The name of its format.
    pub format: &'static str,
    /// The file itself.
    pub content: Storage,
    pub arrays: Vec<Array>,
    pub metadata: Metadata,
    /// What the container has to say.
    pub notes: Vec<String>,
}

/// More streams than any model has: a shape that claims more is a mistake or a lie.
const MAX_STREAMS: usize = 1 << 20;

/// Makes a trace of the arrays.
///
/// # Errors
/// When they are no attention, when it cannot be known which position a row or a column stands for, or when
/// the file cannot be read.
pub(in crate::trace) fn open(mut dump: Dump, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let found = find_streams(&dump)?;
    for array in &mut dump.arrays {
        row_order::make_rows_contiguous(array, &dump.file, options.max_memory, &mut dump.notes)?;
    }
    let (streams, notes) = place_streams(&dump, found, options)?;
    dump.notes.extend(notes);
    let said = said_self(&dump, options)?;
    let self_attention = match said {
        Some(kind) => kind,
        None => self_kind::from_diagonal(&dump.file, &streams)?,
    };
    if said.is_none() && self_attention == SelfAttention::Excluded {
        dump.notes.push(self_kind::EXCLUDED_NOTE.to_owned());
    }
    refuse_what_is_no_attention(&streams, options)?;
    if self_attention == SelfAttention::Included {
        dump.notes.extend(padding::note(&streams)?);
    }
    Ok(Box::new(trace(dump, streams, self_attention)?))
}

/// A stream whose positions are not known yet.
pub(super) struct Found {
    pub label: StreamLabel,
    /// The array's index in the dump.
    pub array: usize,
    pub layout: Layout,
    /// Rows before its first one in the array.
    first_row: usize,
}

fn find_streams(dump: &Dump) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for index in 0..dump.arrays.len() {
        find_in_array(dump, index, &mut found)
            .map_err(|problem| Error::data(dump.arrays[index].place(&dump.file), problem))?;
    }
    found.sort_by(|a, b| a.label.cmp(&b.label));
    check_streams(dump, &found)?;
    Ok(found)
}

fn find_in_array(dump: &Dump, index: usize, found: &mut Vec<Found>) -> Result<(), String> {
    let (array, alone) = (&dump.arrays[index], dump.arrays.len() == 1);
    let layout = layout(&array.shape, array.fortran, alone)?;
    check_size(&layout, found.len())?;
    let first = names::first_label(&array.name, &layout, alone)?;
    for (layer, head) in pairs(layout.layers.len, layout.heads.len) {
        let label = match head {
            0 if layer == 0 => first.clone(),
            _ => StreamLabel { layer: first.layer + layer as u32, head: Head::Number(head as u32) },
        };
        found.push(Found { label, array: index, layout, first_row: layout.first_row(layer, head) });
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
    let place = |found: &Found| dump.arrays[found.array].place(&dump.file);
    for pair in found.windows(2) {
        if pair[0].label == pair[1].label {
            let other = &dump.arrays[pair[0].array].name;
            let problem = format!("layer and head {} are in array {other:?} too: name arrays by layer", pair[1].label);
            return Err(Error::data(place(&pair[1]), problem));
        }
    }
    Ok(())
}

fn place_streams(dump: &Dump, found: Vec<Found>, options: &ReadOptions) -> Result<(Vec<Stream>, Vec<String>)> {
    let frames = positions::frames(dump, &found, options)?;
    let notes = positions::notes(&found, &frames);
    let place = |(found, frame): (Found, Frame)| -> Result<Stream> {
        let array = &dump.arrays[found.array];
        let row = (found.layout.width * array.cells.size()) as u64;
        let place = RowPlace {
            file: dump.file.clone(),
            storage: Arc::clone(&array.storage),
            cells: array.cells,
            start: array.start + found.first_row as u64 * row,
            stride: found.layout.rows.stride as u64 * row,
            width: found.layout.width,
        };
        let array = array.place(&dump.file);
        let rows =
            rows_before(options.end, &frame, found.layout.rows.len).map_err(|problem| Error::data(&array, problem))?;
        Ok(Stream { label: found.label, array, place, frame, rows })
    };
    Ok((found.into_iter().zip(frames).map(place).collect::<Result<_>>()?, notes))
}

/// Of so many rows, those before the end.
fn rows_before(end: Option<usize>, frame: &Frame, stored: usize) -> Result<usize, String> {
    let Some(end) = end else { return Ok(stored) };
    let rows = stored.min(end.saturating_sub(frame.first));
    match frame.first_row() < rows {
        true => Ok(rows),
        false => Err(format!("--end {end} leaves none of the rows from position {} on", frame.first.max(frame.start))),
    }
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

fn refuse_what_is_no_attention(streams: &[Stream], options: &ReadOptions) -> Result<()> {
    // The heads of an array have gone through the same hands: one of each layer will do.
    for same_layer in streams.chunk_by(|a, b| a.label.layer == b.label.layer) {
        let stream = &same_layer[0];
        if let Some(problem) = probe::look(stream, options.normalize.is_some())? {
            return Err(Error::data(&stream.array, problem));
        }
    }
    Ok(())
}

fn trace(dump: Dump, streams: Vec<Stream>, kind: SelfAttention) -> Result<SquareTrace> {
    let describe = |stream: &Stream| StreamInfo {
        label: stream.label.clone(),
        rows: stream.rows - stream.first_row(kind),
        dtype: stream.place.cells.name(),
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
