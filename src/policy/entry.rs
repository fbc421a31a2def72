//! What everything outside a policy's file knows of it: the command line, `kvsim policies`, the
//! vectors, the tests and the docs.

use super::coupled::{CoupledPolicy, CoupledSetting};
use super::future::{Evictions, Planner};
use super::parameter::{HOST, Parameter, RECENT_WINDOW, SINKS, Value, Values};
use super::prompt_end::{PromptCut, PromptSetting};
use super::selector::Selector;
use super::{Bound, Policy};
use crate::budgets::{CacheBudgets, LayerPlace};
use crate::keeping::{Combine, Keeping, PromptMode, Scope};
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
    /// Whether it adds what rows show, so that rows of single heads can count one by one.
    pub adds: bool,
    /// Whether its slots have [ranks](Policy::rank), so that whole blocks of them can go.
    pub ranked: bool,
    /// What of its keeping is part of the policy.
    pub own: OwnKeeping,
    /// The row that it sees where none is asked for.
    pub combine: Combine,
    /// Name of [`Policy::probe`] in vector files.
    pub probe: Option<&'static str>,
    /// What it is, and how one is made.
    pub make: Make,
}

/// What of a lane's keeping is part of the policy, and not to be chosen.
#[derive(Clone, Copy, Debug)]
pub struct OwnKeeping {
    /// Who shares a kept set.
    pub scope: Option<Scope>,
    /// The row that it sees.
    pub combine: Option<Combine>,
    /// What happens to the prompt.
    pub prompt: Option<PromptMode>,
    /// Its own rule of cuts.
    pub cuts: Option<fn(&Setting) -> BlockCuts>,
    /// The budget that its parameters fix, where they do.
    pub budget: Option<fn(&Values) -> Option<usize>>,
}

impl OwnKeeping {
    /// All is to be chosen.
    pub const NOTHING: OwnKeeping = OwnKeeping { scope: None, combine: None, prompt: None, cuts: None, budget: None };

    /// Whether anything is part of the policy.
    pub const fn is_any(&self) -> bool {
        self.scope.is_some() || self.combine.is_some() || self.prompt.is_some() || self.cuts.is_some()
    }
}

/// Cuts by blocks that never fall within a prompt or at its end: once a block more than `most` positions is
/// held, so many whole blocks go that `most` and what is left over of a block remain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCuts {
    /// Positions left after a cut, in whole blocks.
    pub most: usize,
    /// Positions of a block.
    pub block: usize,
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
    /// Cuts the prompts of all caches of a lane at their end, and nothing later.
    PromptEnd(fn(&PromptSetting) -> Box<dyn PromptCut>),
    /// No policy: says what could have been retained at most.
    Bound(fn(&Setting) -> Box<dyn Bound>),
    /// No policy: evicts nothing, and chooses what is read of each row of so many query heads.
    Selector(fn(&Setting, heads: usize) -> Box<dyn Selector>),
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
    /// Positions of a prompt that is cut at its end; 0 in a stream.
    pub prompt_len: usize,
}

