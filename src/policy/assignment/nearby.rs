//! The columns that were near a line when it last looked at all of them.
//!
//! Prices of columns only fall, which takes columns away from a line; what brings them nearer is the
//! rise of the line's own price, by as much as it rose. So what was far then is still at least that
//! far, less the rise, and needs no second look until the rise has used up the difference.

/// Columns remembered for each line: more make for longer lists, fewer for more looks at everything.
const MOST: usize = 192;

/// Bytes that the columns remembered for a line take.
pub(super) const BYTES: usize = MOST * size_of::<Near>();

/// A column that was near.
#[derive(Clone, Copy)]
pub(super) struct Near {
    pub column: u32,
    pub cost: f64,
    /// Its reduced cost when it was noted.
    noted: f64,
}

/// The nearest columns of a line, nearest first, as they were noted.
#[derive(Clone)]
pub(super) struct Nearby {
    pub entries: Vec<Near>,
    /// No other column had a lower reduced cost then.
    beyond: f64,
    /// The line's price then.
    price: f64,
}

impl Default for Nearby {
    /// Nothing noted yet: any column may be near.
    fn default() -> Self {
        Nearby { entries: Vec::new(), beyond: f64::NEG_INFINITY, price: 0.0 }
    }
}

impl Nearby {
    /// Whether all columns with a reduced cost below `reach` are among the entries, now that the
    /// line's price is `price`.
    pub(super) fn holds_all_within(&self, reach: f64, price: f64) -> bool {
        self.beyond - (price - self.price) >= reach
    }

    /// The least that the reduced cost of an entry can be by now.
    pub(super) fn least_now(&self, entry: &Near, price: f64) -> f64 {
        entry.noted - (price - self.price)
    }

    /// Notes the nearest columns by their present reduced costs.
    pub(super) fn note(&mut self, costs: &[f64], reduced: &[f64], price: f64) {
        self.beyond = nth(reduced, MOST);
        self.price = price;
        self.entries.clear();
        self.entries.reserve_exact(MOST.min(costs.len()));
        for ((column, noted), cost) in (0..).zip(reduced).zip(costs) {
            if *noted < self.beyond {
                self.entries.push(Near { column, cost: *cost, noted: *noted });
            }
        }
        self.entries.sort_by(|a, b| a.noted.total_cmp(&b.noted));
    }
}

/// The value that `count` others do not exceed; infinite where there are no more than `count`.
fn nth(values: &[f64], count: usize) -> f64 {
    if values.len() <= count {
        return f64::INFINITY;
    }
    *values.to_vec().select_nth_unstable_by(count, f64::total_cmp).1
}
