//! A lane as it is asked for: a policy with concrete parameters and budget.

use super::caches::CachePlan;
use super::playback::Playback;
use crate::budgets::{CacheBudget, CacheBudgets, LayerPlace};
use crate::policy::entry::{Make, PolicyEntry, Setting};
use crate::policy::future::Departures;
use crate::policy::parameter::Values;
use crate::policy::played::PLAYED;
use crate::policy::rounding::Rounding;

/// A policy with concrete parameters and budget, to be run on every cache.
#[derive(Clone)]
pub struct LanePlan {
    /// The policy's line in the table.
    pub entry: &'static PolicyEntry,
    /// Most positions held between steps; `None` for a policy that has no budget.
    pub budget: Option<usize>,
    /// One value for each parameter of the policy.
    pub values: Values,
    /// What the policy's scores are rounded to after every row; `None`: they stay as kvsim holds them.
    pub rounding: Option<Rounding>,
    /// For what replays [decisions made elsewhere](crate::policy::played): the decisions.
    pub playback: Option<Playback>,
}

impl LanePlan {
    /// A lane with default parameters.
    pub fn new(entry: &'static PolicyEntry, budget: usize) -> LanePlan {
        let budget = entry.budgeted.then_some(budget);
        LanePlan { entry, budget, values: entry.defaults(), rounding: None, playback: None }
    }

    /// A lane that replays decisions which were made elsewhere.
    pub fn played(playback: Playback) -> LanePlan {
        LanePlan { playback: Some(playback), ..LanePlan::new(&PLAYED, 0) }
    }

    /// The setting for a cache that stands at `place`, before budgets are dealt out.
    pub fn setting(&self, place: LayerPlace) -> Setting {
        Setting { budget: self.budget.unwrap_or(usize::MAX), values: self.values.clone(), place }
    }

    /// The setting of a cache with this budget.
    pub(super) fn setting_with(&self, cache: &CachePlan, budget: usize) -> Setting {
        Setting { budget, values: self.values.clone(), place: cache.place }
    }

    /// When each position of a cache goes, where decisions are replayed.
    pub(super) fn departures(&self, cache: &CachePlan) -> Option<&Departures> {
        self.playback.as_ref()?.of(&cache.label)
    }

    /// The budget of each of these caches, `usize::MAX` where there is none. A policy that deals its budget
    /// out by itself takes the place of `budgets`.
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
        let dealt = self.deal(caches, own.as_ref().unwrap_or(budgets))?;
        let mut checked = None;
        for (cache, CacheBudget { budget, .. }) in caches.iter().zip(&dealt) {
            // The caches of a layer stand together, and most have the same budget.
            if checked.replace((cache.place, *budget)) != Some((cache.place, *budget)) {
                let refused = self.entry.check_setting(&self.setting_with(cache, *budget));
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
    /// When the budget is 0 or the policy refuses the setting.
    pub fn check(&self) -> Result<(), String> {
        if self.budget == Some(0) {
            return Err("budget 0 keeps nothing: at least 1 is needed".to_owned());
        }
        self.entry.check_setting(&self.setting(LayerPlace::ONLY))?;
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
}

impl PartialEq for LanePlan {
    fn eq(&self, other: &LanePlan) -> bool {
        let same_setting =
            self.budget == other.budget && self.values == other.values && self.rounding == other.rounding;
        self.entry.name == other.entry.name && same_setting && self.playback == other.playback
    }
}
