//! What is impossible about a sweep, each reason once, with the policies that have it.

use std::collections::BTreeMap;
use std::fmt;

/// Reasons that are told one by one; a large sweep may have thousands.
const MOST_TOLD: usize = 20;

/// Reasons why lanes cannot run.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// The policies of each reason, in the order of coming.
    reasons: Vec<(String, Vec<&'static str>)>,
    /// Where a reason stands.
    places: BTreeMap<String, usize>,
}

impl Refusals {
    /// One more lane of this policy cannot run.
    pub fn add(&mut self, policy: &'static str, reason: String) {
        let next = self.reasons.len();
        let place = *self.places.entry(reason.clone()).or_insert(next);
        if place == next {
            self.reasons.push((reason, Vec::new()));
        }
        let policies = &mut self.reasons[place].1;
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }

    /// Whether every lane can run.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// One text for each reason, led by its policies; the last says how many more there are.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let told = self.reasons.iter().take(MOST_TOLD);
        let told = told.map(|(reason, policies)| format!("{}: {reason}", policies.join(", ")));
        let more = self.reasons.len().saturating_sub(MOST_TOLD);
        told.chain((more > 0).then(|| format!("{more} more of the kind")))
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_with_every_policy_that_has_it() {
        let mut refusals = Refusals::default();
        for (policy, reason) in [("h2o", "a"), ("random", "b"), ("snapkv", "a"), ("h2o", "a")] {
            refusals.add(policy, reason.to_owned());
        }
        assert_eq!(refusals.to_string(), "h2o, snapkv: a; random: b");
    }

    #[test]
    fn thousands_of_reasons_are_counted() {
        let mut refusals = Refusals::default();
        (0..1020).for_each(|at| refusals.add("h2o", format!("reason {at}")));
        assert!(refusals.to_string().ends_with("h2o: reason 19; 1000 more of the kind"), "{refusals}");
    }
}
