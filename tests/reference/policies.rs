//! The policies of one cache, each with its state in a map keyed by position.

use std::collections::HashMap;

use super::Setting;
use super::cache::{Policy, Seen};
use super::decay::Decay;
use super::engines::{GKv, MeanH2o, Roco};
use super::openvino::OpenVino;
use super::paper::ScissorhandsPaper;
use super::random::Generator;
use super::snapkv::{SnapKv, pyramid_share};

/// Makes the policy that `setting` names.
pub fn build(setting: &Setting) -> Box<dyn Policy> {
    let recent_window = setting.count("recentWindow", 32);
    match setting.policy.as_str() {
        "full" => Box::new(Full),
        "sliding-window" => Box::new(StreamingLlm { sinks: None }),
        "streaming-llm" => Box::new(StreamingLlm { sinks: Some(setting.count("sinks", 4)) }),
        "random" => Box::new(Random {
            sinks: setting.count("sinks", 4),
            recent_window,
            generator: Generator::seeded(setting.seed),
        }),
        "lru" => Box::new(Lru { touched: HashMap::new(), touch: setting.number("touch", 0.5), recent_window }),
        "h2o" if setting.word("score", "sum") == "mean" => Box::new(MeanH2o::new(setting)),
        "h2o" => Box::new(H2o { score: HashMap::new(), recent_window }),
        "scissorhands" => Box::new(Scissorhands { votes: HashMap::new(), recent_window }),
        "tova" => Box::new(Tova { last: HashMap::new() }),
        "snapkv" => Box::new(SnapKv::new(setting, None)),
        "pyramidkv" => {
            let budget = pyramid_share(setting);
            Box::new(SnapKv::new(&Setting { budget, ..setting.clone() }, Some(budget)))
        }
        "roco" => Box::new(Roco::new(setting)),
        "g-kv" => Box::new(GKv::new(setting)),
        "openvino" => Box::new(OpenVino::new(setting)),
        "decay" => Box::new(Decay::new(setting)),
        "scissorhands-paper" => Box::new(ScissorhandsPaper::new(setting)),
        other => panic!("no policy is called {other:?}"),
    }
}

/// The kept positions without the newest `recent_window`.
pub fn outside_window(kept: &[u32], recent_window: usize) -> Vec<u32> {
    kept[..kept.len().saturating_sub(recent_window)].to_vec()
}

/// The score of every kept position but the newest `recent_window`.
pub fn rank_outside_window(kept: &[u32], recent_window: usize, score: impl Fn(u32) -> f64) -> Vec<Option<f64>> {
    let outside = outside_window(kept, recent_window);
    kept.iter().map(|&position| outside.contains(&position).then(|| score(position))).collect()
}

/// The `count` candidates with the lowest score; of equal ones the lower position goes first.
pub fn lowest(candidates: &[u32], count: usize, score: impl Fn(u32) -> f64) -> Vec<u32> {
    assert!(count <= candidates.len(), "{count} of {} candidates", candidates.len());
    let mut ranked: Vec<(f64, u32)> = candidates.iter().map(|&position| (score(position), position)).collect();
    ranked.sort_by(|left, right| left.partial_cmp(right).expect("no score is NaN"));
    ranked[..count].iter().map(|&(_, position)| position).collect()
}

struct Full;

impl Policy for Full {
    fn choose(&mut self, _kept: &[u32], _budget: usize) -> Vec<u32> {
        Vec::new()
    }

    fn limit(&self, _asked: usize) -> usize {
        usize::MAX
    }
}

/// Also `sliding-window`, which is the same without sinks.
struct StreamingLlm {
    sinks: Option<usize>,
}

impl Policy for StreamingLlm {
    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let sinks = self.sinks.unwrap_or(0);
        let oldest_first: Vec<u32> = kept.iter().copied().filter(|&position| position as usize >= sinks).collect();
        oldest_first[..kept.len() - budget].to_vec()
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        let sinks = self.sinks.unwrap_or(0) as u32;
        kept.iter().map(|&position| (position >= sinks).then_some(f64::from(position))).collect()
    }

    fn sink_count(&self) -> Option<usize> {
        self.sinks
    }
}

