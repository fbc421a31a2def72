//! Policies as they are written: a name, and where need be parameters in place, as in
//! `h2o,scissorhands-paper:count=low|high,drop=1,tova`.
//!
//! Commas separate policies and parameters alike: a part with a colon begins a policy with parameters,
//! a part that only has an equals sign goes on with them, any other part is a policy by its name.
//! Several values of a parameter stand between bars and multiply, as lists of flags do.

use super::entry::PolicyEntry;
use super::parameter::{Parameter, Value, Values};
use super::table::{POLICIES, named};

/// A name with parameters, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Names of parameters, each with its values.
    pub values: Vec<(String, Vec<String>)>,
}

impl Named {
    /// Splits a list of names with parameters.
    ///
    /// # Errors
    /// Says which part makes no sense.
    pub fn split(list: &str) -> Result<Vec<Named>, String> {
        let mut all: Vec<Named> = Vec::new();
        for part in list.split(',').map(str::trim) {
            match (part.split_once(':'), part.contains('=')) {
                _ if part.is_empty() => return Err(format!("{list:?} has an empty place")),
                (Some((name, value)), _) => all.push(Named { name: name.to_owned(), values: vec![assignment(value)?] }),
                (None, false) => all.push(Named { name: part.to_owned(), values: Vec::new() }),
                (None, true) => {
                    let last = all.last_mut().filter(|last| !last.values.is_empty());
                    let last =
                        last.ok_or_else(|| format!("{part:?} follows no NAME:KEY=VALUE that it could go on with"))?;
                    last.values.push(assignment(part)?);
                }
            }
        }
        Ok(all)
    }
}

fn assignment(text: &str) -> Result<(String, Vec<String>), String> {
    let (key, values) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
    let values: Vec<String> = values.split('|').map(|value| value.trim().to_owned()).collect();
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(format!("{text:?} is not KEY=VALUE"));
    }
    Ok((key.trim().to_owned(), values))
}

