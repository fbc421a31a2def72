//! `fixed-threshold` (a selector): reads what weighs more than a fixed number.
//!
//! *Idea.* One threshold for all rows, however long: the control for thresholds that follow the length.
//! *Paper.* None; a control.
//! *Parameters.* `weight-above` (0.01), compared strictly.
//! *Cost.* One pass over the row; no state.

use crate::kernels::{count_over, f32_not_above};
use crate::policy::entry::{Make, PolicyEntry};
use crate::policy::parameter::{Value, WEIGHT_ABOVE};
use crate::policy::selector::Selector;

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "fixed-threshold",
    "selector: reads what weighs more than a fixed number",
    Make::Selector(|setting, _| {
        Box::new(FixedThreshold { threshold: f32_not_above(setting.values.real(&WEIGHT_ABOVE)) })
    }),
)
.parameters(&[(&WEIGHT_ABOVE, Value::Real(0.01))]);

struct FixedThreshold {
    threshold: f32,
}

impl Selector for FixedThreshold {
    fn read(&mut self, _head: usize, row: &[f32]) -> usize {
        count_over(row, self.threshold) as usize
    }
}
