//! A lane as it is asked for: a policy with concrete parameters, budget and keeping.

use super::caches::{CachePlan, sets_of};
use super::playback::Playback;
use crate::budgets::{CacheBudget, CacheBudgets, LayerPlace};
use crate::keeping::{Combine, Keeping, PromptMode, Scope};
use crate::needs::Needs;
use crate::policy::entry::{Make, PolicyEntry, Setting};
use crate::policy::future::Departures;
use crate::policy::parameter::{OBS_WINDOW, RECENT_WINDOW, SINKS, Value, Values};
use crate::policy::played::PLAYED;
use crate::policy::rounding::Rounding;
use std::borrow::Cow;

/// A policy with concrete parameters and budget, to be run on every cache.
#[derive(Clone)]
pub struct LanePlan {
    /// The policy's line in the table.
    pub entry: &'static PolicyEntry,
    /// Most positions held between steps; `None` for a policy that has no budget.
    pub budget: Option<usize>,
    /// One value for each parameter of the policy.
    pub values: Values,
    /// How its caches are kept.
    pub keeping: Keeping,
    /// What the policy's scores are rounded to after every row; `None`: they stay as kvsim holds them.
    pub rounding: Option<Rounding>,
    /// For what replays [decisions made elsewhere](crate::policy::played): the decisions.
    pub playback: Option<Playback>,
}

impl LanePlan {
    /// A lane with default parameters, kept as is done where nothing is said.
    pub fn new(entry: &'static PolicyEntry, budget: usize) -> LanePlan {
        let budget = entry.budgeted.then_some(budget);
        LanePlan {
            entry,
            budget,
            values: entry.defaults(),
            keeping: entry.default_keeping(),
            rounding: None,
            playback: None,
        }
    }

    /// A lane that replays decisions which were made elsewhere.
    pub fn played(playback: Playback) -> LanePlan {
        let lane = LanePlan::new(&PLAYED, 0);
        LanePlan { keeping: Keeping { scope: playback.scope(), ..lane.keeping }, playback: Some(playback), ..lane }
    }

    /// The lane kept in this way, as far as that makes a difference to its policy.
    pub fn kept(self, keeping: Keeping) -> LanePlan {
        LanePlan { keeping: self.entry.keeping(keeping), ..self }
    }

    /// The setting for a cache that stands at `place`, before budgets are dealt out.
    pub fn setting(&self, place: LayerPlace) -> Setting {
        self.setting_at(self.budget.unwrap_or(usize::MAX), place)
    }

    /// The setting of a cache with this budget.
    pub(super) fn setting_with(&self, cache: &CachePlan, budget: usize) -> Setting {
        self.setting_at(budget, cache.place)
    }

    /// When each position of a cache goes, where decisions are replayed.
    pub(super) fn departures(&self, cache: &CachePlan) -> Option<&Departures> {
        self.playback.as_ref()?.of(&cache.label)
    }

    fn setting_at(&self, budget: usize, place: LayerPlace) -> Setting {
        Setting { budget, values: self.values.at_budget(budget), place, prompt_len: self.keeping.prompt.len }
    }

