//! A lane as it is asked for: a policy with concrete parameters and budget.

use super::plan::CachePlan;
use crate::budgets::{CacheBudget, CacheBudgets, LayerPlace};
use crate::policy::entry::{PolicyEntry, Setting};
use crate::policy::parameter::Values;

/// A policy with concrete parameters and budget, to be run on every cache.
#[derive(Clone)]
pub struct LanePlan {
    /// The policy's line in the table.
    pub entry: &'static PolicyEntry,
    /// Most positions held between steps; `None` for a policy that has no budget.
    pub budget: Option<usize>,
    /// One value for each parameter of the policy.
    pub values: Values,
}

impl LanePlan {
    /// A lane with default parameters.
    pub fn new(entry: &'static PolicyEntry, budget: usize) -> LanePlan {
        LanePlan { entry, budget: entry.budgeted.then_some(budget), values: entry.defaults() }
    }

    /// The setting for a cache that stands at `place`, before budgets are dealt out.
    pub fn setting(&self, place: LayerPlace) -> Setting {
        Setting { budget: self.budget.unwrap_or(usize::MAX), values: self.values.clone(), place }
    }

    /// The budget of a cache; `None` where there is no budget. A policy that deals its budget out by
    /// itself takes the place of `budgets`.
    ///
    /// # Errors
    /// When the shape does not cover the cache.
    pub fn cache_budget(&self, cache: &CachePlan, budgets: &CacheBudgets) -> Result<Option<CacheBudget>, String> {
        let least = self.entry.least_budget(&self.values);
        let own = self.entry.deals.map(|deals| deals(&self.values));
        let budgets = own.as_ref().unwrap_or(budgets);
        self.budget.map(|budget| budgets.of(&cache.label, cache.place, budget, least)).transpose()
    }

    /// The setting in force on a cache.
    ///
    /// # Errors
    /// When the shape does not cover the cache, or the policy refuses the budget there.
    pub fn setting_on(&self, cache: &CachePlan, budgets: &CacheBudgets) -> Result<Setting, String> {
        let mut setting = self.setting(cache.place);
        if let Some(CacheBudget { budget, .. }) = self.cache_budget(cache, budgets)? {
            setting.budget = budget;
        }
        let checked = self.entry.check_setting(&setting);
        checked.map_err(|problem| format!("layer {}: {problem}", cache.label.layer))?;
        Ok(setting)
    }

    /// Says what is impossible about the lane on these caches.
    ///
    /// # Errors
    /// As [`LanePlan::check`] and [`LanePlan::setting_on`], or when the policy and the shape both deal
    /// out the budget.
    pub fn check_on(&self, caches: &[CachePlan], budgets: &CacheBudgets) -> Result<(), String> {
        self.check()?;
        if self.entry.deals.is_some() && !budgets.is_uniform() {
            return Err("it deals the budget out to layers by its own rule: leave the layer budget uniform".to_owned());
        }
        caches.iter().try_for_each(|cache| self.setting_on(cache, budgets).map(drop))
    }

    /// Says what is impossible about the lane.
    ///
    /// # Errors
    /// When the budget is 0 or the policy refuses the setting.
    pub fn check(&self) -> Result<(), String> {
        if self.budget == Some(0) {
            return Err("budget 0 keeps nothing: at least 1 is needed".to_owned());
        }
        self.entry.check_setting(&self.setting(LayerPlace::ONLY))
    }
}

impl PartialEq for LanePlan {
    fn eq(&self, other: &LanePlan) -> bool {
        self.entry.name == other.entry.name && self.budget == other.budget && self.values == other.values
    }
}
