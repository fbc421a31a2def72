//! Which positions the streams of a dump stand for: from options, from metadata, from shapes; never guessed.

use super::assemble::{Dump, Found};
use super::frame::{Columns, Frame, Known};
use crate::error::{Error, Result};
use crate::trace::limits::check_positions;
use crate::trace::options::ReadOptions;
use std::collections::BTreeMap;

const FIRST_POSITION: &str = "first_position";
const COLUMN_OFFSET: &str = "column_offset.";
const SLIDING_WINDOW: &str = "sliding_window.";

/// Finds a frame for each stream.
///
/// # Errors
/// When it cannot be known where the rows of the dump stand, or a stream does not fit there.
pub(super) fn frames(dump: &Dump, found: &[Found], options: &ReadOptions) -> Result<Vec<Frame>> {
    let known = found.iter().map(|found| known(dump, found.label.layer, options)).collect::<Result<Vec<_>>>()?;
    let first = first_position(dump, found, &known, options)?;
    let start = options.start.unwrap_or(0);
    let frame = |(found, known): (&Found, Known)| {
        let frame = Frame { first, columns: known.columns(&found.layout, first), start };
        let checked = check_positions(first.saturating_add(found.layout.rows.len));
        checked
            .and_then(|()| frame.check(&found.layout))
            .map(|()| frame)
            .map_err(|problem| Error::data(dump.arrays[found.array].place(&dump.file), problem))
    };
    found.iter().zip(known).map(frame).collect()
}

/// What the user should know of the frames that were found.
pub(super) fn notes(found: &[Found], frames: &[Frame]) -> Vec<String> {
    let dead = found.iter().zip(frames).map(|(found, frame)| frame.dead_columns(&found.layout)).max();
    let sliding = frames.iter().filter(|frame| matches!(frame.columns, Columns::Window(_))).count();
    let mut notes = Vec::new();
    if let Some(dead) = dead.filter(|dead| *dead > 0) {
        notes.push(format!("{dead} columns at the end stand for no position in any row: cut"));
    }
    if sliding > 0 {
        notes.push(format!("{sliding} streams are as wide as their layer's window: their columns slide with the row"));
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
    Ok(Known { offset, window: window.filter(|window| *window > 0) })
}

/// What an option says, else the metadata.
fn said(dump: &Dump, key: &str, option: Option<usize>) -> Result<Option<usize>> {
    let text = dump.metadata.get(key).filter(|_| option.is_none());
    let Some(text) = text else { return Ok(option) };
    let problem = || Error::data(&dump.file, format!("{key} is {text:?} in the metadata, must be a whole number"));
    text.parse().map(Some).map_err(|_| problem())
}

/// Where row 0 stands, which all streams of a dump share.
fn first_position(dump: &Dump, found: &[Found], known: &[Known], options: &ReadOptions) -> Result<usize> {
    if let Some(first) = said(dump, FIRST_POSITION, options.first_position)? {
        return Ok(first);
    }
    let by_shape = |(found, known): (&Found, &Known)| known.first(&found.layout).map(|first| (first, found.array));
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
    let (rows, width) = (found.layout.rows.len, found.layout.width);
    let last = match width.checked_sub(rows) {
        None | Some(0) => String::new(),
        Some(before) => format!(" or {before} where these are the last {rows} of {width} positions"),
    };
    let problem = format!(
        "{rows} rows of {width} columns: say with --first-position where row 0 stands (0 where columns at the end \
         are unused, as in a static cache{last})"
    );
    Error::data(dump.arrays[found.array].place(&dump.file), problem)
}
