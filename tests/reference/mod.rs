//! A second, slow implementation of the replay, written to be obviously correct.
//!
//! It shares no code with the crate: the tests hold the crate to what this says. Everything is a
//! plain list, a map keyed by position, a full sort or a sum from left to right, so that each rule
//! can be read off the page.
//!
//! - [`cache`]: a kept set with a policy, and the calls that change it
//! - [`policies`], [`snapkv`], [`decay`], [`paper`], [`engines`], [`openvino`]: what each policy remembers and whom it
//!   evicts
//! - [`meters`]: what each meter counts
//! - [`replay`]: one stream through one setting, with everything measured
//! - [`cross_layer`]: several streams that share one importance vector
//! - [`future`]: the bounds that know the rows to come
//! - [`selectors`]: what is read of each row
//! - [`prompt_end`]: what is kept of a prompt that is cut once
//! - [`random`]: the random numbers, and the canonical trace made with them
//! - [`vectors`]: runs a file of conformance vectors

// Each test file includes this module and uses a part of it.
#![allow(dead_code, unused_imports)]

pub mod cache;
pub mod cross_layer;
pub mod decay;
pub mod engines;
pub mod future;
pub mod meters;
pub mod openvino;
pub mod outcome;
pub mod paper;
pub mod policies;
pub mod prompt_end;
pub mod random;
pub mod replay;
pub mod selectors;
pub mod snapkv;
pub mod vectors;

use std::collections::BTreeMap;

use serde_json::Value;

pub use cross_layer::replay_cross_layer;
pub use future::best_by_brute_force;
pub use outcome::{Measured, Outcome, StepOutcome};
pub use random::{decode_4096, fnv1a_of_rows};
pub use replay::replay;
pub use vectors::run_vector_file;

/// One stream: a row per step, `None` where the step has no attention.
pub type Rows = [Option<Vec<f32>>];

/// Whether a row holds the weight that a token pays to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfKind {
    /// Row `t` = 1, 2, ... has `t` weights; the cache starts as `{0}`; measure, observe, admit,
    /// evict.
    Excluded,
    /// Row `t` = 0, 1, ... has `t + 1` weights; the cache starts empty; admit, measure, observe,
    /// evict.
    Included,
}

impl SelfKind {
    /// The step whose row stands at `index` of a stream.
    pub fn step_at(self, index: usize) -> usize {
        match self {
            SelfKind::Excluded => index + 1,
            SelfKind::Included => index,
        }
    }

    /// Where the row of `step` stands in a stream.
    pub fn index_of(self, step: usize) -> usize {
        match self {
            SelfKind::Excluded => step - 1,
            SelfKind::Included => step,
        }
    }

    /// The number of weights in the row of `step`.
    pub fn row_length(self, step: usize) -> usize {
        match self {
            SelfKind::Excluded => step,
            SelfKind::Included => step + 1,
        }
    }
}

/// A policy with its parameters, spelled as in the vectors (`recentWindow`, `sinks`, ...).
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name without a prefix, such as `scissorhands`.
    pub policy: String,
    /// The most positions held between steps.
    pub budget: usize,
    /// What is absent here takes its default.
    pub params: BTreeMap<String, Value>,
    /// Seeds the generator of `random`.
    pub seed: u32,
}

impl Setting {
    /// The policy with every parameter at its default.
    pub fn new(policy: &str, budget: usize) -> Setting {
        Setting { policy: policy.to_string(), budget, params: BTreeMap::new(), seed: 1 }
    }

    /// The same setting with one parameter given.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Setting {
        self.params.insert(name.to_string(), value.into());
        self
    }

    /// A parameter that is a whole number, or a share of the budget such as `33.3%`, rounded down.
    pub fn count(&self, name: &str, default: usize) -> usize {
        match self.params.get(name) {
            None => default,
            Some(Value::String(share)) => share_of(share, self.budget),
            Some(value) => value.as_u64().unwrap_or_else(|| panic!("{name} is {value}, not a count")) as usize,
        }
    }

    /// Whether a parameter is a share of the budget.
    pub fn is_share(&self, name: &str) -> bool {
        self.params.get(name).is_some_and(Value::is_string)
    }

    /// A parameter that is any number.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        match self.params.get(name) {
            None => default,
            Some(value) => value.as_f64().unwrap_or_else(|| panic!("{name} is {value}, not a number")),
        }
    }

    /// A parameter that is a word.
    pub fn word(&self, name: &str, default: &str) -> String {
        match self.params.get(name) {
            None => default.to_string(),
            Some(value) => value.as_str().unwrap_or_else(|| panic!("{name} is {value}, not a word")).to_string(),
        }
    }
}

/// `whole` x `33.3%` in whole numbers, rounded down.
fn share_of(share: &str, whole: usize) -> usize {
    let percent = share.strip_suffix('%').expect("a share ends in %");
    let (units, decimals) = percent.split_once('.').unwrap_or((percent, ""));
    let digits: u128 = format!("{units}{decimals}").parse().expect("digits");
    (whole as u128 * digits / (100 * 10_u128.pow(decimals.len() as u32))) as usize
}
