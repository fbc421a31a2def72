//! `simlayer-kv`: a layer that looks at the first and the newest positions only keeps only these; cut once.
//!
//! *Idea.* Some layers are lazy: nearly all of their attention goes to sinks and neighbours. They can do
//! with a window; the others keep the whole prompt.
//! *Paper.* Zhang et al.: SimLayerKV: A Simple Framework for Layer-Level KV Cache Reduction, 2024, arXiv
//! 2410.13846.
//! *How this differs from the paper.* A layer is judged by the last row of the prompt, by the mean over all
//! of its query heads. What a lazy layer generates later stays too, so that all layers grow alike.
//! *Parameters.* `sinks` (4), `recent-window` (1024), `lazy-above` (0.9; the paper's thresholds are 0.65 to
//! 0.9 by model), compared strictly. It has no budget: hold what it retains against `mean_kept`.
//! *Cost.* One row; nothing afterwards.

use super::{Look, PromptCut, PromptRows, PromptSetting, by_layer};
use crate::keeping::{PromptMode, Scope};
use crate::needs::Needs;
use crate::policy::entry::{Make, OwnKeeping, PolicyEntry};
use crate::policy::parameter::{LAZY_ABOVE, RECENT_WINDOW, SINKS, Value};

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "simlayer-kv",
    "layers that look at the first and the newest positions keep only these of a prompt; no budget",
    Make::PromptEnd(|setting| {
        let count = |parameter| setting.values.count(parameter);
        Box::new(SimLayerKv { sinks: count(&SINKS), recent: count(&RECENT_WINDOW), setting: setting.clone() })
    }),
)
.paper("Zhang et al.: SimLayerKV, 2024, arXiv 2410.13846")
.parameters(&[(&SINKS, Value::Count(4)), (&RECENT_WINDOW, Value::Count(1024)), (&LAZY_ABOVE, Value::Real(0.9))])
.without_budget()
.needs(Needs::PROMPT_END.and(Needs::HEAD_ROWS))
.keeps(OwnKeeping { scope: Some(Scope::Head), prompt: Some(PromptMode::Once), ..OwnKeeping::NOTHING });

struct SimLayerKv {
    sinks: usize,
    recent: usize,
    setting: PromptSetting,
}

impl SimLayerKv {
    /// Whether a lazy layer keeps a column; columns are positions from `first` on.
    fn stays(&self, column: usize, columns: usize, first: usize) -> bool {
        first + column < self.sinks || column.saturating_add(self.recent) >= columns
    }
}

impl PromptCut for SimLayerKv {
    fn rows(&self) -> usize {
        1
    }

    /// The sum over query heads of the mass on what a lazy layer keeps.
    fn look(&self, rows: &PromptRows) -> Look {
        let of_head = |head: &[f32]| -> f64 {
            let stays = |(column, _): &(usize, &f32)| self.stays(*column, rows.columns, rows.first);
            head.iter().enumerate().filter(stays).map(|(_, weight)| f64::from(*weight)).sum()
        };
        let mass = rows.rows.iter().flat_map(|row| row.heads()).map(of_head).sum();
        Look::of(rows, Vec::new(), [mass, 0.0])
    }

    fn keep(&self, looks: &[Look]) -> Vec<Option<Vec<usize>>> {
        let mut kept = vec![None; looks.len()];
        let threshold = self.setting.values.real(&LAZY_ABOVE);
        for team in by_layer(&self.setting.layers) {
            let heads: usize = team.iter().map(|cache| looks[*cache].heads).sum();
            let mass: f64 = team.iter().map(|cache| looks[*cache].sums[0]).sum();
            if mass / heads as f64 > threshold {
                team.iter().for_each(|cache| kept[*cache] = Some(self.window_of(&looks[*cache])));
            }
        }
        kept
    }
}

impl SimLayerKv {
    fn window_of(&self, look: &Look) -> Vec<usize> {
        (0..look.columns).filter(|column| self.stays(*column, look.columns, look.first)).collect()
    }
}
