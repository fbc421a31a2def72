//! `ada-kv`: the KV heads of a layer share what they may keep of a prompt; cut once.
//!
//! *Idea.* Heads differ in how spread their attention is: one pool of slots for the layer goes where the
//! scores are, and a part of each head's own is safe.
//! *Paper.* Feng et al.: Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient
//! LLM Inference, 2024, arXiv 2407.11550.
//! *How this differs from the paper.* The order is that of kvpress, whose total is exact: the safe part
//! first, then the highest of all other scores together. kvpress counts the safe part on prefix and window
//! together, so that the window fills it first; here it is a part of the prefix. The authors' repository
//! rounds `(1 - alpha) c + floor(alpha b)` for each head instead and may miss the total. Scores are those
//! of `snapkv-prompt`. At a tie the higher position stays, then that of the higher head.
//! *Parameters.* `obs-window` (32), `pool` (avg), `pool-kernel` (5, odd), `alpha` (0.2): the part of its own
//! that a head is sure of, rounded down; the product is taken in f64.
//! *Cost.* As snapkv-prompt, and a sort over the layer's scores.

use super::deal::{of_prefix, shared_in_layers};
use super::snapkv_prompt::Scoring;
use super::{Look, PromptCut, PromptRows, PromptSetting, check};
use crate::keeping::{PromptMode, Scope};
use crate::policy::entry::{Make, OwnKeeping, PolicyEntry};
use crate::policy::parameter::{ALPHA, OBS_WINDOW, POOL, POOL_KERNEL, Value};

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "ada-kv",
    "snapkv-prompt with the slots of a layer dealt out to its heads by their scores",
    Make::PromptEnd(make),
)
.paper("Feng et al.: Ada-KV, 2024, arXiv 2407.11550")
.parameters(&[
    (&OBS_WINDOW, Value::Count(32)),
    (&POOL, Value::Word("avg")),
    (&POOL_KERNEL, Value::Count(5)),
    (&ALPHA, Value::Real(0.2)),
])
.keeps(OwnKeeping { scope: Some(Scope::Head), prompt: Some(PromptMode::Once), ..OwnKeeping::NOTHING })
.check(check);

fn make(setting: &PromptSetting) -> Box<dyn PromptCut> {
    Box::new(AdaKv {
        scoring: Scoring::new(&setting.values),
        sure: setting.values.real(&ALPHA),
        setting: setting.clone(),
    })
}

struct AdaKv {
    scoring: Scoring,
    sure: f64,
    setting: PromptSetting,
}

impl PromptCut for AdaKv {
    fn rows(&self) -> usize {
        self.scoring.window
    }

    fn look(&self, rows: &PromptRows) -> Look {
        self.scoring.look(rows)
    }

    fn keep(&self, looks: &[Look]) -> Vec<Option<Vec<usize>>> {
        let counts = of_prefix(looks, &self.setting.budgets, self.scoring.window);
        shared_in_layers(looks, &self.setting.layers, &counts, self.sure)
    }
}
