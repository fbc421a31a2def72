//! What everything outside a policy's file knows of it: the command line, `kvsim policies`, the
//! vectors, the tests and the docs.

use super::coupled::{CoupledPolicy, CoupledSetting};
use super::future::{Evictions, Planner};
use super::parameter::{Parameter, RECENT_WINDOW, SINKS, Value, Values};
use super::{Bound, Policy};
use crate::budgets::{CacheBudgets, LayerPlace};
use crate::needs::Needs;

/// One policy or bound. Made by [`PolicyEntry::new`]; what differs from the plain is said by the
/// methods after it.
///
/// A policy from outside the crate is a value of this type too: see the crate's front page.
pub struct PolicyEntry {
    /// Name on the command line and in reports.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Authors, venue and arXiv number, where there is a paper.
    pub paper: Option<&'static str>,
    /// Its parameters, with defaults.
    pub parameters: &'static [(&'static Parameter, Value)],
    /// Whether it has a budget at all.
    pub budgeted: bool,
    /// What it needs of a step.
    pub needs: Needs,
    /// Says what is impossible about a setting beyond what the parameters say of themselves, naming the
    /// numbers.
    pub check: Option<Check>,
    /// How it deals its budget out to caches, where that is part of the policy.
    pub deals: Option<fn(&Values) -> CacheBudgets>,
    /// Name of [`Policy::probe`] in vector files.
    pub probe: Option<&'static str>,
    /// What it is, and how one is made.
    pub make: Make,
}

/// Says what is impossible about a setting.
pub type Check = fn(&Setting) -> Result<(), String>;

/// The kinds of entry, and how one is made for a cache.
#[derive(Clone, Copy)]
pub enum Make {
    /// Manages one cache.
    Policy(fn(&Setting) -> Box<dyn Policy>),
    /// Manages the caches of one head in all layers with one state, in step order.
    Coupled(fn(&CoupledSetting) -> Box<dyn CoupledPolicy>),
    /// No policy: says what could have been retained at most.
    Bound(fn(&Setting) -> Box<dyn Bound>),
    /// No policy: replays [decisions made elsewhere](super::played).
    Played,
    /// No policy: knows the rows to come, and plans ahead which positions go; the plan is replayed
    /// as the kept set of one cache.
    Future {
        /// Makes the planner.
        plan: fn(Evictions) -> Box<dyn Planner>,
        /// Bytes that it needs for a stream over so many positions at a budget.
        bytes: fn(positions: usize, budget: usize) -> u64,
    },
}

/// What a policy is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Most positions that may be held between steps; `usize::MAX` where there is no budget.
    pub budget: usize,
    /// One value for each parameter of the policy.
    pub values: Values,
    /// Where the cache stands among the layers.
    pub place: LayerPlace,
}

impl PolicyEntry {
    /// An entry with a budget and no parameters. A policy needs the weights of kept positions, other
    /// kinds what makes them what they are.
    pub const fn new(name: &'static str, summary: &'static str, make: Make) -> PolicyEntry {
        let needs = match make {
            Make::Policy(_) => Needs::KEPT_WEIGHTS,
            Make::Coupled(_) => Needs::KEPT_WEIGHTS.and(Needs::LAYERS),
            Make::Bound(_) => Needs::WHOLE_ROWS,
            Make::Future { .. } => Needs::FUTURE,
            Make::Played => Needs::NOTHING,
        };
        PolicyEntry {
            name,
            summary,
            paper: None,
            parameters: &[],
            budgeted: true,
            needs,
            check: None,
            deals: None,
            probe: None,
            make,
        }
    }

    /// Authors, venue and arXiv number of its paper.
    pub const fn paper(self, paper: &'static str) -> PolicyEntry {
        PolicyEntry { paper: Some(paper), ..self }
    }

