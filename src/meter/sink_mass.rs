//! Sink mass: how much of a row lies on the first positions, as far as they are kept.
//!
//! Models park attention on the first tokens. What a policy keeps of that is counted, not what the row
//! gives: beside `retained_mass` it says how much of the retained weight is of no use to a reader, and
//! a policy that has dropped the sinks shows 0.

use super::column::{Figure, Merge, Number, Reading, Sum};
use super::{Counted, KeptRow, LaneEnd, Meter, MeterEntry};
use crate::needs::Needs;
use crate::policy::parameter::{SINKS, Value};

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("sink_mass", "the weight on the first positions that are kept", SUMS, FIGURES, |setting| {
        Box::new(SinkMass { sinks: setting.values.count(&SINKS), sum: 0.0 })
    })
    .needs(Needs::KEPT_SET.and(Needs::KEPT_WEIGHTS))
    .parameters(&[(&SINKS, Value::Count(4))]);

const SUMS: &[Sum] = &[
    Sum::real("sink_mass_sum", "mass", "sum behind sink_mass"),
    Sum::count("sink_mass_sinks", "positions", "first positions that sink_mass looks at").merged_by(Merge::Most),
];

const FIGURES: &[Figure] = &[Figure::new(
    "sink_mass",
    "mass per row",
    Reading::Ratio("sink_mass_sum", &["rows_measured"]),
    "mean over rows of the weight on kept positions among the first (4)",
)];

struct SinkMass {
    sinks: usize,
    sum: f64,
}

impl Meter for SinkMass {
    fn row(&mut self, row: &KeptRow<'_>) {
        let weights = row.weights.expect("declared in the entry's needs");
        let kept = row.positions.iter().zip(weights).take_while(|(position, _)| position.index() < self.sinks);
        self.sum += kept.map(|(_, weight)| f64::from(*weight)).sum::<f64>();
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([Number::Real(self.sum), Number::Count(self.sinks as u64)])
    }
}
