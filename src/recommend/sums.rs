//! What is counted of rows, and the figures by which policies are compared.

/// Sums over some rows of what a lane kept of them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RowSums {
    /// Rows in which something can be lost: those measured after the lane's first eviction in their cache.
    pub rows: f64,
    /// Their weight on all positions.
    pub total: f64,
    /// Their weight on kept positions.
    pub retained: f64,
    /// Rows that were measured at all, lost or not.
    pub seen: f64,
    /// Rows that lack a position with more than a tenth of their attention.
    pub misses: f64,
    /// Squared changes of the log-likelihood, where the trace has gradients.
    pub changes: f64,
    /// The rows and samples that these were counted over.
    pub changed_rows: f64,
}

impl RowSums {
    /// Adds other rows, each counted so many times.
    pub fn add(&mut self, other: &RowSums, times: f64) {
        self.rows += times * other.rows;
        self.total += times * other.total;
        self.retained += times * other.retained;
        self.seen += times * other.seen;
        self.misses += times * other.misses;
        self.changes += times * other.changes;
        self.changed_rows += times * other.changed_rows;
    }

    /// All of these together, in their order.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a RowSums>) -> RowSums {
        let mut sum = RowSums::default();
        parts.into_iter().for_each(|part| sum.add(part, 1.0));
        sum
    }
}

/// A figure that less is better of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Share of rows that lack a position with more than a tenth of their attention.
    PeakMisses,
    /// Share of the attention that went to positions no longer held.
    LostMass,
    /// `predicted_loss`, nats a row.
    PredictedLoss,
}

impl Figure {
    /// The figure of some rows; 0 where nothing can be lost.
    pub fn of(self, sums: &RowSums) -> f64 {
        let (part, whole) = match self {
            Figure::PeakMisses => (sums.misses, sums.rows),
            Figure::LostMass => (sums.total - sums.retained, sums.total),
            Figure::PredictedLoss => (sums.changes, sums.changed_rows),
        };
        if whole > 0.0 { part / whole } else { 0.0 }
    }

    /// Name of the column.
    pub fn column(self) -> &'static str {
        match self {
            Figure::PeakMisses => "peak_misses",
            Figure::LostMass => "lost_mass",
            Figure::PredictedLoss => "predicted_loss",
        }
    }

    /// As people read it.
    pub fn shown(self, value: f64) -> String {
        match self {
            Figure::PeakMisses | Figure::LostMass => format!("{}%", short(100.0 * value)),
            Figure::PredictedLoss => short(value),
        }
    }

    /// What is known of the order in which it puts policies (docs/figures.md).
    pub fn known(self) -> &'static str {
        match self {
            Figure::PeakMisses => {
                "in checks against the real loss of two small models, peak misses ordered 88 to 92 % of the pairs of \
                 policies that truly differ"
            }
            Figure::LostMass => {
                "in checks against the real loss of two small models, lost mass ordered 86 to 89 % of the pairs of \
                 policies that truly differ"
            }
            Figure::PredictedLoss => {
                "in checks against the real loss of two small models, predicted_loss ordered 96 to 97 % of the pairs of \
                 policies that truly differ"
            }
        }
    }
}

/// Three digits that count, and no exponent.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    let decimals = match () {
        () if size >= 99.95 => 0,
        () if size >= 9.995 => 1,
        () if size >= 0.0995 || size == 0.0 => 2,
        () if size >= 0.00995 => 3,
        () => 4,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_share_of_the_rows_that_can_lose() {
        let sums = RowSums { rows: 8.0, total: 8.0, retained: 6.0, misses: 1.0, ..RowSums::default() };
        assert_eq!(Figure::PeakMisses.of(&sums), 0.125);
        assert_eq!(Figure::LostMass.of(&sums), 0.25);
        assert_eq!(Figure::LostMass.of(&RowSums::default()), 0.0, "nothing can be lost");
    }

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.00042, 0.0123, 0.523, 6.1, 12.34, 123.4].map(short);
        assert_eq!(shown, ["0.00", "0.0004", "0.012", "0.52", "6.10", "12.3", "123"]);
    }
}
