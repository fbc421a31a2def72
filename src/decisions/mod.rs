//! Decisions: who left when. Written during a replay, read back, compared, or made for a model that runs.
//!
//! A file of them ([`Header`], then a line for each cache and lane) is described in docs/decisions.md. A
//! [`Recorder`] writes one while a replay runs; [`Decisions`] reads one and has the engine replay it; [`diff`]
//! says where two lanes part, why, and what that costs; [`decide`] hears the rows of a running model and answers
//! with evictions. Stands above the replay; knows no command line.

pub mod decide;
pub mod diff;
mod header;
mod overlap;
mod read;
mod recorder;
mod why;

pub use header::{Header, LaneHeader, VERSION};
pub use overlap::Overlap;
pub use read::{Decisions, Evictions};
pub use recorder::Recorder;
pub use why::{Pair, Protection, Why};
