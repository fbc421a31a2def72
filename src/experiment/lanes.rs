//! From what is asked of every trace to the lanes that run on one: each policy with each budget and
//! each combination of parameter values, once, checked before any row is read.

use super::budget::Budget;
use super::keeping::{KeepingOf, KeepingRequest};
use super::refusals::Refusals;
use crate::budgets::{CacheBudget, CacheBudgets};
use crate::error::{Error, Result};
use crate::keeping::Keeping;
use crate::policy::parameter::{Parameter, Value};
use crate::policy::rounding::Rounding;
use crate::policy::spec::PolicySpec;
use crate::policy::table::POLICIES;
use crate::replay::{CachePlan, LanePlan};
use std::collections::BTreeSet;

/// Budget where none is named.
pub const DEFAULT_BUDGET: usize = 512;

/// Values asked for, parameter by parameter; the others stay as the policy has them.
pub type Asked = Vec<(&'static Parameter, Vec<Value>)>;

/// What is asked of every trace.
#[derive(Clone, Default)]
pub struct LaneRequest {
    /// Policies in the order of reports; none: all that run by default.
    pub policies: Vec<PolicySpec>,
    /// Budgets in the order of reports; none: [`DEFAULT_BUDGET`].
    pub budgets: Vec<Budget>,
    /// Values for every policy that takes the parameter and has none of its own.
    pub values: Asked,
    /// What scores are rounded to, for every policy.
    pub rounding: Option<Rounding>,
    /// How caches are kept.
    pub keeping: KeepingRequest,
    /// Whether what is possible runs where the rest is not.
    pub skip_refused: bool,
}

/// The lanes for a trace, and what was left out or changed on the way.
#[derive(Default)]
pub struct Lanes {
    /// Possible lanes, each once, in the order asked.
    pub possible: Vec<LanePlan>,
    /// What is impossible about the others.
    pub refused: Refusals,
    /// What a user should know.
    pub notes: Vec<String>,
}

impl LaneRequest {
    /// Refuses a parameter that no chosen policy takes, and a way to keep caches that makes no difference to any.
    ///
    /// # Errors
    /// Names the parameter and the policies that take it.
    pub fn check(&self) -> Result<()> {
        let policies = self.policies();
        self.keeping.check(&policies.iter().map(|spec| spec.entry).collect::<Vec<_>>())?;
        let idle = |parameter: &Parameter| !policies.iter().any(|spec| spec.entry.takes(parameter));
        let Some((parameter, _)) = self.values.iter().find(|(parameter, _)| idle(parameter)) else { return Ok(()) };
        let takers = POLICIES.iter().filter(|entry| entry.takes(parameter)).map(|entry| entry.name);
        let (name, takers) = (parameter.name, takers.collect::<Vec<_>>().join(", "));
        Err(Error::usage(format!("--{name}: no chosen policy takes it; {takers} would")))
    }

    /// The lanes for the caches of a trace of `positions` positions, possible or not, kept in these ways.
    pub fn lanes(
        &self,
        positions: usize,
        caches: &[CachePlan],
        shape: &CacheBudgets,
        keeping: &KeepingOf<'_>,
    ) -> Lanes {
        let mut planner = Planner { caches, shape, seen: BTreeSet::new(), lanes: Lanes::default() };
        let budgets = self.budgets();
        for spec in self.policies() {
            let (entry, combinations) = (spec.entry, spec.combinations(&self.values));
            let keepings = match keeping.all_for(entry) {
                Ok(keepings) => keepings,
                Err(reason) => {
                    planner.lanes.refused.add(entry.name, reason);
                    continue;
                }
            };
            // What has no budget is the same at every one.
            let budgets = if entry.budgeted { &budgets[..] } else { &budgets[..1] };
            for budget in budgets {
                let budget = entry.budgeted.then(|| budget.resolve(positions));
                for values in &combinations {
                    // Parameters may fix it.
                    let budget = entry.own.budget.and_then(|budget| budget(values)).or(budget);
                    let lane =
                        LanePlan { budget, values: values.clone(), rounding: self.rounding, ..LanePlan::new(entry, 0) };
                    let plan = |keeping: &Keeping| LanePlan { keeping: *keeping, ..lane.clone() };
                    keepings.iter().map(plan).for_each(|plan| planner.add(plan));
                }
            }
        }
        let mut lanes = planner.lanes;
        if budgets.iter().any(|budget| budget.was_raised(positions)) {
            lanes.notes.push(format!("a budget of less than one of {positions} positions was raised to 1"));
        }
        lanes
    }

    /// The possible lanes, where nothing is refused or the rest is wanted.
    ///
    /// # Errors
    /// Names what is impossible.
    pub fn checked_lanes(
        &self,
        positions: usize,
        caches: &[CachePlan],
        shape: &CacheBudgets,
        keeping: &KeepingOf<'_>,
    ) -> Result<Lanes> {
        let mut lanes = self.lanes(positions, caches, shape, keeping);
        if lanes.refused.is_empty() {
            return Ok(lanes);
        }
        if !self.skip_refused {
            return Err(Error::usage(format!("{} (--skip-invalid runs the rest)", lanes.refused)));
        }
        if lanes.possible.is_empty() {
            return Err(Error::usage(format!("no lane is left to run: {}", lanes.refused)));
        }
        lanes.notes.extend(lanes.refused.texts().map(|refusal| format!("skipped {refusal}")));
        Ok(lanes)
    }

    fn policies(&self) -> Vec<PolicySpec> {
        if self.policies.is_empty() { PolicySpec::defaults() } else { self.policies.clone() }
    }

    fn budgets(&self) -> Vec<Budget> {
        if self.budgets.is_empty() { vec![Budget::Count(DEFAULT_BUDGET)] } else { self.budgets.clone() }
    }
}

/// Lanes on their way onto the caches of a trace.
struct Planner<'a> {
    caches: &'a [CachePlan],
    shape: &'a CacheBudgets,
    /// What has been asked for already, in words.
    seen: BTreeSet<String>,
    lanes: Lanes,
}