    /// Its parameters, with defaults. What a recent window and sinks keep out of reach must be less than
    /// the budget; that is checked without a word here.
    pub const fn parameters(self, parameters: &'static [(&'static Parameter, Value)]) -> PolicyEntry {
        PolicyEntry { parameters, ..self }
    }

    /// It keeps everything.
    pub const fn without_budget(self) -> PolicyEntry {
        PolicyEntry { budgeted: false, ..self }
    }

    /// What it needs of a step, in place of what its kind needs.
    pub const fn needs(self, needs: Needs) -> PolicyEntry {
        PolicyEntry { needs, ..self }
    }

    /// What else is impossible about a setting.
    pub const fn check(self, check: Check) -> PolicyEntry {
        PolicyEntry { check: Some(check), ..self }
    }

    /// How it deals its budget out to caches.
    pub const fn deals(self, deals: fn(&Values) -> CacheBudgets) -> PolicyEntry {
        PolicyEntry { deals: Some(deals), ..self }
    }

    /// Name of [`Policy::probe`] in vector files.
    pub const fn probe(self, probe: &'static str) -> PolicyEntry {
        PolicyEntry { probe: Some(probe), ..self }
    }
}

impl PolicyEntry {
    /// The values of all parameters by default.
    pub fn defaults(&self) -> Values {
        let mut values = Values::default();
        self.parameters.iter().for_each(|(parameter, value)| values.set(parameter, *value));
        values
    }

    /// Whether this is no policy but reads whole rows or the future.
    pub fn is_bound(&self) -> bool {
        matches!(self.make, Make::Bound(_) | Make::Future { .. })
    }

    /// Whether it holds positions that can leave: a bound that picks anew for each row does not.
    pub fn holds_positions(&self) -> bool {
        !matches!(self.make, Make::Bound(_))
    }

    /// Whether one state serves several caches.
    pub fn is_coupled(&self) -> bool {
        self.needs.has(Needs::LAYERS)
    }

    /// Whether the rows of one cache, as they come, are all that it needs.
    pub fn needs_rows_only(&self) -> bool {
        !self.needs.has_any(Needs::OF_TRACES.and(Needs::FUTURE).and(Needs::LAYERS))
    }

    /// Whether the policy has this parameter.
    pub fn takes(&self, parameter: &Parameter) -> bool {
        self.parameters.iter().any(|(own, _)| own.name == parameter.name)
    }

    /// The least budget that leaves something to choose between.
    pub fn least_budget(&self, values: &Values) -> usize {
        self.reserved(values).map(|(_, count)| count).fold(1, usize::saturating_add)
    }

    /// The slots that parameters keep out of reach.
    fn reserved(&self, values: &Values) -> impl Iterator<Item = (&'static str, usize)> {
        let own = [&SINKS, &RECENT_WINDOW].into_iter().filter(|parameter| self.takes(parameter));
        own.map(|parameter| (parameter.name, values.count(parameter)))
    }

    /// Says what is impossible about a setting.
    ///
    /// # Errors
    /// When nothing is left to choose between, or the policy has its own reason.
    pub fn check_setting(&self, setting: &Setting) -> Result<(), String> {
        let reserved = || self.reserved(&setting.values);
        if self.least_budget(&setting.values) > setting.budget && reserved().next().is_some() {
            let named: Vec<String> = reserved().map(|(name, count)| format!("{name} {count}")).collect();
            let budget = setting.budget;
            return Err(format!(
                "{} leaves nothing to evict at budget {budget}: it must be below the budget",
                named.join(" + ")
            ));
        }
        self.check.map_or(Ok(()), |check| check(setting))
    }
}

/// Refuses a count that is too large.
pub(super) fn must_not_exceed(setting: &Setting, parameter: &Parameter, most: usize) -> Result<(), String> {
    let count = setting.values.count(parameter);
    if count <= most {
        Ok(())
    } else {
        Err(format!("{} {count} is too large: at most {most} is possible", parameter.name))
    }
}
