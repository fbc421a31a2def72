//! A policy whose scores another one weighs: it observes and keeps state as ever, and its score is the number that it
//! would rank by.

use super::entry::{Make, Setting};
use super::parameter::{HOST, OBS_WINDOW, POOL_KERNEL, RECENT_WINDOW, SCORE, Value};
use super::{Admission, Observation, Overflow, Policy, h2o, scissorhands, snapkv, tova};
use crate::position::{Position, Slot};

/// The host of a policy, and the newest slots that it protects.
pub(super) struct Host {
    policy: Box<dyn Policy>,
    pub recent_window: usize,
    ranks: Vec<Option<f64>>,
    scores: Vec<f64>,
}

impl Host {
    /// The host that a setting names, with its parameters as they are by default.
    pub(super) fn of(setting: &Setting) -> Host {
        let (entry, recent_window) = match setting.values.word(&HOST) {
            "scissorhands" => (&scissorhands::ENTRY, setting.values.count(&RECENT_WINDOW)),
            "tova" => (&tova::ENTRY, 0),
            "snapkv" => (&snapkv::ENTRY, setting.values.count(&RECENT_WINDOW)),
            _ => (&h2o::ENTRY, setting.values.count(&RECENT_WINDOW)),
        };
        // All its slots are to have scores, also those that it protects.
        let mut values = setting.values.clone();
        values.set(&RECENT_WINDOW, Value::Count(0));
        values.set(&OBS_WINDOW, Value::Count(16));
        values.set(&POOL_KERNEL, Value::Count(7));
        values.set(&SCORE, Value::Word("sum"));
        let Make::Policy(make) = entry.make else { unreachable!("hosts manage one cache") };
        let policy = make(&Setting { values, ..setting.clone() });
        Host { policy, recent_window, ranks: Vec::new(), scores: Vec::new() }
    }

    /// The score of each slot; infinite where it has not been observed.
    pub(super) fn scores(&mut self, kept: &[Position]) -> &[f64] {
        self.ranks.clear();
        self.policy.rank(kept, &mut self.ranks);
        self.scores.clear();
        self.scores.extend(self.ranks.iter().map(|rank| rank.unwrap_or(f64::INFINITY)));
        &self.scores
    }
}

/// What a policy makes of the scores of its host.
pub(super) trait HostedRule: Send {
    /// Appends the slots that must go, as [`Policy::choose`] does.
    fn choose(&mut self, host: &mut Host, overflow: Overflow<'_>, victims: &mut Vec<Slot>);
}

/// The policy of a rule on the host that a setting names.
pub(super) fn hosted<R: HostedRule + 'static>(setting: &Setting, rule: R) -> Box<dyn Policy> {
    Box::new(Hosted { host: Host::of(setting), rule })
}

/// The host observes and keeps state as ever; the rule chooses.
struct Hosted<R> {
    host: Host,
    rule: R,
}

impl<R: HostedRule> Policy for Hosted<R> {
    fn admit(&mut self, admission: Admission<'_>) {
        self.host.policy.admit(admission);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.host.policy.observe(seen);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        self.rule.choose(&mut self.host, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.host.policy.forget(slots);
    }

    fn slots(&self) -> Option<usize> {
        self.host.policy.slots()
    }

    fn slot_bytes(&self) -> usize {
        self.host.policy.slot_bytes()
    }
}
