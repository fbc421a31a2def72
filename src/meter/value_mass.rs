//! Value mass: how much of a row is kept, each weight times the length of what it weighs.

use super::column::{Figure, Number, Reading, Sum};
use super::{Counted, KeptRow, LaneEnd, Meter, MeterEntry, Run, output_error};

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("value_mass", "retained mass, weighed by the length of values", SUMS, FIGURES, |_| {
        Box::new(ValueMass::default())
    })
    .run(Run::WhereOffered)
    .needs(output_error::NEEDS);

const SUMS: &[Sum] = &[
    Sum::real("value_mass_sum", "shares", "sum behind value_mass"),
    Sum::count("value_mass_rows", "rows", "rows with any value, behind value_mass"),
];

const FIGURES: &[Figure] = &[Figure::new(
    "value_mass",
    "share",
    Reading::Ratio("value_mass_sum", &["value_mass_rows"]),
    "mean over rows of the weight kept, each times the length of its value, over the same of all positions",
)
.higher_is_better()];

#[derive(Default)]
struct ValueMass {
    share: f64,
    rows: u64,
}

impl Meter for ValueMass {
    fn row(&mut self, row: &KeptRow<'_>) {
        if let Some(output) = row.output.filter(|output| output.value_mass > 0.0) {
            self.share += output.kept_value_mass / output.value_mass;
            self.rows += 1;
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::all([Number::Real(self.share), Number::Count(self.rows)])
    }
}
