//! A chosen policy, with the values that are asked of it alone.

use super::lanes::Asked;
use super::list;
use crate::error::{Error, Result};
use crate::policy::parameter::Parameter;
use crate::policy::table::{POLICIES, PolicyEntry, find};
use std::fmt;

/// A policy, and values for parameters of its own.
#[derive(Clone)]
pub struct PolicyChoice {
    /// The policy's line in the table.
    pub entry: &'static PolicyEntry,
    /// Values for it alone, which take the place of those for every policy.
    pub values: Asked,
}

impl From<&'static PolicyEntry> for PolicyChoice {
    fn from(entry: &'static PolicyEntry) -> PolicyChoice {
        PolicyChoice { entry, values: Asked::new() }
    }
}

impl PolicyChoice {
    /// Reads a list of policies, with or without values of their own: `h2o,tova`,
    /// `decay:gamma=0.9,signal=vote,h2o:recent-window=16..64x2`.
    ///
    /// # Errors
    /// Names the first policy that there is not, or what is wrong with a value.
    pub fn parse_list(text: &str) -> Result<Vec<PolicyChoice>> {
        let mut choices: Vec<PolicyChoice> = Vec::new();
        for part in text.split(',') {
            match (part.split_once(':'), part.split_once('='), choices.last_mut()) {
                (Some((name, value)), _, _) => {
                    let mut choice = PolicyChoice::from(policy_named(name)?);
                    choice.set(value)?;
                    choices.push(choice);
                }
                (None, Some(_), Some(choice)) => choice.set(part)?,
                _ if part.is_empty() => {
                    return Err(Error::usage(format!("policies {text:?}: there is an empty place")));
                }
                _ => choices.push(policy_named(part)?.into()),
            }
        }
        Ok(choices)
    }

    /// Reads `parameter=value`, the value being one, or a range.
    fn set(&mut self, text: &str) -> Result<()> {
        let name = self.entry.name;
        let wrong = |problem: String| Error::usage(format!("policy {name}: {problem}"));
        let (key, value) =
            text.split_once('=').ok_or_else(|| wrong(format!("{text:?} is not of the form parameter=value")))?;
        let parameter = self.parameter(key).map_err(wrong)?;
        let values = list::expand(value).and_then(|values| values.iter().map(|text| parameter.parse(text)).collect());
        let values = values.map_err(|problem: String| wrong(format!("{key}: {problem}")))?;
        if self.values.iter().any(|(named, _)| named.name == key) {
            return Err(wrong(format!("{key} is given twice")));
        }
        self.values.push((parameter, values));
        Ok(())
    }

    fn parameter(&self, key: &str) -> Result<&'static Parameter, String> {
        let own = self.entry.parameters.iter().map(|(parameter, _)| *parameter);
        own.clone().find(|parameter| parameter.name == key).ok_or_else(|| {
            let known: Vec<&str> = own.map(|parameter| parameter.name).collect();
            match known.is_empty() {
                true => format!("it has no parameter {key:?}, and no other"),
                false => format!("it has no parameter {key:?}; there are {}", known.join(", ")),
            }
        })
    }
}

impl fmt::Debug for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyChoice").field("policy", &self.entry.name).field("values", &self.values).finish()
    }
}

fn policy_named(name: &str) -> Result<&'static PolicyEntry> {
    find(name).ok_or_else(|| {
        let known: Vec<&str> = POLICIES.iter().map(|entry| entry.name).collect();
        Error::usage(format!("unknown policy {name:?}; there are {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>, String> {
        let values = |(parameter, values): &(&Parameter, Vec<_>)| format!("{}={values:?}", parameter.name);
        let words = |choice: &PolicyChoice| {
            [choice.entry.name.to_owned()]
                .into_iter()
                .chain(choice.values.iter().map(values))
                .collect::<Vec<_>>()
                .join(" ")
        };
        Ok(PolicyChoice::parse_list(text).map_err(|error| error.to_string())?.iter().map(words).collect())
    }

    #[test]
    fn values_belong_to_the_policy_before_them() {
        let found = parsed("tova,decay:gamma=0.5,signal=vote,h2o:recent-window=8..16x2,full").expect("sound");
        let wanted = [
            "tova",
            "decay gamma=[Real(0.5)] signal=[Word(\"vote\")]",
            "h2o recent-window=[Count(8), Count(16)]",
            "full",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_a_policy_does_not_take_is_refused_by_name() {
        let cases = [
            ("nonsense", "unknown policy \"nonsense\"; there are full, "),
            ("h2o,", "policies \"h2o,\": there is an empty place"),
            ("tova:gamma=1", "policy tova: it has no parameter \"gamma\", and no other"),
            ("h2o:gamma=1", "policy h2o: it has no parameter \"gamma\"; there are recent-window"),
            ("h2o:recent-window", "policy h2o: \"recent-window\" is not of the form parameter=value"),
            ("h2o:recent-window=x", "policy h2o: recent-window: \"x\""),
            ("h2o:recent-window=1,recent-window=2", "policy h2o: recent-window is given twice"),
            ("recent-window=1", "unknown policy \"recent-window=1\""),
        ];
        for (text, problem) in cases {
            let found = parsed(text).expect_err(text);
            assert!(found.starts_with(problem), "{text}: {found}");
        }
    }
}
