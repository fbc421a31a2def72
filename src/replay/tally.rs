//! What a lane counts: sums and counts only, so that figures merge exactly. Means are made later.

use super::lane::StepMeasure;
use crate::meter::Number;

/// Sums and counts of one lane on one cache, or merged over several.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tally {
    /// Steps that were measured; where several query heads share the cache, each step counts once.
    pub steps: u64,
    /// Steps without usable attention.
    pub skipped_rows: u64,
    /// Steps of a prompt that is cut down at once: observed, not measured.
    pub prompt_steps: u64,
    /// Measured rows: one for each step and query head.
    pub rows: u64,
    /// Sum over rows of the kept weights.
    pub retained: f64,
    /// The same over rows measured after the first eviction.
    pub retained_full: f64,
    /// Number of rows measured after the first eviction.
    pub rows_full: u64,
    /// Sum over rows of all weights.
    pub row_mass: f64,
    /// The least mass retained of a row.
    pub min_step_mass: Option<f64>,
    /// Kept heavy positions.
    pub heavy_hits: u64,
    /// Heavy positions.
    pub heavy_possible: u64,
    /// Kept pivotal positions.
    pub pivotal_hits: u64,
    /// Pivotal positions.
    pub pivotal_possible: u64,
    /// Rows in which a peak is not kept.
    pub peak_misses: u64,
    /// Rows that keep less than a tenth of their total.
    pub broken_rows: u64,
    /// Times that a policy was asked to evict.
    pub eviction_calls: u64,
    /// Positions evicted.
    pub evicted: u64,
    /// Positions that left because no later row can attend to them.
    pub expired: u64,
    /// Sum over all steps of the positions held after eviction.
    pub kept_sum: u64,
    /// Most positions held after eviction.
    pub peak_kept: u64,
    /// Bytes of policy state and kept positions, at the most slots held at once.
    pub state_bytes: u64,
    /// Sum over caches of the budget in force; 0 where there is none.
    pub budget_sum: u64,
    /// Number of caches.
    pub caches: u64,
}

/// What was kept of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowKept {
    pub retained: f64,
    pub total: f64,
    pub after_eviction: bool,
}

impl Tally {
    /// Counts what was kept of a row.
    pub(super) fn add_row(&mut self, kept: RowKept) {
        self.rows += 1;
        self.retained += kept.retained;
        self.row_mass += kept.total;
        self.min_step_mass = least(self.min_step_mass, Some(kept.retained));
        self.broken_rows += u64::from(kept.retained < 0.1 * kept.total);
        if kept.after_eviction {
            self.retained_full += kept.retained;
            self.rows_full += 1;
        }
    }

    /// Counts what was hit of a row.
    pub(super) fn add_hits(&mut self, seen: &StepMeasure) {
        self.heavy_hits += seen.heavy_hits;
        self.heavy_possible += seen.heavy_possible;
        self.pivotal_hits += seen.pivotal_hits;
        self.pivotal_possible += seen.pivotal_possible;
    }

    /// Steps that passed, measured or not, after a prompt that is cut down at once.
    pub fn all_steps(&self) -> u64 {
        self.steps + self.skipped_rows
    }

    /// The value of a meter's sum by its name; `None` where nothing was counted.
    ///
    /// # Panics
    /// When no meter has a sum of that name.
    pub fn number(&self, sum: &str) -> Option<Number> {
        let count = match sum {
            "steps" => self.steps,
            "skipped_rows" => self.skipped_rows,
            "prompt_steps" => self.prompt_steps,
            "rows_measured" => self.rows,
            "rows_full" => self.rows_full,
            "heavy_hits" => self.heavy_hits,
            "heavy_possible" => self.heavy_possible,
            "pivotal_hits" => self.pivotal_hits,
            "pivotal_possible" => self.pivotal_possible,
            "peak_misses" => self.peak_misses,
            "broken_rows" => self.broken_rows,
            "eviction_calls" => self.eviction_calls,
            "evicted" => self.evicted,
            "expired" => self.expired,
            "kept_sum" => self.kept_sum,
            "peak_kept" => self.peak_kept,
            "state_bytes" => self.state_bytes,
            "retained_mass_sum" => return Some(Number::Real(self.retained)),
            "retained_mass_full_sum" => return Some(Number::Real(self.retained_full)),
            "row_mass_sum" => return Some(Number::Real(self.row_mass)),
            "min_step_mass" => return self.min_step_mass.map(Number::Real),
            other => panic!("no meter has a sum named {other:?}"),
        };
        Some(Number::Count(count))
    }

    /// Adds the counts of another cache: sums are summed, extremes kept.
    pub fn merge(&mut self, other: &Tally) {
        self.steps += other.steps;
        self.skipped_rows += other.skipped_rows;
        self.prompt_steps += other.prompt_steps;
        self.rows += other.rows;
        self.retained += other.retained;
        self.retained_full += other.retained_full;
        self.rows_full += other.rows_full;
        self.row_mass += other.row_mass;
        self.min_step_mass = least(self.min_step_mass, other.min_step_mass);
        self.heavy_hits += other.heavy_hits;
        self.heavy_possible += other.heavy_possible;
        self.pivotal_hits += other.pivotal_hits;
        self.pivotal_possible += other.pivotal_possible;
        self.peak_misses += other.peak_misses;
        self.broken_rows += other.broken_rows;
        self.eviction_calls += other.eviction_calls;
        self.evicted += other.evicted;
        self.expired += other.expired;
        self.kept_sum += other.kept_sum;
        self.peak_kept = self.peak_kept.max(other.peak_kept);
        self.state_bytes += other.state_bytes;
        self.budget_sum += other.budget_sum;
        self.caches += other.caches;
    }
}

fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
