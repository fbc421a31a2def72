//! Meters: what is counted while a lane replays, and the columns that are made of it.
//!
//! A meter is one file: what it needs of a step, what it counts, its sums and how they merge, and the
//! figures that are read from them. [`METERS`] lists them all; reports, help, `kvsim table` and the
//! tests follow from that list, and the slow reference has a twin of each. Stands below the replay,
//! which feeds it; knows no lanes and no reports.
//!
//! Rows and steps are counted by the engine once and handed over a block at a time, so that a meter
//! that needs no more than counts costs next to nothing. A meter that looks at weights is called row
//! by row.

mod budget;
mod chosen;
pub mod column;
mod entry;
mod heavy;
mod joint;
mod kept;
mod kept_entropy;
mod layer_counts;
mod layer_error;
mod mass;
mod memory;
mod output_error;
mod pages;
mod peaks;
mod pivotal;
mod predicted_loss;
mod read;
mod rows;
mod seen;
mod sink_mass;
mod tally;
mod value_mass;

pub use chosen::{MeterPlan, chosen, defaults, least};
pub use column::{Better, Figure, Merge, Number, Reading, Sum};
pub use entry::{MeterEntry, MeterSetting, MeterSite, Run};
pub use joint::JointRows;
pub use layer_counts::LayerCounts;
pub use layer_error::{LayerErrors, LayerRow};
pub use memory::Bytes;
pub use pages::PageUse;
pub use seen::{Held, Hits, KeptRow, LaneEnd, OutputRow, Reads, RowCounts, StepCounts};
pub use tally::{Counted, Tally};

use crate::position::Position;

/// Counts what a lane does on one cache.
pub trait Meter: Send {
    /// Rows that were measured, in step order; what the engine counts of every row.
    fn rows(&mut self, rows: &[RowCounts]) {
        let _ = rows;
    }

    /// One measured row, before it is in [`Meter::rows`]. Called only where the meter
    /// [needs](MeterEntry::needs) more than counts; holds what it needs and nothing else.
    fn row(&mut self, row: &KeptRow<'_>) {
        let _ = row;
    }

    /// Steps that have passed, measured or not, in order.
    fn steps(&mut self, steps: &[StepCounts]) {
        let _ = steps;
    }

    /// The positions that are held at the end of a step that is no part of a prompt. Called only where the
    /// meter needs [`Needs::HELD_POSITIONS`](crate::needs::Needs::HELD_POSITIONS).
    fn held(&mut self, step: Position, kept: &[Position]) {
        let _ = (step, kept);
    }

    /// What was counted, once the last step is over.
    fn finish(self: Box<Self>, end: &LaneEnd) -> Counted;
}

/// Every meter, in the order of reports.
pub static METERS: &[MeterEntry] = &[
    rows::ENTRY,
    mass::ENTRY,
    heavy::ENTRY,
    pivotal::ENTRY,
    peaks::ENTRY,
    kept::ENTRY,
    memory::ENTRY,
    budget::ENTRY,
    read::ENTRY,
    kept_entropy::ENTRY,
    sink_mass::ENTRY,
    pages::ENTRY,
    output_error::ENTRY,
    value_mass::ENTRY,
    layer_error::ENTRY,
    predicted_loss::ENTRY,
];