/// The values of a name's parameters, which are among those of `owner`.
///
/// # Errors
/// When there is no such parameter, it is named twice, or a value is impossible.
pub fn named_values(
    named: &Named,
    owner: &str,
    parameters: &'static [(&'static Parameter, Value)],
) -> Result<Vec<(&'static Parameter, Vec<Value>)>, String> {
    let mut all: Vec<(&'static Parameter, Vec<Value>)> = Vec::new();
    for (key, texts) in &named.values {
        let plain = key.to_lowercase().replace('_', "-");
        let found = parameters.iter().find(|(parameter, _)| parameter.name == plain);
        let parameter = found.ok_or_else(|| no_such_parameter(owner, key, parameters))?.0;
        if all.iter().any(|(other, _)| other.name == parameter.name) {
            return Err(format!("{owner}: {key} is given twice"));
        }
        let values = texts.iter().map(|text| parameter.parse(text));
        let values = values.collect::<Result<_, _>>().map_err(|problem| format!("{owner}: {key}: {problem}"))?;
        all.push((parameter, values));
    }
    Ok(all)
}

fn no_such_parameter(owner: &str, key: &str, parameters: &[(&Parameter, Value)]) -> String {
    let known: Vec<&str> = parameters.iter().map(|(parameter, _)| parameter.name).collect();
    match known.is_empty() {
        true => format!("{owner} has no parameter {key:?}, nor any other"),
        false => format!("{owner} has no parameter {key:?}; it has {}", known.join(", ")),
    }
}

/// A policy, and the values that were written with it.
#[derive(Clone)]
pub struct PolicySpec {
    /// The policy.
    pub entry: &'static PolicyEntry,
    /// Values of some of its parameters.
    pub values: Vec<(&'static Parameter, Vec<Value>)>,
}

impl PolicySpec {
    /// A policy of which nothing more was said.
    pub fn plain(entry: &'static PolicyEntry) -> PolicySpec {
        PolicySpec { entry, values: Vec::new() }
    }

    /// The policies of a list.
    ///
    /// # Errors
    /// When a part of it makes no sense, or there is no such policy or parameter.
    pub fn parse_list(list: &str) -> Result<Vec<PolicySpec>, String> {
        let parse = |part: &Named| {
            let entry = named(&part.name)?;
            Ok(PolicySpec { entry, values: named_values(part, entry.name, entry.parameters)? })
        };
        Named::split(list)?.iter().map(parse).collect()
    }

    /// The policies that run where none is named: those that need nothing but the rows of one cache, kept in any
    /// way.
    pub fn defaults() -> Vec<PolicySpec> {
        POLICIES.iter().filter(|entry| entry.runs_by_default()).map(PolicySpec::plain).collect()
    }

    /// Every combination of the values written here and, for other parameters, of those in `others`
    /// that the policy takes; defaults elsewhere.
    pub fn combinations(&self, others: &[(&'static Parameter, Vec<Value>)]) -> Vec<Values> {
        let written = |parameter: &Parameter| self.values.iter().any(|(own, _)| own.name == parameter.name);
        let taken = others.iter().filter(|(other, _)| self.entry.takes(other) && !written(other));
        let mut all = vec![self.entry.defaults()];
        for (parameter, values) in self.values.iter().chain(taken) {
            let with = |(base, value): (&Values, &Value)| {
                let mut changed = base.clone();
                changed.set(parameter, *value);
                changed
            };
            all = all.iter().flat_map(|base| values.iter().map(move |value| (base, value))).map(with).collect();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parameter::RECENT_WINDOW;

    fn parsed(list: &str) -> Vec<String> {
        let show = |spec: &PolicySpec| {
            let values = spec.combinations(&[]);
            let text = |values: &Values| values.iter().map(|(_, value)| format!(" {value}")).collect::<String>();
            values.iter().map(|values| format!("{}{}", spec.entry.name, text(values))).collect::<Vec<_>>()
        };
        PolicySpec::parse_list(list).expect("a sound list").iter().flat_map(show).collect()
    }

    #[test]
    fn names_and_parameters_share_the_commas_of_a_list() {
        assert_eq!(parsed("tova,H2O"), ["tova", "h2o 32 sum"]);
        let paper = ["tova", "scissorhands-paper 400 10 1 high sequence", "h2o 32 sum"];
        assert_eq!(parsed("tova,scissorhands-paper:count=high,drop=1,h2o"), paper);
    }

    #[test]
    fn several_values_multiply_and_win_over_flags() {
        assert_eq!(parsed("h2o:recent-window=16|64"), ["h2o 16 sum", "h2o 64 sum"]);
        let flags = [(&RECENT_WINDOW, vec![Value::Count(8), Value::Count(9)])];
        let windows = |list: &str| {
            let specs = PolicySpec::parse_list(list).expect("sound");
            specs[0].combinations(&flags).iter().map(|values| values.count(&RECENT_WINDOW)).collect::<Vec<_>>()
        };
        assert_eq!(windows("h2o:recent_window=16"), [16]);
        assert_eq!(windows("h2o"), [8, 9]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_part() {
        for (list, problem) in [
            ("", "has an empty place"),
            ("h2o,,tova", "has an empty place"),
            ("h2o,recent-window=3", "\"recent-window=3\" follows no NAME:KEY=VALUE"),
            ("h2o:recent-window", "\"recent-window\" is not KEY=VALUE"),
            ("h2o:recent-window=", "is not KEY=VALUE"),
            ("h2o:recent-window=1|", "is not KEY=VALUE"),
            ("h2o:sinks=4", "h2o has no parameter \"sinks\"; it has recent-window"),
            ("tova:sinks=4", "tova has no parameter \"sinks\", nor any other"),
            ("h2o:recent-window=x", "h2o: recent-window: \"x\" is not a whole number"),
            ("h2o:recent-window=1,recent-window=2", "h2o: recent-window is given twice"),
            ("h20", "did you mean h2o?"),
        ] {
            let found = PolicySpec::parse_list(list).map(|specs| specs.len()).expect_err(list);
            assert!(found.contains(problem), "{list}: {found}");
        }
    }
}
