//! Decisions on record of policies that look at keys, values and queries: engine and reference give them.

use crate::common::files::{Folder, package};
use crate::slow::cache::{Cache, Sight, Spec};
use crate::slow::file::{Layer, Matrix};
use crate::slow::quantise::{Bits, Held};
use kvsim::vectors::run_file;
use serde_json::{Value, json};
use std::path::Path;

/// Policies with vectors of their own.
const WITH_VECTORS: [&str; 6] = ["knorm", "keydiff", "vatp", "caote", "criticalkv", "expected-attention"];

#[test]
fn the_engine_gives_every_answer_on_record() {
    for name in WITH_VECTORS {
        let report = run_file(&package("vectors").join(format!("{name}.json"))).expect("a sound vector file");
        assert!(report.failures.is_empty(), "{name}: {}", report.failures.join("\n"));
        assert!(report.cases >= 6, "{name}");
    }
}

#[test]
fn a_token_that_lacks_what_the_policy_looks_at_fails_its_case() {
    let folder = Folder::new();
    let file = |policy: &str, first: Value| {
        let steps = json!([{ "call": "onDecodeStep", "args": [1, [1], { "key": [1, 2] }] }]);
        let case = json!({ "name": "a", "params": { "budget": 2, "recentWindow": 1 }, "first": first, "steps": steps });
        let path = folder.write("vectors.json", json!({ "policy": policy, "version": 1, "cases": [case] }).to_string());
        run_file(Path::new(&path)).expect("a vector file").failures.join(" ")
    };
    assert_eq!(file("knorm", json!({ "key": [3, 4] })), "");
    for (policy, first, problem) in [
        ("knorm", json!({ "key": [1] }), "knorm needs the key of every token, all of one width"),
        ("knorm", json!({ "keys": [1, 2] }), "a token is an object of key, value and query"),
        ("knorm", Value::Null, "knorm needs every token"),
        ("caote", json!({ "key": [1, 2] }), "caote needs the value of every token"),
    ] {
        let found = file(policy, first);
        assert!(found.contains(problem), "{problem}: {found}");
    }
}

#[test]
fn the_reference_gives_every_answer_on_record() {
    for name in WITH_VECTORS {
        let text = std::fs::read(package("vectors").join(format!("{name}.json"))).expect("there are vectors");
        let file: Value = serde_json::from_slice(&text).expect("JSON");
        for case in file["cases"].as_array().expect("cases") {
            run_case(name, case);
        }
    }
}

/// One number for each of several tokens, as a matrix; `width` zeros for what they do not have.
fn matrix(tokens: &[&Value], of: impl Fn(&Value) -> &Value) -> Matrix {
    let numbers = |token: &&Value| -> Vec<f32> {
        of(token).as_array().map_or(vec![0.0], |list| list.iter().map(number).collect())
    };
    let rows: Vec<Vec<f32>> = tokens.iter().map(numbers).collect();
    Matrix::new(rows[0].len(), rows.concat())
}

fn number(value: &Value) -> f32 {
    value.as_f64().expect("a number") as f32
}

/// The tokens of a case as a layer.
fn layer_of(case: &Value) -> Layer {
    let steps = case["steps"].as_array().expect("steps").iter().filter(|step| step["call"] == "onDecodeStep");
    let tokens: Vec<&Value> = std::iter::once(&case["first"]).chain(steps.map(|step| &step["args"][2])).collect();
    let heads = tokens[0]["query"].as_array().map_or(1, Vec::len);
    let queries = (0..heads).map(|head| matrix(&tokens, |token| &token["query"][head])).collect();
    let layer = Layer::plain(queries, matrix(&tokens, |token| &token["key"]), matrix(&tokens, |token| &token["value"]));
    let rows: Option<Vec<&Value>> = case["output"].as_array().map(|rows| rows.iter().collect());
    let output = rows.map(|rows| matrix(&rows, |row| row));
    Layer { output, scale: case["scale"].as_f64().unwrap_or(1.0), ..layer }
}

fn run_case(name: &'static str, case: &Value) {
    let layer = layer_of(case);
    let (keys, values) = (Held::keys(&layer.keys, Bits::FULL), layer.values.clone());
    let mut cache = Cache::new(spec_of(name, &case["params"]));
    cache.admit(0);
    let mut t = 0;
    for step in case["steps"].as_array().expect("steps") {
        let args = step["args"].as_array().expect("arguments");
        match step["call"].as_str().expect("a call") {
            "onDecodeStep" => {
                t = args[0].as_u64().expect("a position") as usize;
                let weights: Vec<f32> = args[1].as_array().expect("weights").iter().map(number).collect();
                cache.observe(&weights);
                cache.admit(t);
            }
            "evict" => {
                let sight = Sight { layer: &layer, cache: 0, keys: &keys[0], values: &values[0], t };
                let mut gone = cache.evict(&sight);
                gone.sort_unstable();
                assert_eq!(Value::from(gone), step["expect"], "{name}: {}: row {t}", case["name"]);
            }
            _ => assert_eq!(Value::from(cache.kept.len()), step["expect"]),
        }
    }
}

fn spec_of(name: &'static str, params: &Value) -> Spec {
    let count = |key: &str, default: usize| params[key].as_u64().map_or(default, |count| count as usize);
    let known = Spec::new(name, count("budget", 0));
    let host = ["h2o", "scissorhands", "tova", "snapkv"].into_iter().find(|host| params["host"] == **host);
    let default = if name == "caote" { "tova" } else { "h2o" };
    Spec {
        host: host.unwrap_or(default),
        recent_window: count("recentWindow", 32),
        sinks: count("sinks", 4),
        query_window: count("queryWindow", 32),
        ..known
    }
}
