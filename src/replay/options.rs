//! What a replay is told.

use crate::budgets::CacheBudgets;
use crate::meter::{self, MeterPlan};
use crate::word::Word;

/// What policies are shown of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ViewKind {
    /// The kept weights as recorded; they sum to less than one by what was lost.
    #[default]
    Raw,
    /// The kept weights divided by their sum, as a softmax over a compressed cache shows them.
    Renormalized,
}

impl Word for ViewKind {
    const WORDS: &'static [(ViewKind, &'static str, &'static str)] = &[
        (ViewKind::Raw, "raw", "the kept weights as recorded; they sum to less than one by what was lost"),
        (
            ViewKind::Renormalized,
            "renormalized",
            "the kept weights divided by their sum, as a softmax over a compressed cache shows them",
        ),
    ];
}

/// What to do with a row that holds a negative weight or no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BadRows {
    /// Stop, naming the place.
    #[default]
    Error,
    /// Treat it as a step without information, and count it.
    Skip,
}

impl Word for BadRows {
    const WORDS: &'static [(BadRows, &'static str, &'static str)] = &[
        (BadRows::Error, "error", "stop, naming the place"),
        (BadRows::Skip, "skip", "treat it as a step without information, and count it"),
    ];
}

/// How a replay is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// k of the heavy-hitter recall.
    pub heavy_hitters: usize,
    /// What policies see.
    pub view: ViewKind,
    /// Replay at most this many rows of each stream.
    pub steps: Option<usize>,
    /// What to do with rows that are no attention.
    pub bad_rows: BadRows,
    /// Number of threads; 0: those of the program, one for each core unless [`use_threads`](crate::threads::use_threads)
    /// said otherwise.
    pub threads: usize,
    /// How budgets are dealt out to caches.
    pub budgets: CacheBudgets,
    /// What is counted.
    pub meters: Vec<MeterPlan>,
    /// Outputs are measured in the rows of every so manieth position, from the first on.
    pub output_every: usize,
    /// Most bytes that planning ahead may take, for bounds that know the future.
    pub max_memory: u64,
}

/// k of the heavy-hitter recall unless said otherwise.
pub const DEFAULT_HEAVY_HITTERS: usize = 32;

/// Most bytes for planning ahead unless said otherwise: 4 GiB.
pub const DEFAULT_MAX_MEMORY: u64 = 4 << 30;

impl Default for Options {
    fn default() -> Self {
        Options {
            heavy_hitters: DEFAULT_HEAVY_HITTERS,
            view: ViewKind::default(),
            steps: None,
            bad_rows: BadRows::default(),
            threads: 0,
            budgets: CacheBudgets::uniform(),
            meters: meter::defaults(),
            output_every: 1,
            max_memory: DEFAULT_MAX_MEMORY,
        }
    }
}
