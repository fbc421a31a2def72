//! Padding at the end, which a dump does not name but shows: tokens that nobody attends to, not even they
//! themselves. It is told of, not taken off: whoever made the dump knows.

use super::stream::Stream;
use crate::error::Result;

/// The note on tokens at the end that look like padding, if there are any.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn note(streams: &[Stream]) -> Result<Option<String>> {
    let Some(first) = streams.first() else { return Ok(None) };
    if streams.iter().any(|stream| stream.rows != first.rows) {
        return Ok(None);
    }
    let mut least = first.rows - first.first_sound_row().min(first.rows);
    for stream in streams {
        least = least.min(unseen(stream)?);
        if least == 0 {
            return Ok(None);
        }
    }
    let real = first.rows - least;
    if !attends_to_itself(streams, real)? {
        return Ok(None);
    }
    let end = first.first + real;
    Ok(Some(format!(
        "the columns of the last {least} tokens are zero even in their own rows: if these are padding, --end {end} leaves \
         them out"
    )))
}

/// Whether the last of so many rows has weight on its own token in some stream: where none has, a diagonal of
/// zeros says nothing.
fn attends_to_itself(streams: &[Stream], rows: usize) -> Result<bool> {
    let Some(last) = rows.checked_sub(1) else { return Ok(false) };
    for stream in streams {
        if stream.open_sparse().own_weight(last)? != 0.0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number of tokens at the end of a stream that get no weight from any row.
fn unseen(stream: &Stream) -> Result<usize> {
    let mut rows = stream.open_sparse();
    let mut unseen_from = stream.first_sound_row();
    for row in (stream.first_sound_row()..stream.rows).rev() {
        if row < unseen_from {
            break;
        }
        let position = stream.first + row;
        let (weights, frame) = rows.row(row)?;
        let own = position - frame.column_zero(position);
        if let Some(seen) = weights[..=own].iter().rposition(|weight| *weight != 0.0) {
            // As many columns before its own as rows before this one.
            unseen_from = unseen_from.max((row + seen + 1).saturating_sub(own));
        }
    }
    Ok(stream.rows - unseen_from.min(stream.rows))
}
