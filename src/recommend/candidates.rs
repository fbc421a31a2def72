//! What is tried: every policy at several windows and sinks, and more of them where the best is at the edge.

use crate::policy::entry::PolicyEntry;
use crate::policy::parameter::{Parameter, RECENT_WINDOW, SINKS, Value, Values};
use crate::policy::share::Share;
use crate::policy::spec::PolicySpec;
use crate::policy::table::POLICIES;

/// A policy with values for all its parameters.
#[derive(Clone)]
pub struct Candidate {
    /// Its line in the table.
    pub entry: &'static PolicyEntry,
    /// One value for each of its parameters.
    pub values: Values,
}

/// Windows that are tried first: shares of the budget, and numbers that people type.
const WINDOWS: [&str; 8] = ["12.5%", "25%", "50%", "75%", "16", "32", "64", "128"];

/// Sinks that are tried first.
const SINK_COUNTS: [usize; 2] = [0, 4];

/// Windows that are tried where the least, or the largest, of the others was best.
const SMALLER: [&str; 4] = ["6.25%", "3.125%", "4", "0"];
const LARGER: [&str; 3] = ["87.5%", "93.75%", "97%"];

/// The policies that are compared where none are named: all that have a budget, are no bounds and get by with rows.
pub fn every_policy() -> Vec<PolicySpec> {
    POLICIES
        .iter()
        .filter(|entry| entry.budgeted && !entry.is_bound() && !entry.needs_more_than_rows())
        .map(PolicySpec::plain)
        .collect()
}

/// What is tried first of each of these policies. Values that were written with a policy stay.
pub(super) fn first(policies: &[PolicySpec]) -> Vec<Vec<Candidate>> {
    let windows = WINDOWS.iter().filter_map(|text| RECENT_WINDOW.parse(text).ok()).collect();
    let sinks = SINK_COUNTS.iter().map(|count| Value::Count(*count)).collect();
    let asked = [(&RECENT_WINDOW, windows), (&SINKS, sinks)];
    let of_policy = |spec: &PolicySpec| {
        let entry = spec.entry;
        spec.combinations(&asked).into_iter().map(|values| Candidate { entry, values }).collect()
    };
    policies.iter().map(of_policy).collect()
}

/// The same with windows in shares of the budget alone, where many budgets are looked at.
pub(super) fn shares(policies: &[PolicySpec]) -> Vec<Vec<Candidate>> {
    let is_count = |candidate: &Candidate| matches!(candidate.values.get(&RECENT_WINDOW), Some(Value::Count(_)));
    let mut all = first(policies);
    for candidates in &mut all {
        if !candidates.iter().all(is_count) {
            candidates.retain(|candidate| !is_count(candidate));
        }
    }
    all
}

impl Candidate {
    /// A policy with the values that were written with it, the first of each, and defaults elsewhere.
    pub fn of(spec: &PolicySpec) -> Candidate {
        let values = spec.combinations(&[]).into_iter().next();
        Candidate { entry: spec.entry, values: values.unwrap_or_else(|| spec.entry.defaults()) }
    }

    /// As `--policy` takes it.
    pub fn spelled(&self) -> String {
        let values: Vec<String> = self.said().map(|(name, value)| format!("{name}={value}")).collect();
        match values.is_empty() {
            true => self.entry.name.to_owned(),
            false => format!("{}:{}", self.entry.name, values.join(",")),
        }
    }

