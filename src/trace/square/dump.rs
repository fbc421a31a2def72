//! What a container hands over: the arrays of a file, and what else it says.

use super::array::Array;
use crate::trace::Metadata;
use crate::trace::storage::Storage;

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
