//! `snapkv-prompt`: of a prompt, what its last rows attend to, with its neighbours; cut once.
//!
//! *Idea.* The end of a prompt tells what of it will be needed; pooling over neighbours keeps passages
//! whole.
//! *Paper.* Li et al.: SnapKV: LLM Knows What You are Looking for Before Generation, NeurIPS 2024,
//! arXiv 2404.14469.
//! *How this differs from the paper.* It is the published form with one set for each KV head, by the rows
//! of its query heads combined; `--kv-heads off` gives one for each query head, as published. Pooling is
//! an average, as in the authors' code (LongBench runs take `pool` max, `pool-kernel` 7). Unlike `snapkv`
//! it looks at exactly the rows of the window that stays, pools the prefix alone, so that neighbours in
//! the window lend nothing, and evicts nothing later. At a tie the higher position stays.
//! *Parameters.* `obs-window` (32), `pool` (avg), `pool-kernel` (5, odd).
//! *Cost.* The rows of the window are held while it looks; nothing afterwards.

use super::deal::{each_its_own, of_prefix};
use super::pool::Pool;
use super::{Look, PromptCut, PromptRows, check};
use crate::keeping::PromptMode;
use crate::policy::entry::{Make, OwnKeeping, PolicyEntry};
use crate::policy::parameter::{OBS_WINDOW, POOL, POOL_KERNEL, Value, Values};

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "snapkv-prompt",
    "keeps of a prompt what its last rows attend to, with its neighbours; cut once",
    Make::PromptEnd(|setting| {
        Box::new(SnapKvPrompt { scoring: Scoring::new(&setting.values), budgets: setting.budgets.clone() })
    }),
)
.paper("Li et al.: SnapKV, NeurIPS 2024, arXiv 2404.14469")
.parameters(&[(&OBS_WINDOW, Value::Count(32)), (&POOL, Value::Word("avg")), (&POOL_KERNEL, Value::Count(5))])
.keeps(OwnKeeping { prompt: Some(PromptMode::Once), ..OwnKeeping::NOTHING })
.check(check);

/// How columns of the prefix are scored: by their sum over the rows of the window, pooled.
pub(super) struct Scoring {
    pub(super) window: usize,
    pool: Pool,
    kernel: usize,
}

impl Scoring {
    pub(super) fn new(values: &Values) -> Scoring {
        let pool = Pool::from_word(values.word(&POOL));
        Scoring { window: values.count(&OBS_WINDOW), pool, kernel: values.count(&POOL_KERNEL) }
    }

    pub(super) fn look(&self, rows: &PromptRows) -> Look {
        let mut sums = vec![0.0; rows.columns.saturating_sub(self.window)];
        for row in &rows.rows {
            sums.iter_mut().zip(&row.weights).for_each(|(sum, weight)| *sum += f64::from(*weight));
        }
        Look::of(rows, self.pool.pooled(&sums, self.kernel), [0.0; 2])
    }
}

struct SnapKvPrompt {
    scoring: Scoring,
    budgets: Vec<usize>,
}

impl PromptCut for SnapKvPrompt {
    fn rows(&self) -> usize {
        self.scoring.window
    }

    fn look(&self, rows: &PromptRows) -> Look {
        self.scoring.look(rows)
    }

    fn keep(&self, looks: &[Look]) -> Vec<Option<Vec<usize>>> {
        each_its_own(looks, &of_prefix(looks, &self.budgets, self.scoring.window))
    }
}
