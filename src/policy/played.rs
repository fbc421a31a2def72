//! `played`: no policy, but decisions that were made elsewhere: by another program, another version, an engine.
//!
//! Which position goes when is said beforehand ([`Playback`](crate::replay::Playback)); the engine replays it
//! like the kept set of any policy, so that every meter measures it. Whatever is held stays until it is said to go:
//! there is no budget. It is not in the table, as nobody can name it without a file.

use super::entry::{Make, PolicyEntry};

/// What replays decisions that were made elsewhere.
pub static PLAYED: PolicyEntry =
    PolicyEntry::new("played", "replays decisions made elsewhere", Make::Played).without_budget();
