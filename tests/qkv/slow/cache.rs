//! A kept set under a policy: what it remembers of rows, and whom it gives up.

use super::file::{Layer, Matrix};
use super::quantise::Held;
use super::ranks;
use std::collections::BTreeMap;

/// A policy with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub policy: &'static str,
    pub host: &'static str,
    pub budget: usize,
    pub recent_window: usize,
    pub sinks: usize,
    pub obs_window: usize,
    pub pool_kernel: usize,
    pub query_window: usize,
}

impl Spec {
    /// `h2o`, or `vatp/h2o` for a policy on a host, with defaults for the rest.
    pub fn new(name: &'static str, budget: usize) -> Spec {
        let (policy, host) = name.split_once('/').unwrap_or((name, if name == "caote" { "tova" } else { "h2o" }));
        Spec { policy, host, budget, recent_window: 32, sinks: 4, obs_window: 16, pool_kernel: 7, query_window: 32 }
    }

    /// The policy whose scores are kept: the policy itself, or its host.
    pub fn observed(&self) -> &'static str {
        match self.policy {
            "vatp" | "caote" | "criticalkv" => self.host,
            policy => policy,
        }
    }

    /// The newest positions that are out of reach.
    pub fn protected(&self) -> usize {
        match self.observed() {
            "tova" | "streaming-llm" | "sliding-window" => 0,
            _ => self.recent_window,
        }
    }

    /// The first positions that are out of reach.
    pub fn sinks(&self) -> usize {
        match self.policy {
            "streaming-llm" | "random" | "vatp" | "expected-attention" => self.sinks,
            _ => 0,
        }
    }
}

/// What a policy can look at: its cache's keys and values as held, and its own queries.
pub struct Sight<'a> {
    pub layer: &'a Layer,
    pub cache: usize,
    pub keys: &'a Held,
    pub values: &'a Matrix,
    /// The present row.
    pub t: usize,
}

/// One cache under one policy.
pub struct Cache {
    pub spec: Spec,
    pub kept: Vec<usize>,
    sums: BTreeMap<usize, f64>,
    votes: BTreeMap<usize, u32>,
    last: BTreeMap<usize, f32>,
    rings: BTreeMap<usize, Vec<f32>>,
    observed: usize,
    random: crate::random::Generator,
}

impl Cache {
    pub fn new(spec: Spec) -> Cache {
        Cache {
            spec,
            kept: Vec::new(),
            sums: BTreeMap::new(),
            votes: BTreeMap::new(),
            last: BTreeMap::new(),
            rings: BTreeMap::new(),
            observed: 0,
            random: crate::random::Generator::seeded(1),
        }
    }

    pub fn admit(&mut self, position: usize) {
        self.kept.push(position);
        self.sums.insert(position, 0.0);
        self.votes.insert(position, 0);
        self.rings.insert(position, vec![0.0; self.spec.obs_window]);
    }

    /// Takes note of one weight for each kept position.
    pub fn observe(&mut self, weights: &[f32]) {
        let share = 1.0 / self.kept.len() as f64;
        for (position, weight) in self.kept.iter().zip(weights) {
            *self.sums.get_mut(position).expect("admitted") += f64::from(*weight);
            *self.votes.get_mut(position).expect("admitted") += u32::from(f64::from(*weight) > share);
            self.last.insert(*position, *weight);
            self.rings.get_mut(position).expect("admitted")[self.observed % self.spec.obs_window] = *weight;
        }
        self.observed += 1;
    }

    pub fn forget(&mut self, position: usize) {
        self.kept.retain(|kept| *kept != position);
        self.sums.remove(&position);
        self.votes.remove(&position);
        self.last.remove(&position);
        self.rings.remove(&position);
    }

    /// What a policy of rows alone ranks its slots by.
    pub fn scores(&self, policy: &str) -> Vec<f64> {
        let of_each = |score: &dyn Fn(&usize) -> f64| self.kept.iter().map(score).collect::<Vec<f64>>();
        match policy {
            "h2o" => of_each(&|position| self.sums[position]),
            "scissorhands" => of_each(&|position| f64::from(self.votes[position])),
            "tova" => of_each(&|position| self.last.get(position).map_or(f64::INFINITY, |last| f64::from(*last))),
            "snapkv" => self.pooled(),
            "sliding-window" | "streaming-llm" => of_each(&|position| *position as f64),
            other => panic!("no policy of rows is called {other:?}"),
        }
    }

    fn pooled(&self) -> Vec<f64> {
        let sum = |position: &usize| self.rings[position].iter().map(|weight| f64::from(*weight)).sum();
        let sums: Vec<f64> = self.kept.iter().map(sum).collect();
        let reach = self.spec.pool_kernel / 2;
        let near = |slot: usize| &sums[slot.saturating_sub(reach)..sums.len().min(slot + reach + 1)];
        (0..sums.len()).map(|slot| near(slot).iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect()
    }

    /// Goes down to the budget; the positions given up.
    pub fn evict(&mut self, sight: &Sight<'_>) -> Vec<usize> {
        if self.spec.policy == "full" || self.kept.len() <= self.spec.budget {
            return Vec::new();
        }
        let count = self.kept.len() - self.spec.budget;
        let newest = self.kept.len().saturating_sub(self.spec.protected());
        let free: Vec<usize> = (0..newest).filter(|slot| self.kept[*slot] >= self.spec.sinks()).collect();
        assert!(count <= free.len(), "{count} of {} free slots", free.len());
        let victims: Vec<usize> = self.victims(&free, count, sight).into_iter().map(|slot| self.kept[slot]).collect();
        victims.iter().for_each(|position| self.forget(*position));
        victims
    }

    fn victims(&mut self, free: &[usize], count: usize, sight: &Sight<'_>) -> Vec<usize> {
        match self.spec.policy {
            "random" => {
                let mut others = free.to_vec();
                (0..count).map(|_| others.remove(self.random.below(others.len() as u32) as usize)).collect()
            }
            "criticalkv" => ranks::critical_kv(self, free, count, sight),
            _ => lowest(&ranks::of(self, sight), free, count),
        }
    }
}

/// The `count` free slots of lowest rank; of equal ones the lower goes first.
pub fn lowest(ranks: &[f64], free: &[usize], count: usize) -> Vec<usize> {
    let mut order = free.to_vec();
    order.sort_by(|a, b| ranks[*a].partial_cmp(&ranks[*b]).expect("no rank is NaN"));
    order.truncate(count);
    order
}
