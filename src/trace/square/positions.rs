//! Which positions the streams of a dump stand for: from options, from metadata, from shapes; never guessed.

use super::dump::Dump;
use super::find::Found;
use super::frame::Known;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::trace::limits::check_positions;
use crate::trace::options::{ColumnOrder, ReadOptions};
use std::collections::BTreeMap;

pub(super) const FIRST_POSITION: &str = "first_position";
pub(super) const COLUMN_OFFSET: &str = "column_offset.";
const SLIDING_WINDOW: &str = "sliding_window.";

/// Finds the position of row 0, which all streams of a dump share, and what is known of each stream's columns.
///
/// # Errors
/// When it cannot be known where the rows of the dump stand.
pub(super) fn first_position(dump: &Dump, found: &[Found], options: &ReadOptions) -> Result<(usize, Vec<Known>)> {
    let known = found.iter().map(|found| known(dump, found.label.layer, options)).collect::<Result<Vec<_>>>()?;
    let first = stands_at(dump, found, &known, options)?;
    Ok((first, known))
}

/// What the user should know of the columns that were found.
pub(super) fn notes(streams: &[Stream]) -> Vec<String> {
    let dead = streams.iter().map(Stream::dead_columns).max().unwrap_or(0);
    let sliding = streams.iter().filter(|stream| stream.slides());
    let (rings, sliding): (Vec<&Stream>, Vec<&Stream>) = sliding.partition(|stream| stream.known.ring);
    let mut notes = Vec::new();
    if dead > 0 {
        notes.push(format!("{dead} columns at the end stand for no position in any row: cut"));
    }
    if !sliding.is_empty() {
        notes.push(format!(
            "{} streams are as wide as their layer's window: their columns slide with the row, and are taken to \
             ascend (--columns ring where position p is in column p mod window)",
            sliding.len()
        ));
    }
    if !rings.is_empty() {
        notes.push(format!("{} streams are rings: position p is read from column p mod window", rings.len()));
    }
    notes
}

/// The metadata without what rows have been expanded by: it must not be applied twice.
pub(super) fn without_applied(mut metadata: BTreeMap<String, String>) -> BTreeMap<String, String> {
    metadata.retain(|key, _| key != FIRST_POSITION && !key.starts_with(COLUMN_OFFSET));
    metadata
}

fn known(dump: &Dump, layer: u32, options: &ReadOptions) -> Result<Known> {
    let offset = said(dump, &format!("{COLUMN_OFFSET}{layer}"), options.column_offset.of(layer))?;
    let window = said(dump, &format!("{SLIDING_WINDOW}{layer}"), options.layer_window.of(layer))?;
    if let Some(offset) = offset {
        check_positions(offset).map_err(|problem| Error::data(&dump.file, format!("column offset: {problem}")))?;
    }
    let ring = options.columns == ColumnOrder::Ring;
    Ok(Known { offset, window: window.filter(|window| *window > 0), ring })
}

/// What an option says, else the metadata.
fn said(dump: &Dump, key: &str, option: Option<usize>) -> Result<Option<usize>> {
    let text = dump.metadata.get(key).filter(|_| option.is_none());
    let Some(text) = text else { return Ok(option) };
    let problem = || Error::data(&dump.file, format!("{key} is {text:?} in the metadata, must be a whole number"));
    text.parse().map(Some).map_err(|_| problem())
}

fn stands_at(dump: &Dump, found: &[Found], known: &[Known], options: &ReadOptions) -> Result<usize> {
    if let Some(first) = said(dump, FIRST_POSITION, options.first_position)? {
        return Ok(first);
    }
    let by_shape = |(found, known): (&Found, &Known)| {
        let (array, layout) = &found.parts[0];
        found.stands_at.or_else(|| known.first(layout)).map(|first| (first, *array))
    };
    let mut decided = found.iter().zip(known).filter_map(by_shape);
    let Some((first, array)) = decided.next() else { return Err(cannot_know(dump, &found[0])) };
    match decided.find(|(other, _)| *other != first) {
        None => Ok(first),
        Some((other, at)) => {
            let problem = format!(
                "row 0 stands at position {first} by array {:?}, at position {other} by array {:?}: say where with \
                 --first-position",
                dump.arrays[array].name, dump.arrays[at].name
            );
            Err(Error::data(&dump.file, problem))
        }
    }
}

fn cannot_know(dump: &Dump, found: &Found) -> Error {
    let (array, layout) = &found.parts[0];
    let (rows, width) = (layout.rows.len, layout.width);
    if rows > width && !layout.decode {
        let problem = format!(
            "{rows} rows of {width} columns, fewer than the rows: cross-attention, which is not replayed, or a \
             sliding layer, whose window --layer-window tells"
        );
        return Error::data(dump.arrays[*array].place(&dump.file), problem);
    }
    let last = match width.checked_sub(rows) {
        None | Some(0) => String::new(),
        Some(before) => format!(" or {before} where these are the last {rows} of {width} positions"),
    };
    let problem = format!(
        "{rows} rows of {width} columns: say with --first-position where row 0 stands (0 where columns at the end \
         are unused, as in a static cache{last})"
    );
    Error::data(dump.arrays[*array].place(&dump.file), problem)
}
