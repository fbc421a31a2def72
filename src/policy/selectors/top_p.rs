//! `top-p` (a selector): reads the fewest positions that hold a share of the row's mass.
//!
//! *Idea.* The loss is fixed and the number of positions follows: few where attention is peaked, many
//! where it is spread.
//! *Paper.* Lin et al.: Twilight: Adaptive Attention Sparsity with Hierarchical Top-p Pruning, NeurIPS
//! 2025, arXiv 2502.02770.
//! *How this differs from the paper.* Twilight prunes what another method selected, by estimates from
//! quantised keys; here the row itself decides.
//! *Parameters.* `top-p` (0.9), a share of the row's total. Sums are f64, heaviest first.
//! *Cost.* A sort per row; no state.

use crate::kernels;
use crate::policy::entry::{Make, PolicyEntry};
use crate::policy::parameter::{TOP_P, Value};
use crate::policy::selector::Selector;

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "top-p",
    "selector: reads the fewest positions that hold a share of the row's mass",
    Make::Selector(|setting, _| Box::new(TopP { share: setting.values.real(&TOP_P), sorted: Vec::new() })),
)
.paper("Lin et al.: Twilight, NeurIPS 2025, arXiv 2502.02770")
.parameters(&[(&TOP_P, Value::Real(0.9))]);

struct TopP {
    share: f64,
    sorted: Vec<f32>,
}

impl Selector for TopP {
    fn read(&mut self, _head: usize, row: &[f32]) -> usize {
        let wanted = self.share * kernels::sum(row);
        self.sorted.clear();
        self.sorted.extend(row.iter().filter(|weight| **weight > 0.0));
        self.sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut mass = 0.0;
        let short = |weight: &&f32| {
            let is_short = mass < wanted;
            mass += f64::from(**weight);
            is_short
        };
        self.sorted.iter().take_while(short).count()
    }
}
