//! Runs a file of conformance vectors: calls with expected answers.

use serde_json::Value;

use super::Setting;
use super::cache::Cache;

/// Where the policy's own answers differ from the file's, one line for each; nothing when all
/// agree.
pub fn run_vector_file(json: &Value) -> Vec<String> {
    let policy = policy_name(&json["policy"]);
    let cases = json["cases"].as_array().expect("a vector file has cases");
    cases.iter().flat_map(|case| run_case(policy, case)).collect()
}

/// `kv-cache/scissorhands` and `scissorhands` name the same policy.
fn policy_name(value: &Value) -> &str {
    let name = value.as_str().expect("a vector file names its policy");
    name.strip_prefix("kv-cache/").unwrap_or(name)
}

fn run_case(policy: &str, case: &Value) -> Vec<String> {
    let name = case["name"].as_str().expect("a case has a name");
    let setting = setting_of(policy, case);
    let mut cache = Cache::new(&setting);
    cache.admit(0);
    let mut differences = Vec::new();
    for (index, step) in case["steps"].as_array().expect("a case has steps").iter().enumerate() {
        let answer = run_step(&mut cache, &setting, step);
        if let Some(difference) = compare(&answer, step) {
            differences.push(format!("{policy}: {name}: step {index}: {difference}"));
        }
    }
    differences
}

fn setting_of(policy: &str, case: &Value) -> Setting {
    let params = case["params"].as_object().cloned().unwrap_or_default();
    Setting {
        policy: policy.to_string(),
        // `full` has no budget, so a case may leave it out.
        budget: params.get("budget").map_or(usize::MAX, |budget| budget.as_u64().expect("a count") as usize),
        params: params.into_iter().collect(),
        seed: case.get("seed").map_or(1, |seed| seed.as_u64().expect("a seed") as u32),
    }
}

fn run_step(cache: &mut Cache, setting: &Setting, step: &Value) -> Value {
    let call = step["call"].as_str().expect("a step has a call");
    let args = step["args"].as_array().expect("a step has arguments");
    let first = || args[0].as_u64().expect("the first argument is a count");
    match call {
        "onDecodeStep" => decode_step(cache, first() as u32, &args[1]),
        "evict" => Value::from(cache.evict(first() as usize)),
        "keptCount" => Value::from(cache.kept.len()),
        "sinkCount" => Value::from(cache.policy.sink_count().expect("a policy with sinks")),
        "effectiveBudget" => Value::from(cache.policy.own_budget().unwrap_or(setting.budget)),
        probe => Value::from(cache.probe(probe, first() as u32).unwrap_or_else(|| panic!("no probe {probe}"))),
    }
}

fn decode_step(cache: &mut Cache, position: u32, attention: &Value) -> Value {
    if let Some(weights) = attention.as_array() {
        let weights = weights.iter().map(|weight| weight.as_f64().expect("a weight is a number") as f32).collect();
        // A row of a trace without self attention has one weight for each earlier position.
        cache.observe(position as usize, position as usize, weights);
    }
    cache.admit(position);
    Value::Null
}

fn compare(answer: &Value, step: &Value) -> Option<String> {
    let expected = step.get("expect")?;
    (!same(answer, expected)).then(|| format!("{} answers {answer}, expected {expected}", step["call"]))
}

/// Equal, where 1 and 1.0 are the same number.
fn same(left: &Value, right: &Value) -> bool {
    match (left.as_array(), right.as_array()) {
        (Some(left), Some(right)) => left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r)),
        _ => left == right || left.as_f64().zip(right.as_f64()).is_some_and(|(left, right)| left == right),
    }
}
