//! How an engine keeps a cache, whatever the policy: the row that the policy sees, who shares a kept set,
//! when the cut falls and in what units, and what the prompt gets.
//!
//! Each of these is a dimension of a sweep, beside policies, budgets and parameters. Plain values; knows
//! neither policies nor the replay, which give them their meaning.

use crate::position::Position;
use crate::quantise::KvBits;
use crate::word::Word;

/// The row that a policy sees where query heads share a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Combine {
    /// The mean over the heads.
    #[default]
    Mean,
    /// The largest weight of any head.
    Max,
    /// The sum over the heads.
    Sum,
    /// Every head's own row, one after the other, for policies that add.
    Each,
}

impl Word for Combine {
    const WORDS: &'static [(Combine, &'static str, &'static str)] = &[
        (Combine::Mean, "mean", "the mean over the query heads"),
        (Combine::Max, "max", "the largest weight of any head"),
        (Combine::Sum, "sum", "the sum over the heads"),
        (Combine::Each, "each", "every head's own row in turn, for policies that add or vote"),
    ];
}

/// Who shares a kept set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// The query heads of a KV head: one set for each cache.
    #[default]
    Head,
    /// All query heads of a layer: one set for all its caches.
    Layer,
}

impl Word for Scope {
    const WORDS: &'static [(Scope, &'static str, &'static str)] = &[
        (Scope::Head, "head", "one kept set for each KV head"),
        (Scope::Layer, "layer", "one kept set for all KV heads of a layer"),
    ];
}

/// What happens to the prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PromptMode {
    /// Nothing special: the budget holds from the first row.
    #[default]
    Stream,
    /// It is observed with nothing evicted and cut to the budget at its end; the budget holds from there on.
    Block,
    /// It is cut as in a block, once; every later token stays.
    Once,
}

impl Word for PromptMode {
    const WORDS: &'static [(PromptMode, &'static str, &'static str)] = &[
        (PromptMode::Stream, "stream", "the budget holds from the first row"),
        (
            PromptMode::Block,
            "block",
            "rows of the prompt are observed with nothing evicted, then the cache is cut to the budget at once, as \
             serving engines do; figures are over decode rows only",
        ),
        (PromptMode::Once, "once", "the same cut at the prompt's end, and every later token stays"),
    ];
}

/// The prompt of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PromptPlan {
    /// What happens to it.
    pub mode: PromptMode,
    /// Its positions; 0 in a stream, which has none.
    pub len: usize,
    /// Rows after which it is cut to the budget while it is read; `None`: at its end alone.
    pub chunk: Option<usize>,
}

impl PromptPlan {
    /// A prompt of `len` positions that is cut at its end; a stream where there is none.
    pub fn block(len: usize) -> PromptPlan {
        let mode = if len == 0 { PromptMode::Stream } else { PromptMode::Block };
        PromptPlan { mode, len, chunk: None }
    }

    /// A prompt of `len` positions that is cut at its end, before everything stays.
    pub fn once(len: usize) -> PromptPlan {
        PromptPlan { mode: PromptMode::Once, len, chunk: None }
    }

    /// The first position after it.
    #[inline]
    pub fn end(&self) -> Position {
        Position(self.len as u32)
    }
}

/// How a lane's caches are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// The row that the policy sees.
    pub combine: Combine,
    /// Who shares a kept set.
    pub scope: Scope,
    /// Positions by which the budget is outgrown before it is cut back to, at least 1.
    pub evict_every: usize,
    /// Positions of a block, where whole blocks go; 1 where single positions do.
    pub page: usize,
    /// What happens to the prompt.
    pub prompt: PromptPlan,
    /// In how many bits keys and values are held; `None`: as they are stored.
    pub bits: Option<KvBits>,
}

impl Keeping {
    /// The bits, where they are fewer than are stored.
    pub fn few_bits(&self) -> Option<KvBits> {
        self.bits.filter(KvBits::are_few)
    }
}

impl Default for Keeping {
    fn default() -> Self {
        Keeping {
            combine: Combine::default(),
            scope: Scope::default(),
            evict_every: 1,
            page: 1,
            prompt: PromptPlan::default(),
            bits: None,
        }
    }
}
