//! `defensive-kv`: of a prompt, what any row of any head has needed, and nothing is judged below the mean.
//!
//! *Idea.* A mean over rows hides the row that needs a position badly: the worst case counts, and a floor
//! keeps scores that are low by accident from deciding.
//! *Paper.* Feng et al.: Taming the Fragility of KV Cache Eviction in LLM Inference, 2025, arXiv 2510.13334
//! (DefensiveKV).
//! *How this differs from the paper.* Its attention-only half: no norms of values, no cumulative first
//! stage. The floor makes every position below the mean equal, so that the tie decides among them: here the
//! higher position stays.
//! *Parameters.* `obs-window` (32), `deal` (even: each head its own; layer: as ada-kv), `alpha` (0.2, for
//! `deal` layer). Rows are pooled by an average of 5.
//! *Cost.* The rows of all heads in the window are held while it looks; nothing afterwards.

use super::deal::{each_its_own, of_prefix, shared_in_layers};
use super::pool::Pool;
use super::{Look, PromptCut, PromptRows, PromptSetting, check};
use crate::keeping::{PromptMode, Scope};
use crate::needs::Needs;
use crate::policy::entry::{Make, OwnKeeping, PolicyEntry};
use crate::policy::parameter::{ALPHA, DEAL, OBS_WINDOW, Value};

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "defensive-kv",
    "keeps of a prompt what any of its last rows needs badly; cut once",
    Make::PromptEnd(|setting| {
        Box::new(DefensiveKv { window: setting.values.count(&OBS_WINDOW), setting: setting.clone() })
    }),
)
.paper("Feng et al.: DefensiveKV, 2025, arXiv 2510.13334")
.parameters(&[(&OBS_WINDOW, Value::Count(32)), (&DEAL, Value::Word("even")), (&ALPHA, Value::Real(0.2))])
.needs(Needs::PROMPT_END.and(Needs::HEAD_ROWS))
.keeps(OwnKeeping { scope: Some(Scope::Head), prompt: Some(PromptMode::Once), ..OwnKeeping::NOTHING })
.check(check);

/// Columns that a row is pooled over.
const KERNEL: usize = 5;

struct DefensiveKv {
    window: usize,
    setting: PromptSetting,
}

/// A row pooled, with the sum that it had before.
fn pooled(prefix: &[f64]) -> Vec<f64> {
    let mut pooled = Pool::Mean.pooled(prefix, KERNEL);
    let (before, after): (f64, f64) = (prefix.iter().sum(), pooled.iter().sum());
    if after > 0.0 {
        let scale = before / after;
        pooled.iter_mut().for_each(|weight| *weight *= scale);
    }
    pooled
}

impl PromptCut for DefensiveKv {
    fn rows(&self) -> usize {
        self.window
    }

    fn look(&self, rows: &PromptRows) -> Look {
        let prefix = rows.columns.saturating_sub(self.window);
        let mut scores = vec![0.0; prefix];
        for head in rows.rows.iter().flat_map(|row| row.heads()) {
            let head: Vec<f64> = head.iter().take(prefix).map(|weight| f64::from(*weight)).collect();
            scores.iter_mut().zip(pooled(&head)).for_each(|(score, weight)| *score = f64::max(*score, weight));
        }
        let mean = scores.iter().sum::<f64>() / prefix as f64;
        scores.iter_mut().for_each(|score| *score = score.max(mean));
        let total: f64 = scores.iter().sum();
        if total > 0.0 {
            scores.iter_mut().for_each(|score| *score /= total);
        }
        Look::of(rows, scores, [0.0; 2])
    }

    fn keep(&self, looks: &[Look]) -> Vec<Option<Vec<usize>>> {
        let PromptSetting { budgets, layers, values } = &self.setting;
        let counts = of_prefix(looks, budgets, self.window);
        match values.word(&DEAL) {
            "layer" => shared_in_layers(looks, layers, &counts, values.real(&ALPHA)),
            _ => each_its_own(looks, &counts),
        }
    }
}
