//! Which meters run: the default ones, or those that were named.

use super::{METERS, MeterEntry, MeterSetting, MeterSite, Run};
use crate::names::find_named;
use crate::policy::parameter::{Value, Values};
use crate::policy::spec::{Named, named_values};

/// A meter with concrete parameters.
#[derive(Clone, Debug)]
pub struct MeterPlan {
    /// The meter.
    pub entry: &'static MeterEntry,
    /// One value for each of its parameters.
    pub values: Values,
    /// Whether it is left out, without a word, where a trace does not hold what it needs.
    pub where_offered: bool,
}

impl MeterPlan {
    /// A meter with default parameters.
    pub fn new(entry: &'static MeterEntry) -> MeterPlan {
        MeterPlan { entry, values: entry.defaults(), where_offered: false }
    }

    /// One of all there are: those that need more than rows run where that is offered.
    fn of_all(entry: &'static MeterEntry) -> MeterPlan {
        MeterPlan { where_offered: entry.run == Run::WhereOffered, ..MeterPlan::new(entry) }
    }

    /// What the meter of a cache is made from.
    pub(crate) fn setting(&self, site: MeterSite) -> MeterSetting {
        MeterSetting { site, values: self.values.clone() }
    }
}

/// The meters that run unless others are chosen.
pub fn defaults() -> Vec<MeterPlan> {
    let run = METERS.iter().filter(|entry| entry.run != Run::WhenChosen);
    run.map(MeterPlan::of_all).collect()
}

/// The meters that always run.
pub fn least() -> Vec<MeterPlan> {
    METERS.iter().filter(|entry| entry.run == Run::Always).map(MeterPlan::new).collect()
}

/// The meters of a list such as `mass,sink_mass:sinks=8`, and those that always run; `default` stands
/// for the default ones, `all` for every one. Each meter runs once: as it was named last.
///
/// # Errors
/// Names the meter or parameter that there is not, or the value that is impossible.
pub fn chosen(list: &str) -> Result<Vec<MeterPlan>, String> {
    let mut plans = least();
    for named in Named::split(list)? {
        match named.name.as_str() {
            "default" if named.values.is_empty() => defaults().into_iter().for_each(|plan| put(&mut plans, plan)),
            "all" if named.values.is_empty() => {
                METERS.iter().for_each(|entry| put(&mut plans, MeterPlan::of_all(entry)))
            }
            _ => put(&mut plans, plan_of(&named)?),
        }
    }
    let place = |plan: &MeterPlan| METERS.iter().position(|entry| entry.name == plan.entry.name);
    plans.sort_by_key(place);
    Ok(plans)
}

fn plan_of(named: &Named) -> Result<MeterPlan, String> {
    let entry = find_named("meter", &named.name, METERS, |entry| entry.name)?;
    let mut plan = MeterPlan::new(entry);
    for (parameter, mut values) in named_values(named, entry.name, entry.parameters)? {
        let last = values.pop().expect("a parameter has a value");
        if !values.is_empty() {
            return Err(format!("{}: {}: a meter runs once: name one value", entry.name, parameter.name));
        }
        if matches!(last, Value::Share(_)) {
            let problem = "a meter has no budget that it could be a share of: name a count";
            return Err(format!("{}: {}: {problem}", entry.name, parameter.name));
        }
        plan.values.set(parameter, last);
    }
    Ok(plan)
}

fn put(plans: &mut Vec<MeterPlan>, plan: MeterPlan) {
    plans.retain(|other| other.entry.name != plan.entry.name);
    plans.push(plan);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parameter::SINKS;

    fn names(list: &str) -> String {
        let plans = chosen(list).expect("a sound list");
        plans.iter().map(|plan| plan.entry.name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn meters_run_once_each_in_the_order_of_the_list_and_some_always() {
        assert_eq!(names("sink_mass,mass"), "rows mass budget sink_mass");
        assert_eq!(names("Kept-Entropy"), "rows budget kept_entropy");
        assert_eq!(
            names("default,sink_mass"),
            "rows mass heavy pivotal peaks kept memory budget read sink_mass output_error value_mass layer_error \
             predicted_loss"
        );
        assert_eq!(names("all"), METERS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(" "));
        let default: Vec<&str> = defaults().iter().map(|plan| plan.entry.name).collect();
        assert_eq!(names("default"), default.join(" "));
    }

    #[test]
    fn a_parameter_is_written_in_place() {
        let plans = chosen("mass,sink_mass:sinks=8").expect("a sound list");
        assert_eq!(plans.last().expect("the last of the list").values.count(&SINKS), 8);
    }

    #[test]
    fn what_there_is_not_is_named() {
        for (list, problem) in [
            ("mas", "did you mean mass?"),
            ("mass,,heavy", "empty place"),
            ("mass:sinks=4", "mass has no parameter \"sinks\""),
            ("sink_mass:sinks=x", "sinks: \"x\" is not a whole number"),
            ("sink_mass:sinks=1|2", "name one value"),
            ("sink_mass:sinks=5%", "name a count"),
        ] {
            let found = chosen(list).map(|plans| plans.len()).expect_err(list);
            assert!(found.contains(problem), "{list}: {found}");
        }
    }
}
