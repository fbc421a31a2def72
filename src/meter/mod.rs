//! Meters: what is counted while a lane replays, and the columns that are made of it.
//!
//! A meter is one file: what it needs of a step, what it counts for a row, how its sums merge, and
//! the figures that are read from them. [`table::METERS`] lists them all; reports, help, `kvsim
//! table` and the tests follow from that list. Stands below the replay, which feeds it; knows no
//! policies and no reports.

pub mod column;
pub mod table;

pub use column::{Better, Figure, Merge, Number, Reading, Sum};
pub use table::{METERS, MeterEntry};