    /// Its window, sinks and whatever is not as it is by default, in few words.
    pub fn setting(&self) -> String {
        let word = |(name, value): (&'static str, Value)| match name {
            "recent-window" => format!("window {value}"),
            _ => format!("{name} {value}"),
        };
        self.said().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The same in a column of a table: its window, sinks as `s4`, other values by name.
    pub(super) fn in_short(&self) -> String {
        let word = |(name, value): (&'static str, Value)| match name {
            "recent-window" => value.to_string(),
            "sinks" => format!("s{value}"),
            _ => format!("{name} {value}"),
        };
        self.said().map(word).collect::<Vec<_>>().join(" ")
    }

    /// What is worth saying of its values.
    fn said(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let is_tried = |name: &str| [RECENT_WINDOW.name, SINKS.name].contains(&name);
        let is_default = |(name, value): &(&'static str, Value)| {
            self.entry.parameters.iter().any(|(own, default)| own.name == *name && default == value)
        };
        self.values.iter().filter(move |said| is_tried(said.0) || !is_default(said))
    }

    /// A parameter as a number at a budget; `None` where the policy has none.
    pub(super) fn count(&self, parameter: &Parameter, budget: usize) -> Option<usize> {
        match self.values.get(parameter)? {
            Value::Count(count) => Some(count),
            Value::Share(share) => Some(share.floor_of(budget)),
            Value::Real(_) | Value::Word(_) => None,
        }
    }

    fn with(&self, parameter: &Parameter, value: Value) -> Candidate {
        let mut candidate = self.clone();
        candidate.values.set(parameter, value);
        candidate
    }
}

/// What to try besides `tried`, all of one policy, where `best` of them has the least or the largest value of a
/// parameter that was varied. Nothing where it lies between others, or no value is left beyond.
pub(super) fn beyond(tried: &[&Candidate], best: &Candidate, budget: usize) -> Vec<Candidate> {
    let mut more = Vec::new();
    for parameter in [&RECENT_WINDOW, &SINKS] {
        let mut counts: Vec<usize> = tried.iter().filter_map(|candidate| candidate.count(parameter, budget)).collect();
        counts.sort_unstable();
        counts.dedup();
        let (Some(own), [least, .., largest]) = (best.count(parameter, budget), &counts[..]) else { continue };
        let values = if own == *least {
            smaller(parameter, own, budget)
        } else if own == *largest {
            larger(parameter, own, budget)
        } else {
            None
        };
        more.extend(values.map(|value| best.with(parameter, value)));
    }
    more
}

fn smaller(parameter: &Parameter, than: usize, budget: usize) -> Option<Value> {
    if parameter.name == SINKS.name {
        return None;
    }
    windows(&SMALLER, budget).find(|(count, _)| *count < than).map(|(_, value)| value)
}

/// The next larger value that leaves room to choose.
fn larger(parameter: &Parameter, than: usize, budget: usize) -> Option<Value> {
    if parameter.name == SINKS.name {
        return Some(2 * than).filter(|more| *more > 0 && more * 4 <= budget).map(Value::Count);
    }
    windows(&LARGER, budget).find(|(count, _)| *count > than && *count < budget).map(|(_, value)| value)
}

/// Windows with their counts at a budget.
fn windows(texts: &'static [&'static str], budget: usize) -> impl Iterator<Item = (usize, Value)> {
    texts.iter().filter_map(move |text| match Share::parse(text) {
        Ok(share) => Some((share.floor_of(budget), Value::Share(share))),
        Err(_) => text.parse().ok().map(|count| (count, Value::Count(count))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(candidates: &[Candidate]) -> Vec<String> {
        candidates.iter().map(Candidate::spelled).collect()
    }

    fn of(list: &str) -> Vec<Candidate> {
        first(&PolicySpec::parse_list(list).expect("known")).concat()
    }

    #[test]
    fn windows_and_sinks_are_tried_where_a_policy_has_them() {
        assert_eq!(spelled(&of("tova,streaming-llm")), ["tova", "streaming-llm:sinks=0", "streaming-llm:sinks=4"]);
        assert_eq!(of("h2o").len(), 8);
        assert_eq!(spelled(&of("h2o:recent-window=7")), ["h2o:recent-window=7"]);
        assert_eq!(of("h2o")[2].setting(), "window 50%");
    }

    #[test]
    fn the_edge_of_what_was_tried_is_moved_on_and_the_middle_is_not() {
        let tried = of("h2o");
        let tried: Vec<&Candidate> = tried.iter().collect();
        let after = |best: usize| spelled(&beyond(&tried, tried[best], 1024));
        assert_eq!(after(2), [""; 0], "half of it lies between others");
        assert_eq!(after(4), ["h2o:recent-window=4"], "16 of 1024 is the least, and less than 3.125 %");
        assert_eq!(after(3), ["h2o:recent-window=87.5%"]);
        let sinks = of("streaming-llm");
        let sinks: Vec<&Candidate> = sinks.iter().collect();
        assert_eq!(spelled(&beyond(&sinks, sinks[1], 64)), ["streaming-llm:sinks=8"]);
        assert_eq!(spelled(&beyond(&sinks, sinks[0], 64)), [""; 0], "fewer than none there are not");
    }

    #[test]
    fn every_policy_is_one_with_a_budget_and_no_bound() {
        let names: Vec<&str> = every_policy().iter().map(|spec| spec.entry.name).collect();
        assert!(names.contains(&"tova") && !names.contains(&"full") && !names.contains(&"oracle"), "{names:?}");
    }
}
