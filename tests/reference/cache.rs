//! A kept set and the policy that thins it: what replay and vectors have in common.

use super::{Setting, policies};

/// What a policy is shown of one row: the kept positions, ascending, with the weight of each.
pub struct Seen {
    /// The step whose row it is.
    pub step: u32,
    /// Weights in the whole row, kept or not.
    pub row_length: usize,
    /// Kept positions, ascending.
    pub positions: Vec<u32>,
    /// The weight of each of them.
    pub weights: Vec<f32>,
}

impl Seen {
    /// One over the number of kept positions.
    pub fn share(&self) -> f64 {
        1.0 / self.positions.len() as f64
    }

    /// Each position with its weight in f64.
    pub fn pairs(&self) -> Vec<(u32, f64)> {
        self.positions.iter().zip(&self.weights).map(|(&position, &weight)| (position, f64::from(weight))).collect()
    }
}

/// A policy: state keyed by position, and a choice.
pub trait Policy {
    /// Takes note of one row.
    fn observe(&mut self, _seen: &Seen) {}

    /// A position joins the kept set.
    fn admit(&mut self, _position: u32) {}

    /// The positions to give up, in any order; called with more than `budget` positions kept.
    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32>;

    /// A position has left the kept set.
    fn forget(&mut self, _position: u32) {}

    /// The answer to a probe about a position that is held; `None` when the policy has no such
    /// probe.
    fn probe(&self, _name: &str, _position: u32) -> Option<f64> {
        None
    }

    /// The policy's own budget where it differs from that of its setting.
    fn own_budget(&self) -> Option<usize> {
        None
    }

    /// Down to how many positions the policy goes when `asked` is asked for.
    fn limit(&self, asked: usize) -> usize {
        asked
    }

    /// How many first positions are never given up, for a policy that has sinks.
    fn sink_count(&self) -> Option<usize> {
        None
    }
}

/// The kept set of one policy.
pub struct Cache {
    /// Positions held, ascending.
    pub kept: Vec<u32>,
    /// Decides which of them go.
    pub policy: Box<dyn Policy>,
}

impl Cache {
    /// An empty cache under the policy that `setting` names.
    pub fn new(setting: &Setting) -> Cache {
        Cache::with_policy(policies::build(setting))
    }

    /// An empty cache under a policy made elsewhere.
    pub fn with_policy(policy: Box<dyn Policy>) -> Cache {
        Cache { kept: Vec::new(), policy }
    }

    /// Shows the policy one weight for each kept position.
    pub fn observe(&mut self, step: usize, row_length: usize, weights: Vec<f32>) {
        assert_eq!(weights.len(), self.kept.len(), "one weight for each kept position");
        self.policy.observe(&Seen { step: step as u32, row_length, positions: self.kept.clone(), weights });
    }

    /// Adds the newest position.
    pub fn admit(&mut self, position: u32) {
        assert!(self.kept.last().is_none_or(|&last| last < position), "positions are admitted in order");
        self.kept.push(position);
        self.policy.admit(position);
    }

    /// Asks the policy to go down to `asked` positions and removes what it names; the victims,
    /// ascending.
    pub fn evict(&mut self, asked: usize) -> Vec<u32> {
        let budget = self.policy.limit(asked);
        if self.kept.len() <= budget {
            return Vec::new();
        }
        let mut victims = self.policy.choose(&self.kept, budget);
        victims.sort();
        self.remove(&victims, budget);
        victims
    }

    fn remove(&mut self, victims: &[u32], budget: usize) {
        for &victim in victims {
            let slot = self.kept.iter().position(|&position| position == victim);
            self.kept.remove(slot.expect("a policy names what it holds, once"));
            self.policy.forget(victim);
        }
        assert!(self.kept.len() <= budget, "a policy reaches the budget");
    }

    /// The answer to a probe about one position: -1 when it is not held.
    pub fn probe(&self, name: &str, position: u32) -> Option<f64> {
        match self.kept.contains(&position) {
            true => self.policy.probe(name, position),
            false => Some(-1.0),
        }
    }
}
