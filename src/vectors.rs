//! The vector runner: replays the recorded decisions of a policy and reports differences.
//!
//! A vector file pins what a policy decides in a layout that ports in other languages share, so
//! that one file holds them all to the same answers. Steps drive a [`Cache`] directly: rows exclude
//! the token itself, the cache starts as `{0}`.

mod tokens;

use crate::budgets::LayerPlace;
use crate::error::{Error, Result};
use crate::policy::parameter::{PARAMETERS, SEED, SINKS, Value as ParameterValue, Values};
use crate::policy::table::{Make, POLICIES, PolicyEntry, Setting};
use crate::position::{Position, Slot};
use crate::replay::{Cache, Shown};
use crate::trace::{Head, Row, StreamLabel, problem_of};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use tokens::Behind;

/// A vector file.
#[derive(Deserialize)]
struct VectorFile {
    policy: String,
    version: u32,
    cases: Vec<Case>,
}

/// One case: a fresh policy and what is done to it.
#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    seed: Option<u32>,
    #[serde(flatten)]
    behind: Behind,
    steps: Vec<Step>,
}

/// One call, and the answer expected where there is one.
#[derive(Deserialize)]
struct Step {
    call: String,
    #[serde(default)]
    args: Vec<Value>,
    #[serde(default)]
    expect: Option<Value>,
}

/// What came out of a vector file.
#[derive(Debug)]
pub struct VectorReport {
    /// The policy that the file names.
    pub policy: String,
    /// Number of cases.
    pub cases: usize,
    /// The first difference of each failing case, as one line.
    pub failures: Vec<String>,
}

/// Runs the vector file at `path`.
///
/// # Errors
/// When the file cannot be read, is no vector file, or names an unknown policy. Cases that fail are
/// no error: they are in the report.
pub fn run_file(path: &Path) -> Result<VectorReport> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    let file: VectorFile = serde_json::from_slice(&text)
        .map_err(|error| Error::data(format!("{name}:{}", error.line()), format!("not a vector file: {error}")))?;
    if file.version != 1 {
        return Err(Error::data(name, format!("version {}, this version reads 1", file.version)));
    }
    let entry = find_policy(&file.policy).ok_or_else(|| {
        Error::data(&name, format!("unknown policy {:?} (`kvsim policies` lists those that are known)", file.policy))
    })?;
    let differs = |case: &Case| Some(format!("case {:?}: {}", case.name, run_case(entry, case).err()?));
    let failures = file.cases.iter().filter_map(differs).collect();
    Ok(VectorReport { policy: entry.name.to_owned(), cases: file.cases.len(), failures })
}

/// Vector files may put a family before the policy's name: `kv-cache/h2o`.
fn find_policy(name: &str) -> Option<&'static PolicyEntry> {
    let bare = name.rsplit('/').next().unwrap_or(name);
    POLICIES.iter().find(|entry| entry.name == bare && matches!(entry.make, Make::Policy(_)))
}

fn run_case(entry: &'static PolicyEntry, case: &Case) -> Result<(), String> {
    let mut subject = Subject::new(entry, case)?;
    for (index, step) in case.steps.iter().enumerate() {
        let number = index + 1;
        if step.expect.is_none() && !["onDecodeStep", "evict"].contains(&step.call.as_str()) {
            return Err(format!("step {number}: {} asks without saying what it expects", step.call));
        }
        let answer = subject.call(step).map_err(|problem| format!("step {number}: {}: {problem}", step.call))?;
        if let Some(expected) = &step.expect
            && !same(expected, &answer)
        {
            let args = Value::from(step.args.clone());
            return Err(format!("step {number}: {}{args} is {answer}, expected {expected}", step.call));
        }
    }
    Ok(())
}

/// Numbers are equal by value, however they are spelled.
fn same(expected: &Value, answer: &Value) -> bool {
    match (expected, answer) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => expected == answer,
    }
}

/// The policy under test, in a cache of its own.
struct Subject {
    entry: &'static PolicyEntry,
    cache: Cache,
    /// Most positions that the policy itself would hold; `None` where it has no budget.
    budget: Option<usize>,
    values: Values,
}

impl Subject {
    fn new(entry: &'static PolicyEntry, case: &Case) -> Result<Subject, String> {
        let setting = setting_of(entry, case)?;
        entry.check_setting(&setting)?;
        let budget = budget_of(entry, &setting)?;
        let budget_or_none = budget.unwrap_or(0);
        let values = values_of(entry, case)?.at_budget(budget_or_none);
        let setting = Setting { budget: budget_or_none, values, ..setting };
        let Make::Policy(make) = entry.make else { return Err("vectors are for policies".to_owned()) };
        let mut cache = Cache::new(entry.name, make(&setting), setting.budget.min(1 << 16));
        cache = cache.seeing(tokens::tensors_of(entry, case)?.map(Arc::new));
        cache.admit(Position(0));
        Ok(Subject { entry, cache, budget, values: setting.values })
    }