impl Planner<'_> {
    fn add(&mut self, plan: LanePlan) {
        if !self.seen.insert(in_words(&plan)) {
            return;
        }
        match plan.budgets_on(self.caches, self.shape) {
            Ok(budgets) => {
                self.note_raised(&plan, &budgets);
                self.lanes.possible.push(plan);
            }
            Err(reason) => self.lanes.refused.add(plan.entry.name, reason),
        }
    }

    /// Says where a layer's share was less than its policy needs.
    fn note_raised(&mut self, plan: &LanePlan, budgets: &[CacheBudget]) {
        let sets = plan.sets_on(self.caches);
        let raised = sets.iter().zip(budgets).filter(|(_, budget)| budget.raised);
        let mut raised: Vec<u32> = raised.map(|(cache, _)| cache.label.layer).collect();
        raised.dedup();
        let (Some(budget), false) = (plan.budget, raised.is_empty()) else { return };
        let layers = if raised.len() == 1 { "layer" } else { "layers" };
        let named = raised.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let note = format!(
            "{} at budget {budget}: the share of {layers} {named} was raised to what the policy needs, so that the \
             total is more than budget x layers",
            plan.entry.name
        );
        if self.seen.insert(note.clone()) {
            self.lanes.notes.push(note);
        }
    }
}

/// What tells a lane from every other.
fn in_words(plan: &LanePlan) -> String {
    let start = format!("{} {:?}", plan.entry.name, plan.budget);
    let values = plan.values.iter().fold(start, |text, (name, value)| text + " " + name + "=" + &value.to_string());
    if plan.keeping == Keeping::default() { values } else { format!("{values} {:?}", plan.keeping) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parameter::RECENT_WINDOW;
    use crate::trace::memory::MemoryTrace;
    use crate::trace::{SelfAttention, Source, TraceInfo};

    fn info() -> TraceInfo {
        MemoryTrace::new("made by a test", SelfAttention::Included).info().clone()
    }

    fn lanes(request: &LaneRequest) -> Vec<String> {
        request
            .lanes(100, &[], &CacheBudgets::uniform(), &request.keeping.of(&info()).expect("no prompt"))
            .possible
            .iter()
            .map(in_words)
            .collect()
    }

    fn request(policies: &str, budgets: &str, windows: &[usize]) -> LaneRequest {
        let windows = windows.iter().map(|window| Value::Count(*window)).collect();
        LaneRequest {
            policies: PolicySpec::parse_list(policies).expect("known"),
            budgets: Budget::parse_list(budgets).expect("sound"),
            values: vec![(&RECENT_WINDOW, windows)],
            ..LaneRequest::default()
        }
    }

    #[test]
    fn lists_multiply_and_equal_lanes_appear_once() {
        let found = lanes(&request("full,h2o,h2o,tova", "20,20%,10", &[4, 2, 4]));
        let wanted = [
            "full None",
            "h2o Some(20) recent-window=4 score=sum",
            "h2o Some(20) recent-window=2 score=sum",
            "h2o Some(10) recent-window=4 score=sum",
            "h2o Some(10) recent-window=2 score=sum",
            "tova Some(20)",
            "tova Some(10)",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn nothing_named_means_what_runs_by_default_at_the_default_budget() {
        let all = {
            let request = LaneRequest::default();
            let keeping = request.keeping.of(&info()).expect("no prompt");
            request.lanes(4096, &[], &CacheBudgets::uniform(), &keeping).possible
        };
        let default = PolicySpec::defaults();
        assert!(all.iter().map(|lane| lane.entry.name).eq(default.iter().map(|spec| spec.entry.name)));
        assert!(all.iter().all(|lane| lane.budget.is_none_or(|budget| budget == DEFAULT_BUDGET)));
    }
}
