//! Two kinds of integer that must never be mixed: where a token stands, and where it is held.

use std::fmt;

/// Absolute index of a token in the sequence, from 0.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u32);

impl Position {
    /// The position as an index into a row, which has one weight per position.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Index into the kept set: slot 0 holds the lowest position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub usize);