    fn call(&mut self, step: &Step) -> Result<Value, String> {
        match step.call.as_str() {
            "onDecodeStep" => self.on_decode_step(&step.args),
            "evict" => self.evict(count(&step.args, 0)?),
            "keptCount" => Ok(json!(self.cache.kept().len())),
            "sinkCount" => Ok(json!(self.values.count(&SINKS))),
            "effectiveBudget" => Ok(json!(self.budget)),
            probe if Some(probe) == self.entry.probe => self.probe(count(&step.args, 0)?),
            _ => Err("no such call for this policy".to_owned()),
        }
    }

    fn on_decode_step(&mut self, args: &[Value]) -> Result<Value, String> {
        let position = count(args, 0)?;
        if self.cache.kept().last().is_some_and(|newest| newest.index() >= position) {
            return Err(format!("position {position} does not follow the newest"));
        }
        let weights = args.get(1).ok_or("needs a position and weights")?;
        if let Value::Array(weights) = weights {
            let weights: Vec<f32> = weights
                .iter()
                .map(|weight| weight.as_f64().map(|weight| weight as f32).ok_or("a weight is not a number"))
                .collect::<Result<_, _>>()?;
            let kept = self.cache.kept().len();
            if weights.len() != kept {
                return Err(format!("{} weights for {kept} kept positions", weights.len()));
            }
            let row = Row { step: Position(position as u32), weights: &weights };
            if let Some(column) = row.first_unsound() {
                return Err(problem_of(weights[column]));
            }
            self.cache.observe(Position(position as u32), position, Shown::row(&weights));
        } else if !weights.is_null() {
            return Err("weights must be a list or null".to_owned());
        }
        self.cache.admit(Position(position as u32));
        Ok(Value::Null)
    }

    /// A cache never holds more than its policy's own budget, whatever is asked.
    fn evict(&mut self, asked: usize) -> Result<Value, String> {
        let Some(own) = self.budget else { return Ok(json!([])) };
        let newest = self.cache.kept().last().copied().unwrap_or_default();
        let mut victims = Vec::new();
        self.cache.check_state(newest).map_err(|error| error.to_string())?;
        self.cache.shrink(asked.min(own), 1, newest, Some(&mut victims)).map_err(|error| error.to_string())?;
        Ok(victims.iter().map(|position| position.0).collect())
    }

    fn probe(&self, position: usize) -> Result<Value, String> {
        let slot = self.cache.kept().iter().position(|held| held.index() == position);
        Ok(json!(slot.and_then(|slot| self.cache.policy().probe(Slot(slot))).unwrap_or(-1.0)))
    }
}

/// Most positions that a policy would hold by itself; `None` where it has no budget.
fn budget_of(entry: &PolicyEntry, setting: &Setting) -> Result<Option<usize>, String> {
    let Setting { budget, values, place, .. } = setting;
    let label = StreamLabel { layer: place.index as u32, head: Head::Number(0) };
    let dealt = entry.deals.map(|deals| deals(values).of(&label, *place, *budget, entry.least_budget(values)));
    let budget = dealt.transpose()?.map_or(*budget, |dealt| dealt.budget);
    Ok(entry.budgeted.then_some(budget))
}

fn count(args: &[Value], index: usize) -> Result<usize, String> {
    let count = args.get(index).and_then(Value::as_u64).filter(|count| *count <= u64::from(u32::MAX));
    count.map(|count| count as usize).ok_or_else(|| format!("argument {} must be a whole number", index + 1))
}

fn setting_of(entry: &PolicyEntry, case: &Case) -> Result<Setting, String> {
    let (mut budget, mut place, mut prompt_len) = (usize::MAX, LayerPlace::ONLY, 0);
    for (key, value) in &case.params {
        match key.as_str() {
            "budget" => budget = whole(key, value)?,
            "layer" => place.index = whole(key, value)?,
            "numLayers" => place.count = whole(key, value)?,
            "promptLen" => prompt_len = whole(key, value)?,
            _ => {}
        }
    }
    if place.index >= place.count {
        return Err(format!("layer {} of {} layers", place.index, place.count));
    }
    Ok(Setting { values: values_of(entry, case)?.at_budget(budget), budget, place, prompt_len })
}

/// The values of the policy's own parameters; shares of the budget as they are.
fn values_of(entry: &PolicyEntry, case: &Case) -> Result<Values, String> {
    let mut values = entry.defaults();
    for (key, value) in &case.params {
        if !["budget", "layer", "numLayers", "promptLen"].contains(&key.as_str()) {
            set_parameter(entry, &mut values, key, value)?;
        }
    }
    if let Some(seed) = case.seed.filter(|_| entry.takes(&SEED)) {
        values.set(&SEED, ParameterValue::Count(seed as usize));
    }
    Ok(values)
}

fn set_parameter(entry: &PolicyEntry, values: &mut Values, key: &str, value: &Value) -> Result<(), String> {
    let parameter = PARAMETERS.iter().find(|parameter| parameter.vector_key == key && entry.takes(parameter));
    let parameter = parameter.ok_or_else(|| format!("{} has no parameter {key:?}", entry.name))?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values.set(parameter, parameter.parse(&text).map_err(|problem| format!("{key}: {problem}"))?);
    Ok(())
}

fn whole(key: &str, value: &Value) -> Result<usize, String> {
    value.as_u64().map(|count| count as usize).ok_or_else(|| format!("{key} is {value}, not a whole number"))
}
