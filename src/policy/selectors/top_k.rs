//! `top-k` (a selector): reads the k heaviest positions of each row.
//!
//! *Idea.* The same number of positions whatever the row; what `oracle` is with a budget, without the
//! claim that the others are gone.
//! *Paper.* None of its own: the ideal that sparse attention methods estimate.
//! *Parameters.* `top-k` (32).
//! *Cost.* A comparison per row; no state.

use crate::policy::entry::{Make, PolicyEntry};
use crate::policy::parameter::{TOP_K, Value};
use crate::policy::selector::Selector;

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "top-k",
    "selector: reads the k heaviest positions of each row",
    Make::Selector(|setting, _| Box::new(TopK { count: setting.values.count(&TOP_K) })),
)
.parameters(&[(&TOP_K, Value::Count(32))]);

struct TopK {
    count: usize,
}

impl Selector for TopK {
    fn read(&mut self, _head: usize, row: &[f32]) -> usize {
        self.count.min(row.len())
    }
}
