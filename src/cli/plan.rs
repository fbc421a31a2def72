//! From what was typed to a checked plan: which lanes run on a trace.

use kvsim::budgets::CacheBudgets;
use kvsim::error::Error;
use kvsim::policy::parameter::{Parameter, Value};
use kvsim::policy::spec::PolicySpec;
use kvsim::policy::table::POLICIES;
use kvsim::replay::{CachePlan, LanePlan};

/// A budget as typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budget {
    /// A number of positions.
    Count(usize),
    /// A share of the trace's positions: `digits / 10^decimals` percent.
    Percent { digits: u64, decimals: u32 },
}

impl Budget {
    /// Reads a budget: `512` or `12.5%`.
    ///
    /// # Errors
    /// Says what is wrong, and how to write it.
    pub fn parse(text: &str) -> Result<Budget, String> {
        if let Some(percent) = text.strip_suffix('%') {
            return parse_percent(percent).ok_or_else(|| format!("budget {text:?} is no percentage from 0% to 100%"));
        }
        match text.parse() {
            Ok(count) => Ok(Budget::Count(count)),
            Err(_) => Err(match text.parse::<f64>() {
                Ok(fraction) if (0.0..1.0).contains(&fraction) => {
                    let percent = format!("{:.4}", fraction * 100.0);
                    let percent = percent.trim_end_matches('0').trim_end_matches('.');
                    format!("budget {text:?} is a bare fraction: write {percent}% for a share of the positions")
                }
                _ => format!("budget {text:?} is neither a number of positions (512) nor a percentage (12.5%)"),
            }),
        }
    }

    /// The number of positions, in decimal arithmetic, rounded down, at least one of a share.
    pub fn resolve(self, positions: usize) -> usize {
        match self {
            Budget::Count(count) => count,
            Budget::Percent { digits, decimals } => {
                let whole = positions as u128 * u128::from(digits) / (100 * 10_u128.pow(decimals));
                (whole as usize).max(1)
            }
        }
    }

    /// Whether the share came to less than one position.
    pub fn was_raised(self, positions: usize) -> bool {
        match self {
            Budget::Count(_) => false,
            Budget::Percent { digits, decimals } => {
                positions as u128 * u128::from(digits) < 100 * 10_u128.pow(decimals)
            }
        }
    }
}

fn parse_percent(text: &str) -> Option<Budget> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 9 || whole.len() > 3 {
        return None;
    }
    let decimals = fraction.len() as u32;
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    (digits <= 100 * 10_u64.pow(decimals)).then_some(Budget::Percent { digits, decimals })
}

/// What was asked for, before a trace is known.
pub struct LaneRequest {
    /// Policies in the order given.
    pub policies: Vec<PolicySpec>,
    /// Budgets in the order given.
    pub budgets: Vec<Budget>,
    /// Values for the parameters that were named.
    pub values: Vec<(&'static Parameter, Vec<Value>)>,
}

/// The lanes for a trace, and what was left out or changed on the way.
#[derive(Default)]
pub struct Lanes {
    /// Possible lanes, each once, in the order given.
    pub lanes: Vec<LanePlan>,
    /// What is impossible about the others.
    pub problems: Vec<String>,
    /// What a user should know.
    pub notes: Vec<String>,
}

/// The policies named, or all that need nothing but the rows of one cache.
///
/// # Errors
/// Names the first policy or parameter that there is not.
pub fn policies_named(lists: &[String]) -> Result<Vec<PolicySpec>, Error> {
    if lists.is_empty() {
        return Ok(PolicySpec::defaults());
    }
    let specs = lists.iter().map(|list| PolicySpec::parse_list(list)).collect::<Result<Vec<_>, _>>();
    specs.map(|specs| specs.concat()).map_err(Error::Usage)
}

impl LaneRequest {
    /// Refuses a parameter that no chosen policy takes.
    ///
    /// # Errors
    /// Names the flag and the policies that take it.
    pub fn check_flags(&self) -> Result<(), Error> {
        let idle = |parameter: &Parameter| !self.policies.iter().any(|spec| spec.entry.takes(parameter));
        match self.values.iter().find(|(parameter, _)| idle(parameter)) {
            None => Ok(()),
            Some((parameter, _)) => {
                let takers: Vec<&str> =
                    POLICIES.iter().filter(|entry| entry.takes(parameter)).map(|entry| entry.name).collect();
                let name = parameter.name;
                Err(Error::usage(format!("--{name}: no chosen policy takes it; {} would", takers.join(", "))))
            }
        }
    }

