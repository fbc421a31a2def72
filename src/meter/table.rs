//! The list of meters.

use super::column::{Better, Figure, Kind, Merge, Reading, Sum};

/// One meter, as everything outside its file knows it.
#[derive(Debug)]
pub struct MeterEntry {
    /// Its name.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// What it adds up.
    pub sums: &'static [Sum],
    /// What is read from that, in the order of reports.
    pub figures: &'static [Figure],
}

const fn count(name: &'static str, unit: &'static str, meaning: &'static str) -> Sum {
    Sum { name, unit, kind: Kind::Count, merge: Merge::Add, meaning }
}

const fn mass(name: &'static str, meaning: &'static str) -> Sum {
    Sum { name, unit: "mass", kind: Kind::Real, merge: Merge::Add, meaning }
}

const fn figure(
    name: &'static str,
    unit: &'static str,
    better: Better,
    reading: Reading,
    meaning: &'static str,
) -> Figure {
    Figure { name, unit, better, reading, meaning }
}

/// Every meter, in the order of reports.
pub static METERS: &[MeterEntry] = &[
    MeterEntry {
        name: "mass",
        summary: "the weight on kept positions",
        sums: &[
            count("steps", "steps", "steps measured"),
            count("rows_measured", "rows", "rows behind the means: one for each step and query head"),
            mass("retained_mass_sum", "sum behind retained_mass"),
            count("rows_full", "rows", "rows behind retained_mass_full"),
            mass("retained_mass_full_sum", "sum behind retained_mass_full"),
            mass("row_mass_sum", "sum behind row_mass"),
            Sum {
                name: "min_step_mass",
                unit: "mass",
                kind: Kind::Real,
                merge: Merge::Least,
                meaning: "least weight that was kept of a row",
            },
            count("broken_rows", "rows", "rows behind broken_row_rate"),
        ],
        figures: &[
            figure(
                "retained_mass",
                "mass per row",
                Better::Higher,
                Reading::Ratio("retained_mass_sum", &["rows_measured"]),
                "mean over rows of the weight on kept positions",
            ),
            figure(
                "retained_mass_full",
                "mass per row",
                Better::Higher,
                Reading::Ratio("retained_mass_full_sum", &["rows_full"]),
                "the same over rows measured after the first eviction",
            ),
            figure(
                "broken_row_rate",
                "share of rows",
                Better::Lower,
                Reading::Ratio("broken_rows", &["rows_measured"]),
                "rows that keep less than a tenth of their total",
            ),
            figure(
                "row_mass",
                "mass per row",
                Better::Neither,
                Reading::Ratio("row_mass_sum", &["rows_measured"]),
                "mean over rows of the weight on all positions",
            ),
        ],
    },
    MeterEntry {
        name: "heavy",
        summary: "the heaviest positions of each row",
        sums: &[
            count("heavy_hits", "positions", "heavy positions kept"),
            count("heavy_possible", "positions", "heavy positions"),
        ],
        figures: &[figure(
            "heavy_recall",
            "share",
            Better::Higher,
            Reading::Ratio("heavy_hits", &["heavy_possible"]),
            "share of each row's k heaviest positions that are kept",
        )],
    },
    MeterEntry {
        name: "pivotal",
        summary: "the positions above the even share of their row",
        sums: &[
            count("pivotal_hits", "positions", "pivotal positions kept"),
            count("pivotal_possible", "positions", "pivotal positions"),
        ],
        figures: &[figure(
            "pivotal_hit_rate",
            "share",
            Better::Higher,
            Reading::Ratio("pivotal_hits", &["pivotal_possible"]),
            "share of positions with more than 1 / row length that are kept",
        )],
    },
    MeterEntry {
        name: "peaks",
        summary: "rows in which a position with much weight is missing",
        sums: &[count("peak_misses", "rows", "rows behind peak_miss_rate")],
        figures: &[figure(
            "peak_miss_rate",
            "share of rows",
            Better::Lower,
            Reading::Ratio("peak_misses", &["rows_measured"]),
            "rows in which a position with weight above 0.1 is not kept",
        )],
    },
    MeterEntry {
        name: "kept",
        summary: "how many positions are held, and how they leave",
        sums: &[
            count("skipped_rows", "steps", "steps without usable attention"),
            count("prompt_steps", "steps", "steps of a prompt that is cut down at once: observed, not measured"),
            count("eviction_calls", "calls", "times that the policy had to evict"),
            count("evicted", "positions", "positions evicted"),
            count("expired", "positions", "positions that left because no later row can attend to them"),
            count("kept_sum", "positions", "sum behind mean_kept, over steps + skipped_rows"),
            Sum {
                name: "peak_kept",
                unit: "positions",
                kind: Kind::Count,
                merge: Merge::Most,
                meaning: "most positions held after eviction",
            },
            count("state_bytes", "bytes", "policy state and 4 bytes a position, at the most slots held"),
        ],
        figures: &[figure(
            "mean_kept",
            "positions",
            Better::Neither,
            Reading::Ratio("kept_sum", &["steps", "skipped_rows"]),
            "mean over steps of the positions held after eviction",
        )],
    },
];