    /// The kept sets that the lane has on these caches: one for each of them, or for each layer.
    pub fn sets_on<'a>(&self, caches: &'a [CachePlan]) -> Cow<'a, [CachePlan]> {
        sets_of(caches, self.keeping.scope)
    }

    /// The budget of each [kept set](LanePlan::sets_on) on these caches, `usize::MAX` where there is none. A
    /// policy that deals its budget out by itself takes the place of `budgets`.
    ///
    /// # Errors
    /// As [`LanePlan::check`], or when the shape does not cover a cache, the policy refuses the budget
    /// there, or the policy and the shape both deal out the budget.
    pub fn budgets_on(&self, caches: &[CachePlan], budgets: &CacheBudgets) -> Result<Vec<CacheBudget>, String> {
        self.check()?;
        self.playback.as_ref().map_or(Ok(()), |playback| playback.check(caches))?;
        let own = self.entry.deals.map(|deals| deals(&self.values));
        if own.is_some() && !budgets.is_uniform() {
            return Err("it deals the budget out to layers by its own rule: leave the layer budget uniform".to_owned());
        }
        let sets = self.sets_on(caches);
        let dealt = self.deal(&sets, own.as_ref().unwrap_or(budgets))?;
        let mut checked = None;
        for (cache, CacheBudget { budget, .. }) in sets.iter().zip(&dealt) {
            // The caches of a layer stand together, and most have the same budget.
            if checked.replace((cache.place, *budget)) != Some((cache.place, *budget)) {
                let refused = self.check_setting(&self.setting_with(cache, *budget));
                refused.map_err(|problem| format!("layer {}: {problem}", cache.label.layer))?;
            }
        }
        Ok(dealt)
    }

    fn deal(&self, caches: &[CachePlan], budgets: &CacheBudgets) -> Result<Vec<CacheBudget>, String> {
        let (Some(average), Some(first)) = (self.budget, caches.first()) else {
            return Ok(vec![CacheBudget { budget: usize::MAX, raised: false }; caches.len()]);
        };
        let floor = self.entry.least_budget(&self.values);
        let dealt = budgets.deal(first.place.count, average)?;
        caches.iter().map(|cache| dealt.of(&cache.label, cache.place, floor)).collect()
    }

    /// Says what is impossible about the lane.
    ///
    /// # Errors
    /// When the budget is 0, the policy refuses the setting, or cannot be kept so.
    pub fn check(&self) -> Result<(), String> {
        if self.budget == Some(0) {
            return Err("budget 0 keeps nothing: at least 1 is needed".to_owned());
        }
        self.check_setting(&self.setting(LayerPlace::ONLY))?;
        self.check_keeping()?;
        self.rounding.map_or(Ok(()), |to| self.check_rounding(to))
    }

    /// Refuses rounding where there is nothing to round.
    fn check_rounding(&self, to: Rounding) -> Result<(), String> {
        let rounded = match self.entry.make {
            Make::Policy(make) => make(&self.setting(LayerPlace::ONLY)).round_scores(to),
            _ => false,
        };
        let problem = || "it holds no scores that rounding could change: leave out --round-scores".to_owned();
        rounded.then_some(()).ok_or_else(problem)
    }

    fn check_setting(&self, setting: &Setting) -> Result<(), String> {
        self.entry.check_setting(setting)?;
        check_blocks(self.keeping.page, self.entry, setting)
    }

    fn check_keeping(&self) -> Result<(), String> {
        let Keeping { combine, evict_every, page, prompt, .. } = self.keeping;
        let plans_ahead = matches!(self.entry.make, Make::Future { .. });
        let later = evict_every > 1 || page > 1 || prompt.chunk.is_some();
        let shares = self.values.iter().any(|(_, value)| matches!(value, Value::Share(_)));
        match () {
            () if self.budget.is_none() && shares => {
                Err("it has no budget that anything could be a share of: write a count".to_owned())
            }
            () if evict_every == 0 || page == 0 || prompt.chunk == Some(0) => {
                Err("cuts every 0 positions, blocks and chunks of 0 positions do not exist: write 1".to_owned())
            }
            () if combine == Combine::Each && !self.entry.adds => {
                Err("combine each shows heads one by one, which means nothing to a policy that does not add or vote: \
                     write mean, max or sum"
                    .to_owned())
            }
            () if self.entry.needs.has_any(Needs::OF_TRACES) && self.keeping.scope == Scope::Layer => {
                Err("it looks at keys or values, of which a layer has several at a position: leave --scope head"
                    .to_owned())
            }
            () if page > 1 && !self.entry.ranked && !plans_ahead => {
                Err("it does not rank its slots, so that no block can be chosen: leave --page out".to_owned())
            }
            () if plans_ahead && later => {
                Err("it plans the eviction of one position a step: cuts of several at once (--evict-every, --page, \
                     --prompt-chunk) are another problem"
                    .to_owned())
            }
            () if prompt.mode != PromptMode::Stream && prompt.len == 0 => Err(format!(
                "prompt {} needs the number of positions of the prompt (--prompt-len)",
                prompt_word(prompt.mode)
            )),
            () if self.entry.own.cuts.is_some() && (prompt.mode == PromptMode::Once || prompt.chunk.is_some()) => {
                Err("it never cuts within a prompt or at its end: --prompt stream or block is possible".to_owned())
            }
            () => Ok(()),
        }
    }
}

fn prompt_word(mode: PromptMode) -> &'static str {
    crate::word::Word::word(mode)
}

/// Refuses blocks that do not make up the budget, or of which none could ever go.
fn check_blocks(page: usize, entry: &PolicyEntry, Setting { budget, values, .. }: &Setting) -> Result<(), String> {
    if page <= 1 || !entry.budgeted {
        return Ok(());
    }
    let (below, above) = (budget / page * page, (budget / page).saturating_add(1).saturating_mul(page));
    if budget % page != 0 {
        let nearest = if below == 0 { above.to_string() } else { format!("{below} and {above}") };
        return Err(format!("budget {budget} is not a whole number of blocks of {page}: the nearest is {nearest}"));
    }
    let count = |parameter| if entry.takes(parameter) { values.count(parameter) } else { 0 };
    // Where there is no other window, the rows that are observed are it.
    let window = if entry.takes(&RECENT_WINDOW) { &RECENT_WINDOW } else { &OBS_WINDOW };
    let (sinks, window) = (count(&SINKS).div_ceil(page), count(window).saturating_sub(1).div_ceil(page));
    if budget / page > sinks + window {
        return Ok(());
    }
    Err(format!(
        "blocks of {page} leave nothing to evict at budget {budget}: of its {} blocks, sinks cover {sinks} and the \
         recent window {window}",
        budget / page
    ))
}

impl PartialEq for LanePlan {
    fn eq(&self, other: &LanePlan) -> bool {
        self.entry.name == other.entry.name
            && self.budget == other.budget
            && self.values == other.values
            && self.keeping == other.keeping
            && self.rounding == other.rounding
            && self.playback == other.playback
    }
}
