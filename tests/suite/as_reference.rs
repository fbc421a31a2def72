//! Lanes and kinds of rows in the words of the slow reference.

use crate::reference::{SelfKind, Setting};
use kvsim::policy::parameter::{PARAMETERS, Value};
use kvsim::replay::LanePlan;
use kvsim::trace::SelfAttention;

/// The kind of rows, as the reference calls it.
pub fn kind_of(kind: SelfAttention) -> SelfKind {
    match kind {
        SelfAttention::Excluded => SelfKind::Excluded,
        SelfAttention::Included => SelfKind::Included,
    }
}

/// A lane, as the reference calls it.
pub fn setting_of(lane: &LanePlan) -> Setting {
    let mut setting = Setting::new(lane.entry.name, lane.budget.unwrap_or(usize::MAX));
    for (name, value) in lane.values.iter() {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == name).expect("a parameter");
        match value {
            Value::Count(seed) if name == "seed" => setting.seed = seed as u32,
            Value::Count(count) => setting = setting.with(parameter.vector_key, count),
            Value::Real(real) => setting = setting.with(parameter.vector_key, real),
            Value::Word(word) => setting = setting.with(parameter.vector_key, word),
            Value::Share(share) => setting = setting.with(parameter.vector_key, share.to_string()),
        }
    }
    if lane.keeping.prompt.len > 0 {
        setting = setting.with("promptLen", lane.keeping.prompt.len);
    }
    setting
}
