//! Whether rows hold the token itself, where nobody says it: a diagonal of zeros says that they do not.

use super::stream::Stream;
use crate::error::{Error, Result};
use crate::trace::SelfAttention;

/// What the diagonal was taken for, as a note.
pub(super) const EXCLUDED_NOTE: &str =
    "the diagonal is zero in every row: taken as self excluded (--self included says otherwise)";

/// Finds out from the diagonal whether rows hold the token itself.
///
/// # Errors
/// When the file cannot be read, or an empty diagonal may as well mean that rows stand elsewhere.
pub(super) fn from_diagonal(file: &str, streams: &[Stream]) -> Result<SelfAttention> {
    for stream in streams {
        if !has_zero_diagonal(stream)? {
            return Ok(SelfAttention::Included);
        }
    }
    match streams.first() {
        Some(stream) if stream.first <= stream.start => Ok(SelfAttention::Excluded),
        Some(stream) => {
            let problem = format!(
                "no row has weight on its own token: either --first-position {} is too high, or self is excluded \
                 (then say --self excluded)",
                stream.first
            );
            Err(Error::data(file, problem))
        }
        None => Ok(SelfAttention::Included),
    }
}

/// Reads as little as it can: the first token can attend to nothing but itself.
fn has_zero_diagonal(stream: &Stream) -> Result<bool> {
    let mut rows = stream.open_sparse();
    for row in stream.first_sound_row()..stream.rows {
        if rows.own_weight(row)? != 0.0 {
            return Ok(false);
        }
    }
    Ok(stream.first_sound_row() < stream.rows)
}
