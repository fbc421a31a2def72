//! From streams to rows: where in the sequence they stand, and where their bytes are.

use super::array::Array;
use super::dump::Dump;
use super::find::{Found, Piece, Streams, check_size, layout_as_said};
use super::frame::Known;
use super::positions;
use super::probe::{Likeness, look};
use super::stream::{Part, Stream};
use crate::error::{Error, Result};
use crate::trace::limits::check_positions;
use crate::trace::options::ReadOptions;
use crate::trace::{Head, StreamLabel};
use std::sync::Arc;

/// Finds where rows stand; where that fails because the arrays are something else, says what they look like.
///
/// # Errors
/// When it cannot be known where rows stand, or a stream does not fit there.
pub(super) fn place_streams(dump: &Dump, streams: &Streams, options: &ReadOptions) -> Result<Vec<Stream>> {
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

/// The pieces of the stream before, and the parts that were made of them: most streams share them.
type Laid = (Arc<[Piece]>, Arc<[Part]>);

fn placed(dump: &Dump, found: &[Found], first: usize, known: &[Known], options: &ReadOptions) -> Result<Vec<Stream>> {
    let file: Arc<str> = Arc::from(dump.file.as_str());
    let mut last: Option<Laid> = None;
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

fn parts(dump: &Dump, parts: &[Piece]) -> Arc<[Part]> {
    let mut first_row = 0;
    let part = |(index, layout): &Piece| {
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
