//! What a replay is asked to do: which lanes run on each cache of a trace.

use super::caches::CachePlan;
use super::layer_budgets::{LayerBudget, LayerBudgets};
use crate::policy::parameter::Values;
use crate::policy::pyramidkv::LayerPlace;
use crate::policy::table::{PolicyEntry, Setting};

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

    /// The setting for a cache that stands at `place`, before the policy's own share is taken.
    pub fn setting(&self, place: LayerPlace) -> Setting {
        Setting { budget: self.budget.unwrap_or(usize::MAX), values: self.values.clone(), place }
    }

    /// The budget of a cache before the policy's own share is taken; `None` where there is no budget.
    ///
    /// # Errors
    /// When the shape does not cover the cache's layer.
    pub fn layer_budget(&self, cache: &CachePlan, layers: &LayerBudgets) -> Result<Option<LayerBudget>, String> {
        let least = self.entry.least_budget(&self.values);
        self.budget.map(|budget| layers.of(cache, budget, least)).transpose()
    }

    /// The setting in force on a cache: the layer's budget, and the policy's own share of it.
    ///
    /// # Errors
    /// When the shape does not cover the cache's layer, or the policy refuses the budget there.
    pub fn setting_on(&self, cache: &CachePlan, layers: &LayerBudgets) -> Result<Setting, String> {
        let mut setting = self.setting(cache.place);
        if let Some(LayerBudget { budget, .. }) = self.layer_budget(cache, layers)? {
            setting.budget = budget;
            setting.budget = (self.entry.cache_budget)(&setting);
        }
        (self.entry.check)(&setting).map_err(|problem| format!("layer {}: {problem}", cache.label.layer))?;
        Ok(setting)
    }

    /// Says what is impossible about the lane on these caches.
    ///
    /// # Errors
    /// As [`LanePlan::check`] and [`LanePlan::setting_on`], or when the policy and the shape both deal
    /// out the budget.
    pub fn check_on(&self, caches: &[CachePlan], layers: &LayerBudgets) -> Result<(), String> {
        self.check()?;
        if self.entry.deals_layers() && *layers != LayerBudgets::Uniform {
            return Err("it deals the budget out to layers by its own rule: leave the layer budget uniform".to_owned());
        }
        caches.iter().try_for_each(|cache| self.setting_on(cache, layers).map(drop))
    }

    /// Says what is impossible about the lane.
    ///
    /// # Errors
    /// When the budget is 0 or the policy refuses the setting.
    pub fn check(&self) -> Result<(), String> {
        if self.budget == Some(0) {
            return Err("budget 0 keeps nothing: at least 1 is needed".to_owned());
        }
        (self.entry.check)(&self.setting(LayerPlace::ONLY))
    }
}

impl PartialEq for LanePlan {
    fn eq(&self, other: &LanePlan) -> bool {
        self.entry.name == other.entry.name && self.budget == other.budget && self.values == other.values
    }
}
