//! Traces made by hand, and questions about them.

use crate::common::files::Folder;
use kvsim::experiment::Work;
use kvsim::policy::spec::PolicySpec;
use kvsim::recommend::{Answer, AnswerLine, Goal, Ground, Passes, Question};
use kvsim::replay::{NoObserver, Observer};
use serde_json::{Map, Value, json};

/// Nobody is told of passes.
pub struct Silent;

impl Passes for Silent {
    fn begin(&self, _work: Work) -> Box<dyn Observer + '_> {
        Box::new(NoObserver)
    }
}

/// A trace of a stream for each layer, whose rows give half of their attention to the token itself and half to
/// the position that `wanted` names for the step.
pub fn trace(steps: usize, layers: u32, facts: Value, wanted: impl Fn(u32, usize) -> usize) -> String {
    let mut header = json!({ "kvsim": 1, "self": "included" });
    let facts: Map<String, Value> = facts.as_object().cloned().unwrap_or_default();
    header.as_object_mut().expect("an object").extend(facts);
    let mut text = format!("{header}\n");
    for layer in 0..layers {
        for step in 0..steps {
            let mut row = vec![0.0; step + 1];
            row[step] += 0.5;
            row[wanted(layer, step).min(step)] += 0.5;
            text += &format!("{}\n", json!({ "layer": layer, "head": 0, "step": step, "attn": row }));
        }
    }
    text
}

/// The ground of traces in a folder.
pub fn ground(folder: &Folder, traces: &[String]) -> Ground {
    let write = |(at, text): (usize, &String)| folder.write(&format!("{at}.jsonl"), text).into();
    Ground { traces: traces.iter().enumerate().map(write).collect(), ..Ground::default() }
}

/// The answer to a question about traces.
pub fn answer(traces: &[String], policies: &str, goal: Goal) -> Answer {
    let folder = Folder::new();
    let policies = PolicySpec::parse_list(policies).expect("known policies");
    let question = Question { ground: ground(&folder, traces), policies, goal };
    question.answer(&Silent, &mut |_| {}).expect("an answer")
}

/// The line of a policy.
pub fn line<'a>(answer: &'a Answer, policy: &str) -> &'a AnswerLine {
    answer.lines.iter().find(|line| line.candidate.entry.name == policy).expect("the policy is there")
}