struct Random {
    sinks: usize,
    recent_window: usize,
    generator: Generator,
}

impl Policy for Random {
    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let mut others = outside_window(kept, self.recent_window);
        others.retain(|&position| position as usize >= self.sinks);
        let mut victims = Vec::new();
        while kept.len() - victims.len() > budget {
            let drawn = self.generator.below(others.len() as u32) as usize;
            victims.push(others.remove(drawn));
        }
        victims
    }

    fn sink_count(&self) -> Option<usize> {
        Some(self.sinks)
    }
}

/// The step that touched each position last.
struct Lru {
    touched: HashMap<u32, u32>,
    touch: f64,
    recent_window: usize,
}

impl Policy for Lru {
    fn observe(&mut self, seen: &Seen) {
        for (position, weight) in seen.pairs() {
            if weight > self.touch * seen.share() {
                self.touched.insert(position, seen.step);
            }
        }
    }

    fn admit(&mut self, position: u32) {
        self.touched.insert(position, position);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let touched = |position| f64::from(self.touched[&position]);
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, touched)
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        rank_outside_window(kept, self.recent_window, |position| f64::from(self.touched[&position]))
    }

    fn forget(&mut self, position: u32) {
        self.touched.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "lastTouchOf").then(|| f64::from(self.touched[&position]))
    }
}

struct H2o {
    score: HashMap<u32, f64>,
    recent_window: usize,
}

impl Policy for H2o {
    fn observe(&mut self, seen: &Seen) {
        for (position, weight) in seen.pairs_of_rows() {
            *self.score.get_mut(&position).expect("admitted") += weight;
        }
    }

    fn admit(&mut self, position: u32) {
        self.score.insert(position, 0.0);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, |position| self.score[&position])
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        rank_outside_window(kept, self.recent_window, |position| self.score[&position])
    }

    fn forget(&mut self, position: u32) {
        self.score.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "scoreOf").then(|| self.score[&position])
    }
}

struct Scissorhands {
    votes: HashMap<u32, u32>,
    recent_window: usize,
}

impl Policy for Scissorhands {
    fn observe(&mut self, seen: &Seen) {
        for (position, weight) in seen.pairs_of_rows() {
            if weight > seen.share() {
                *self.votes.get_mut(&position).expect("admitted") += 1;
            }
        }
    }

    fn admit(&mut self, position: u32) {
        self.votes.insert(position, 0);
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let votes = |position| f64::from(self.votes[&position]);
        lowest(&outside_window(kept, self.recent_window), kept.len() - budget, votes)
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        rank_outside_window(kept, self.recent_window, |position| f64::from(self.votes[&position]))
    }

    fn forget(&mut self, position: u32) {
        self.votes.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "votesOf").then(|| f64::from(self.votes[&position]))
    }
}

/// A position that is not in the map has not been observed.
struct Tova {
    last: HashMap<u32, f32>,
}

impl Policy for Tova {
    fn observe(&mut self, seen: &Seen) {
        for (&position, &weight) in seen.positions.iter().zip(&seen.weights) {
            self.last.insert(position, weight);
        }
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let rank = |position| self.last.get(&position).map_or(f64::INFINITY, |&weight| f64::from(weight));
        lowest(kept, kept.len() - budget, rank)
    }

    fn rank(&mut self, kept: &[u32]) -> Vec<Option<f64>> {
        let last = |position: &u32| self.last.get(position).map_or(f64::INFINITY, |&weight| f64::from(weight));
        kept.iter().map(|position| Some(last(position))).collect()
    }

    fn forget(&mut self, position: u32) {
        self.last.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "lastAttentionOf").then(|| self.last.get(&position).map_or(-1.0, |&weight| f64::from(weight)))
    }
}
