//! What everything outside a meter's file knows of it.

use super::column::{Figure, Number, Sum};
use super::memory::Bytes;
use super::{JointRows, Meter};
use crate::needs::Needs;
use crate::policy::parameter::{Parameter, Value, Values};
use crate::position::Position;

/// One meter. Made by [`MeterEntry::new`]; what differs from the plain is said by the methods after it.
#[derive(Debug)]
pub struct MeterEntry {
    /// Its name.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// When it runs.
    pub run: Run,
    /// What it needs beyond what the engine counts of every row.
    pub needs: Needs,
    /// Its parameters, with defaults.
    pub parameters: &'static [(&'static Parameter, Value)],
    /// What it adds up.
    pub sums: &'static [Sum],
    /// What is read from that, in the order of reports.
    pub figures: &'static [Figure],
    /// Whether its sums say something of a single step.
    pub by_step: bool,
    /// Makes one for a lane on a cache.
    pub make: fn(&MeterSetting) -> Box<dyn Meter>,
    /// Whether what it says of some caches is not a part of what it says of all.
    pub of_wholes: bool,
    /// For a joint meter: its sums, made of what all caches of a lane added up to.
    pub joint: Option<SumsOfJoint>,
}

/// Makes the sums of a joint meter.
pub type SumsOfJoint = fn(&JointRows) -> Vec<Option<Number>>;

/// When a meter runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// With every lane: others are read by its sums.
    Always,
    /// Unless other meters were chosen.
    ByDefault,
    /// As by default, on traces that hold what it needs.
    WhereOffered,
    /// Where it was chosen.
    WhenChosen,
}

/// What a meter is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct MeterSetting {
    /// The cache, and the lane on it.
    pub site: MeterSite,
    /// One value for each parameter of the meter.
    pub values: Values,
}

/// What a meter knows of a cache and of the lane on it. The default knows nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct MeterSite {
    /// Most positions that the cache may hold between steps; `None` where there is no budget.
    pub budget: Option<usize>,
    /// Newest slots that the policy never evicts, where it has such a window.
    pub recent_window: Option<usize>,
    /// First positions that it never evicts, where it has sinks.
    pub sinks: Option<usize>,
    /// The layer of the cache.
    pub layer: u32,
    /// Number of positions that the layer attends to, where it is fewer than all.
    pub window: Option<usize>,
    /// Step of the first row.
    pub first: Position,
    /// Bytes of a position, where they are known.
    pub bytes: Option<Bytes>,
}

impl MeterEntry {
    /// A meter that is chosen by name and needs only what the engine counts.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        sums: &'static [Sum],
        figures: &'static [Figure],
        make: fn(&MeterSetting) -> Box<dyn Meter>,
    ) -> MeterEntry {
        MeterEntry {
            name,
            summary,
            run: Run::WhenChosen,
            needs: Needs::NOTHING,
            parameters: &[],
            sums,
            figures,
            by_step: true,
            of_wholes: false,
            make,
            joint: None,
        }
    }

    /// When it runs.
    pub const fn run(self, run: Run) -> MeterEntry {
        MeterEntry { run, ..self }
    }

    /// What it needs.
    pub const fn needs(self, needs: Needs) -> MeterEntry {
        MeterEntry { needs, ..self }
    }

    /// Its parameters, with defaults.
    pub const fn parameters(self, parameters: &'static [(&'static Parameter, Value)]) -> MeterEntry {
        MeterEntry { parameters, ..self }
    }

    /// A meter whose sums make sense of a whole lane only.
    pub const fn of_lanes(self) -> MeterEntry {
        MeterEntry { by_step: false, ..self }
    }

    /// A meter whose numbers are added over all caches of a lane before its sums are made of them.
    /// What it says of one cache is not a part of what it says of all.
    pub const fn joint(self, sums: SumsOfJoint) -> MeterEntry {
        MeterEntry { joint: Some(sums), of_wholes: true, ..self }
    }

    /// A meter of which what it says of some caches is not a part of what it says of all.
    pub const fn of_wholes(self) -> MeterEntry {
        MeterEntry { of_wholes: true, ..self }
    }

    /// The values of all parameters by default.
    pub fn defaults(&self) -> Values {
        let mut values = Values::default();
        self.parameters.iter().for_each(|(parameter, value)| values.set(parameter, *value));
        values
    }
}