    /// The lanes for the caches of a trace of `positions` positions.
    pub fn lanes(&self, positions: usize, caches: &[CachePlan], layers: &CacheBudgets) -> Lanes {
        let mut lanes = Lanes::default();
        for spec in &self.policies {
            let entry = spec.entry;
            for budget in &self.budgets {
                for values in spec.combinations(&self.values) {
                    let plan = LanePlan { budget: Some(budget.resolve(positions)), values, ..LanePlan::new(entry, 0) };
                    let plan = if entry.budgeted { plan } else { LanePlan { budget: None, ..plan } };
                    lanes.add(plan, caches, layers);
                }
            }
        }
        let raised = self.budgets.iter().filter(|budget| budget.was_raised(positions)).count();
        if raised > 0 {
            lanes.notes.push(format!("a budget of less than one of {positions} positions was raised to 1"));
        }
        lanes
    }
}

impl Lanes {
    fn add(&mut self, plan: LanePlan, caches: &[CachePlan], layers: &CacheBudgets) {
        if self.lanes.contains(&plan) {
            return;
        }
        match plan.check_on(caches, layers) {
            Ok(()) => {
                self.note_raised(&plan, caches, layers);
                self.lanes.push(plan);
            }
            Err(problem) => {
                let problem = format!("{}: {problem}", plan.entry.name);
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
    }

    /// Says where a layer's share was less than its policy needs.
    fn note_raised(&mut self, plan: &LanePlan, caches: &[CachePlan], layers: &CacheBudgets) {
        let raised = |cache: &&CachePlan| {
            let share = plan.cache_budget(cache, layers).ok().flatten();
            share.is_some_and(|share| share.raised)
        };
        let mut raised: Vec<u32> = caches.iter().filter(raised).map(|cache| cache.label.layer).collect();
        raised.dedup();
        if let (Some(budget), false) = (plan.budget, raised.is_empty()) {
            let layers = if raised.len() == 1 { "layer" } else { "layers" };
            let named = raised.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let note = format!(
                "{} at budget {budget}: the share of {layers} {named} was raised to what the policy needs, so that the \
                 total is more than budget x layers",
                plan.entry.name
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Refuses a sweep with impossible combinations, naming all of them.
    ///
    /// # Errors
    /// When there is one, unless the rest is wanted and there is a rest.
    pub fn checked(mut self, skip_invalid: bool) -> Result<Lanes, Error> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        if !skip_invalid {
            return Err(Error::usage(format!("{} (--skip-invalid runs the rest)", self.problems.join("; "))));
        }
        if self.lanes.is_empty() {
            return Err(Error::usage(format!("no lane is left to run: {}", self.problems.join("; "))));
        }
        self.notes.extend(self.problems.drain(..).map(|problem| format!("skipped {problem}")));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_exact_and_rounded_down() {
        let resolve = |text: &str, positions| Budget::parse(text).map(|budget| budget.resolve(positions));
        assert_eq!(resolve("12.5%", 4096), Ok(512));
        assert_eq!(resolve("90%", 10), Ok(9), "no binary fraction on the way");
        assert_eq!(resolve("20%", 3), Ok(1), "at least one");
        assert_eq!(resolve("100%", 77), Ok(77));
        assert_eq!(resolve("1", 77), Ok(1));
    }

    #[test]
    fn a_bare_fraction_is_refused_with_the_percentage() {
        assert!(Budget::parse("0.2").is_err_and(|problem| problem.contains("write 20% ")));
        for text in ["", "-1", "101%", "x%", "%", "1e3", "1.5"] {
            assert!(Budget::parse(text).is_err(), "{text}");
        }
    }
}