impl PolicyEntry {
    /// An entry with a budget and no parameters. A policy needs the weights of kept positions, other
    /// kinds what makes them what they are.
    pub const fn new(name: &'static str, summary: &'static str, make: Make) -> PolicyEntry {
        let needs = match make {
            Make::Policy(_) => Needs::KEPT_WEIGHTS,
            Make::Coupled(_) => Needs::KEPT_WEIGHTS.and(Needs::LAYERS),
            Make::PromptEnd(_) => Needs::PROMPT_END.and(Needs::KEPT_WEIGHTS),
            Make::Bound(_) | Make::Selector(_) => Needs::WHOLE_ROWS,
            Make::Future { .. } => Needs::FUTURE,
            Make::Played => Needs::NOTHING,
        };
        PolicyEntry {
            name,
            summary,
            paper: None,
            parameters: &[],
            budgeted: !matches!(make, Make::Selector(_)),
            needs,
            check: None,
            deals: None,
            adds: false,
            ranked: false,
            own: OwnKeeping::NOTHING,
            combine: Combine::Mean,
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

    /// It adds what rows show: it goes by [`Observation::rows`](super::Observation::rows).
    pub const fn adds(self) -> PolicyEntry {
        PolicyEntry { adds: true, ..self }
    }

    /// Its slots have [ranks](Policy::rank).
    pub const fn ranked(self) -> PolicyEntry {
        PolicyEntry { ranked: true, ..self }
    }

    /// What of its keeping is part of the policy.
    pub const fn keeps(self, own: OwnKeeping) -> PolicyEntry {
        PolicyEntry { own, ..self }
    }

    /// The row that it sees where none is asked for.
    pub const fn combined_by(self, combine: Combine) -> PolicyEntry {
        PolicyEntry { combine, ..self }
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
        matches!(self.make, Make::Bound(_) | Make::Future { .. } | Make::Selector(_))
    }

    /// Whether this evicts nothing and chooses what is read.
    pub fn is_selector(&self) -> bool {
        matches!(self.make, Make::Selector(_))
    }

    /// Whether it holds positions that can leave: what picks anew for each row does not.
    pub fn holds_positions(&self) -> bool {
        !matches!(self.make, Make::Bound(_) | Make::Selector(_))
    }

    /// Whether one state serves several caches.
    pub fn is_coupled(&self) -> bool {
        self.needs.has(Needs::LAYERS)
    }

    /// Whether it looks at what most traces do not hold: queries, keys, values.
    pub fn needs_more_than_rows(&self) -> bool {
        self.needs.has_any(Needs::OF_TRACES)
    }

    /// Whether it runs where nothing is named: it may be kept in any way, and the rows of one cache, as they
    /// come, are all that it needs.
    pub fn runs_by_default(&self) -> bool {
        let more = Needs::OF_TRACES.and(Needs::FUTURE).and(Needs::LAYERS).and(Needs::PROMPT_END);
        !self.needs.has_any(more) && !self.own.is_any() && !self.is_selector()
    }

    /// Whether it sees the rows of a cache's heads combined, and they may be combined in this way or that.
    pub fn combines(&self) -> bool {
        matches!(self.make, Make::Policy(_) | Make::Coupled(_) | Make::PromptEnd(_))
            && self.needs.has(Needs::KEPT_WEIGHTS)
            && self.own.combine.is_none()
    }

    /// Whether it makes a difference who shares its kept set.
    pub fn scopes(&self) -> bool {
        self.budgeted && !matches!(self.make, Make::Bound(_)) && self.own.scope.is_none()
    }

    /// Whether it may be said when its cut falls.
    pub fn cut_late(&self) -> bool {
        self.budgeted && self.own.cuts.is_none()
    }

    /// Whether it may be said in what units its slots go.
    pub fn pages(&self) -> bool {
        self.cut_late() && !matches!(self.make, Make::Bound(_) | Make::PromptEnd(_))
    }

    /// How it is kept where nothing is said.
    pub fn default_keeping(&self) -> Keeping {
        self.keeping(Keeping { combine: self.combine, ..Keeping::default() })
    }

    /// A keeping without what makes no difference to it, and with what is part of it.
    pub fn keeping(&self, asked: Keeping) -> Keeping {
        let mut keeping = asked;
        if let Some(mode) = self.own.prompt {
            keeping.prompt.mode = mode;
        }
        if keeping.prompt.mode == PromptMode::Stream {
            keeping.prompt = Default::default();
        }
        if !self.pages() {
            (keeping.page, keeping.prompt.chunk) = (1, None);
        }
        if !self.cut_late() || keeping.prompt.mode == PromptMode::Once {
            keeping.evict_every = 1;
        }
        if self.is_bound() {
            keeping.bits = None;
        }
        keeping.scope = self.own.scope.unwrap_or(if self.scopes() { asked.scope } else { Scope::Head });
        keeping.combine = self.own.combine.unwrap_or(if self.combines() { asked.combine } else { Combine::Mean });
        keeping
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
        // A host without a window of its own has none.
        let windowless = values.get(&HOST) == Some(Value::Word("tova"));
        let own = [&SINKS, &RECENT_WINDOW].into_iter().filter(|parameter| self.takes(parameter));
        let own = own.filter(move |parameter| !windowless || parameter.name != RECENT_WINDOW.name);
        // A share leaves room for itself: it is resolved where the budget is known.
        own.map(|parameter| (parameter.name, values.get(parameter).map_or(0, Value::count_or_0)))
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
