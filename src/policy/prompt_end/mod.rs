//! Policies that cut a prompt once, at its end, several caches together.
//!
//! Each looks at the last rows of the prompt, of every cache of the lane; then it says once what each cache
//! keeps of the prompt, and every later token stays. Nothing after the prompt is seen. The engine asks
//! before the replay and replays the answer, so that caches need not wait for each other.
//!
//! *Columns* are the positions of the prompt that a later row can still attend to: all of them, but where a
//! layer attends through a window. The last `obs-window` columns all stay; those before are the *prefix*.

pub mod ada_kv;
pub mod cake;
mod deal;
pub mod defensive_kv;
mod pool;
pub mod simlayer_kv;
pub mod snapkv_prompt;

use super::HeadRows;
use super::entry::Setting;
use super::parameter::{OBS_WINDOW, Values};
use std::collections::BTreeMap;

/// What a policy that cuts at the prompt's end is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptSetting {
    /// Most columns that each cache keeps, in the order of caches; `usize::MAX` where there is no budget.
    pub budgets: Vec<usize>,
    /// The layer of each cache.
    pub layers: Vec<u32>,
    /// One value for each parameter of the policy.
    pub values: Values,
}

/// Says what the caches of a lane keep of the prompt.
pub trait PromptCut: Send + Sync {
    /// How many of the prompt's last rows it looks at.
    fn rows(&self) -> usize;

    /// Looks at the last rows of one cache.
    fn look(&self, rows: &PromptRows) -> Look;

    /// The columns that each cache keeps, ascending; `None` where it keeps everything.
    fn keep(&self, looks: &[Look]) -> Vec<Option<Vec<usize>>>;
}

/// The last rows of a prompt, of one cache: those that hold attention.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PromptRows {
    /// Number of columns.
    pub columns: usize,
    /// The positions of columns begin here.
    pub first: usize,
    /// Number of query heads.
    pub heads: usize,
    /// The rows, in step order.
    pub rows: Vec<PromptRow>,
}

impl PromptRows {
    /// None yet, of so many columns that begin at a position.
    pub(crate) fn new(first: usize, columns: usize, heads: usize) -> PromptRows {
        PromptRows { columns, first, heads, rows: Vec::new() }
    }

    /// Adds the next row: combined, and of each head where they are needed.
    pub(crate) fn add(&mut self, weights: &[f32], heads: Option<&[f32]>) {
        self.rows.push(PromptRow { weights: weights.to_vec(), heads: heads.unwrap_or_default().to_vec() });
    }
}

/// One of the last rows of a prompt.
#[derive(Debug)]
#[non_exhaustive]
pub struct PromptRow {
    /// The weight of each column, over the query heads combined; shorter by columns that came later.
    pub weights: Vec<f32>,
    /// The same of each query head, back to back.
    pub(crate) heads: Vec<f32>,
}

impl PromptRow {
    /// The weights of each query head.
    pub fn heads(&self) -> impl Iterator<Item = &[f32]> {
        HeadRows::new(&self.heads, self.weights.len()).rows()
    }
}

/// What a policy makes of the rows of one cache.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Look {
    /// Number of columns.
    pub columns: usize,
    /// The positions of columns begin here.
    pub first: usize,
    /// Number of query heads.
    pub heads: usize,
    /// A score for each column of the prefix.
    pub scores: Vec<f64>,
    /// What is added up over the caches of a layer.
    pub sums: [f64; 2],
}

impl Look {
    fn of(rows: &PromptRows, scores: Vec<f64>, sums: [f64; 2]) -> Look {
        let PromptRows { columns, first, heads, .. } = *rows;
        Look { columns, first, heads, scores, sums }
    }
}

/// Refuses a budget that the observed rows alone would fill, and a prompt that is no longer than they are.
fn check(setting: &Setting) -> Result<(), String> {
    let (window, budget, prompt) = (setting.values.count(&OBS_WINDOW), setting.budget, setting.prompt_len);
    if budget <= window {
        return Err(format!(
            "obs-window {window} leaves nothing of the prefix at budget {budget}: it must be below the budget"
        ));
    }
    if prompt > 0 && prompt <= window {
        return Err(format!("obs-window {window} leaves no prefix of a prompt of {prompt} positions"));
    }
    Ok(())
}

/// The caches of each layer, in order of appearance.
fn by_layer(layers: &[u32]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let mut teams: Vec<Vec<usize>> = Vec::new();
    for (cache, layer) in layers.iter().enumerate() {
        let place = *places.entry(*layer).or_insert(teams.len());
        if place == teams.len() {
            teams.push(Vec::new());
        }
        teams[place].push(cache);
    }
    teams
}

/// Keeps the chosen columns of the prefix, and the window after it.
fn with_window(mut chosen: Vec<usize>, look: &Look) -> Vec<usize> {
    chosen.sort_unstable();
    chosen.extend(look.scores.len()..look.columns);
    chosen
}
