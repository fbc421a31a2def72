//! `openvino`: blocks of tokens go by scores that reach forward over the next six slots.

use std::collections::HashMap;

use super::Setting;
use super::cache::{Policy, Seen};

/// Everything that one position has shown.
#[derive(Clone, Copy, Default)]
struct Slot {
    score: f64,
    rows: u32,
}

/// Blocks go from between the first and the newest.
pub struct OpenVino {
    slots: HashMap<u32, Slot>,
    start: usize,
    recent: usize,
    max: usize,
    block: usize,
    prompt: usize,
    prompt_rows: usize,
    aggregation: String,
}

impl OpenVino {
    /// Takes `startSize` (32), `recentSize` (128), `maxSize` (fit), `blockSize` (32), `promptRows` (8),
    /// `aggregation` (sum) and `promptLen` (0).
    pub fn new(setting: &Setting) -> OpenVino {
        let block = setting.count("blockSize", 32);
        let fits = || ((setting.budget as u128 + 1) / block as u128) as usize * block - block;
        let given = setting.params.get("maxSize").and_then(serde_json::Value::as_u64);
        OpenVino {
            slots: HashMap::new(),
            start: setting.count("startSize", 32),
            recent: setting.count("recentSize", 128),
            max: given.map_or_else(fits, |max| max as usize),
            block,
            prompt: setting.count("promptLen", 0),
            prompt_rows: setting.count("promptRows", 8),
            aggregation: setting.word("aggregation", "sum"),
        }
    }

    /// Each value becomes the largest of itself and the six that follow.
    fn reach_forward(values: &[f64]) -> Vec<f64> {
        let largest = |at: usize| {
            let end = (at + 7).min(values.len());
            values[at..end].iter().copied().fold(f64::NEG_INFINITY, f64::max)
        };
        (0..values.len()).map(largest).collect()
    }

    fn worth(&self, positions: &[u32]) -> f64 {
        let mut sum = 0.0;
        for position in positions {
            let Slot { score, rows } = self.slots[position];
            sum += match (self.aggregation.as_str(), rows) {
                ("sum", _) => score,
                (_, 0) => f64::INFINITY,
                _ => score / f64::from(rows),
            };
        }
        sum
    }
}

impl Policy for OpenVino {
    fn observe(&mut self, seen: &Seen) {
        let step = seen.step as usize;
        if step < self.prompt && step + self.prompt_rows < self.prompt {
            return;
        }
        let tracked: Vec<(u32, f64)> =
            seen.pairs().into_iter().filter(|(position, _)| *position as usize >= self.start).collect();
        let weights: Vec<f64> = tracked.iter().map(|(_, weight)| *weight).collect();
        let added = if step < self.prompt { weights } else { OpenVino::reach_forward(&weights) };
        for ((position, _), added) in tracked.iter().zip(added) {
            let slot = self.slots.get_mut(position).expect("admitted");
            slot.score += added;
            slot.rows += 1;
        }
        if step + 1 == self.prompt {
            let sums: Vec<f64> = tracked.iter().map(|(position, _)| self.slots[position].score).collect();
            for ((position, _), sum) in tracked.iter().zip(OpenVino::reach_forward(&sums)) {
                self.slots.get_mut(position).expect("admitted").score = sum;
            }
        }
    }

    fn admit(&mut self, position: u32) {
        self.slots.insert(position, Slot::default());
    }

    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let newest = *kept.last().expect("something is kept") as usize;
        let mut full: Vec<Vec<u32>> = Vec::new();
        for block in 0..=newest / self.block {
            let held: Vec<u32> =
                kept.iter().copied().filter(|position| *position as usize / self.block == block).collect();
            if held.len() == self.block {
                full.push(held);
            }
        }
        let end = full.len() - (self.recent / self.block).min(full.len());
        let start = (self.start / self.block).min(end);
        let mut ranked: Vec<(f64, Vec<u32>)> =
            full[start..end].iter().map(|block| (self.worth(block), block.clone())).collect();
        ranked.sort_by(|left, right| left.partial_cmp(right).expect("no worth is NaN"));
        let count = (kept.len() - budget).div_ceil(self.block);
        ranked[..count].iter().flat_map(|(_, block)| block.clone()).collect()
    }

    fn forget(&mut self, position: u32) {
        self.slots.remove(&position);
    }

    fn probe(&self, name: &str, position: u32) -> Option<f64> {
        (name == "scoreOf").then(|| self.slots[&position].score)
    }

    /// Once a block more than the limit is full, and never before the prompt is over.
    fn due(&self, kept: usize, step: usize) -> Option<Option<usize>> {
        let over = step >= self.prompt && kept >= self.max + self.block;
        let blocks = |positions: usize| positions / self.block;
        Some(over.then(|| kept - (blocks(kept) - blocks(self.max)) * self.block))
    }
}
