//! Weights that cannot be attention, and the words to refuse them with.

use super::{Row, Source};
use crate::error::{Error, Result};

/// Refuses a row with a negative weight or no number.
///
/// # Errors
/// Names the place of the first such weight and what is wrong with it.
pub fn refuse_weights(source: &dyn Source, stream: usize, row: Row<'_>) -> Result<()> {
    match row.first_unsound() {
        None => Ok(()),
        Some(column) => Err(refusal(source, stream, row, column)),
    }
}

fn refusal(source: &dyn Source, stream: usize, row: Row<'_>, column: usize) -> Error {
    let place = format!("{} column {column}", source.place(stream, row.step));
    let remedy = "(replay and analyze pass over such rows with --on-bad-row skip)";
    Error::data(place, format!("{} {remedy}", problem_of(row.weights[column])))
}

/// What is wrong with a weight that cannot be attention.
pub(crate) fn problem_of(weight: f32) -> String {
    let what = match weight {
        _ if weight.is_nan() => "is not a number",
        _ if weight.is_infinite() => "is infinite",
        _ => "is negative",
    };
    format!("weight {weight} {what}: attention weights lie between 0 and 1")
}
