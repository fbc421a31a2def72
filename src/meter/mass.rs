//! Retained mass: the weight of each row on kept positions.

use super::column::{Figure, Kind, Merge, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, RowCounts, Run};

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("mass", "the weight on kept positions", SUMS, FIGURES, |_| Box::new(Mass::new()))
        .run(Run::ByDefault);

const SUMS: &[Sum] = &[
    Sum::real("retained_mass_sum", "mass", "sum behind retained_mass"),
    Sum::count("rows_full", "rows", "rows behind retained_mass_full"),
    Sum::real("retained_mass_full_sum", "mass", "sum behind retained_mass_full"),
    Sum::real("row_mass_sum", "mass", "sum behind row_mass"),
    Sum {
        name: "min_step_mass",
        unit: "mass",
        kind: Kind::Real,
        merge: Merge::Least,
        meaning: "least weight that was kept of a row",
    },
    Sum::count("broken_rows", "rows", "rows behind broken_row_rate"),
];

const FIGURES: &[Figure] = &[
    Figure::new(
        "retained_mass",
        "mass per row",
        Reading::Ratio("retained_mass_sum", &["rows_measured"]),
        "mean over rows of the weight on kept positions",
    )
    .higher_is_better(),
    Figure::new(
        "retained_mass_full",
        "mass per row",
        Reading::Ratio("retained_mass_full_sum", &["rows_full"]),
        "the same over rows measured after the first eviction",
    )
    .higher_is_better(),
    Figure::new(
        "broken_row_rate",
        "share of rows",
        Reading::Ratio("broken_rows", &["rows_measured"]),
        "rows that keep less than a tenth of their total",
    )
    .lower_is_better(),
    Figure::new(
        "row_mass",
        "mass per row",
        Reading::Ratio("row_mass_sum", &["rows_measured"]),
        "mean over rows of the weight on all positions",
    ),
];

struct Mass {
    retained: f64,
    rows_full: u64,
    retained_full: f64,
    row_mass: f64,
    /// Infinite while there is no row.
    least: f64,
    broken: u64,
}

impl Mass {
    fn new() -> Mass {
        Mass { retained: 0.0, rows_full: 0, retained_full: 0.0, row_mass: 0.0, least: f64::INFINITY, broken: 0 }
    }
}

impl Meter for Mass {
    fn rows(&mut self, rows: &[RowCounts]) {
        for row in rows {
            self.retained += row.retained;
            self.row_mass += row.total;
            // Not f64::min, which minds values that are no number: there are none.
            self.least = if row.retained < self.least { row.retained } else { self.least };
            self.broken += u64::from(row.retained < 0.1 * row.total);
            if row.after_eviction {
                self.retained_full += row.retained;
                self.rows_full += 1;
            }
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::Sums(vec![
            Some(Number::Real(self.retained)),
            Some(Number::Count(self.rows_full)),
            Some(Number::Real(self.retained_full)),
            Some(Number::Real(self.row_mass)),
            self.least.is_finite().then_some(Number::Real(self.least)),
            Some(Number::Count(self.broken)),
        ])
    }
}
