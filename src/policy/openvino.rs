//! `openvino`: whole blocks go by scores that reach forward, as OpenVINO GenAI evicts them.
//!
//! *Idea.* A cache is paged: blocks of old tokens go when one more block than the limit is full. A row lends each
//! slot the largest weight among itself and the next six, so that runs are judged as runs.
//! *Source.* OpenVINO GenAI, `cache_eviction.cpp` at 4003ec2, modes SUM and NORM_SUM.
//! *How this differs from the source.* KVCrush, ADAPTIVE_RKV (which needs keys) and cache rotation are left out;
//! weights come from the full cache, as everywhere in this crate.
//! *How it is kept.* One set for a layer, the sum of all its query heads' rows: both are part of the policy, and so
//! is the cut. A cut comes at the end of a step that leaves `max-size + block-size` positions and leaves `max-size`
//! and what is left over of a block; the peak between steps is `max-size + block-size - 1`. The engine asks for a
//! cut after every pass but the one that reads the prompt, so that the first comes after the row that follows it.
//! Of the prompt the last `prompt-rows` rows count: they are added up and reach forward once.
//! *Parameters.* `start-size` (32) and `recent-size` (128): positions at either end that stay; `max-size` (`fit`: the
//! largest whose peak is within the budget; the source has 672), `block-size` (32, as on a CPU; 16 on a GPU),
//! `prompt-rows` (8), `aggregation` (`sum`, or `norm-sum`: the score over the number of rows that the slot was in).
//! All sizes are whole numbers of blocks. With a `max-size` of its own the budget is its peak.
//! *Cost.* One f64 and one u32 per slot; four passes over the slots and step, one per cut.

use super::entry::{BlockCuts, Make, OwnKeeping, PolicyEntry, Setting};
use super::parameter::{AGGREGATION, BLOCK_SIZE, MAX_SIZE, PROMPT_ROWS, RECENT_SIZE, START_SIZE, Value, Values};
use super::{Admission, Observation, Overflow, Policy};
use crate::keeping::{Combine, Scope};
use crate::position::{Position, Slot};
use crate::slots::SlotVec;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "openvino",
    "whole blocks go by scores that reach forward, one set for a layer, as OpenVINO GenAI has it",
    Make::Policy(|setting| Box::new(OpenVino::new(setting))),
)
.parameters(&[
    (&START_SIZE, Value::Count(32)),
    (&RECENT_SIZE, Value::Count(128)),
    (&MAX_SIZE, Value::Word("fit")),
    (&BLOCK_SIZE, Value::Count(32)),
    (&PROMPT_ROWS, Value::Count(8)),
    (&AGGREGATION, Value::Word("sum")),
])
.check(is_possible)
.keeps(OwnKeeping {
    scope: Some(Scope::Layer),
    combine: Some(Combine::Sum),
    cuts: Some(cuts),
    budget: Some(own_budget),
    ..OwnKeeping::NOTHING
})
.probe("scoreOf");

/// Slots that a weight reaches back over.
const REACH: usize = 6;

/// When blocks go.
fn cuts(Setting { budget, values, .. }: &Setting) -> BlockCuts {
    let block = values.count(&BLOCK_SIZE);
    // With one position more than the budget a whole block may be over.
    let fits = (budget.saturating_add(1) / block * block).saturating_sub(block);
    let most = if let Some(Value::Count(most)) = values.get(&MAX_SIZE) { most } else { fits };
    BlockCuts { most, block }
}

/// The budget that a limit of its own comes to: its peak between steps.
fn own_budget(values: &Values) -> Option<usize> {
    let Some(Value::Count(most)) = values.get(&MAX_SIZE) else { return None };
    Some(most.saturating_add(values.count(&BLOCK_SIZE) - 1))
}

fn is_possible(setting: &Setting) -> Result<(), String> {
    let BlockCuts { most, block } = cuts(setting);
    let (start, recent) = (setting.values.count(&START_SIZE), setting.values.count(&RECENT_SIZE));
    for (name, size) in [(START_SIZE.name, start), (RECENT_SIZE.name, recent), (MAX_SIZE.name, most)] {
        if !size.is_multiple_of(block) {
            return Err(format!("{name} {size} is not a whole number of blocks of {block}"));
        }
    }
    if most > start.saturating_add(recent) {
        return Ok(());
    }
    let fitted = if own_budget(&setting.values).is_some() {
        String::new()
    } else {
        format!(", the largest whose peak is within budget {},", setting.budget)
    };
    Err(format!(
        "max-size {most}{fitted} leaves nothing to evict: it must be above start-size {start} + recent-size {recent}"
    ))
}

/// Evicts the blocks of least worth between the first and the newest.
struct OpenVino {
    start: usize,
    recent: usize,
    block: usize,
    normalized: bool,
    /// Rows of the prompt before this step do not count.
    first_of_prompt: usize,
    prompt_len: usize,
    scores: SlotVec<f64>,
    /// Observed rows that each slot was in.
    rows: SlotVec<u32>,
    reached: Vec<f64>,
}

impl OpenVino {
    fn new(Setting { budget, values, prompt_len, .. }: &Setting) -> OpenVino {
        OpenVino {
            start: values.count(&START_SIZE),
            recent: values.count(&RECENT_SIZE),
            block: values.count(&BLOCK_SIZE),
            normalized: values.word(&AGGREGATION) == "norm-sum",
            first_of_prompt: prompt_len.saturating_sub(values.count(&PROMPT_ROWS)),
            prompt_len: *prompt_len,
            scores: SlotVec::with_capacity(*budget),
            rows: SlotVec::with_capacity(*budget),
            reached: Vec::new(),
        }
    }

    /// What a slot adds to the worth of its block.
    fn worth(&self, slot: usize) -> f64 {
        match (self.normalized, self.rows[slot]) {
            (false, _) => self.scores[slot],
            // What no row has shown is not judged.
            (true, 0) => f64::INFINITY,
            (true, rows) => self.scores[slot] / f64::from(rows),
        }
    }

    /// The slots of each full block, lowest first.
    fn full_blocks(&self, kept: &[Position]) -> Vec<std::ops::Range<usize>> {
        let mut end = 0;
        let blocks = kept.chunk_by(|a, b| a.index() / self.block == b.index() / self.block).map(|block| {
            let start = end;
            end += block.len();
            start..end
        });
        blocks.filter(|slots| slots.len() == self.block).collect()
    }
}

impl Policy for OpenVino {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.scores.push(0.0);
        self.rows.push(0);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        let step = seen.step.index();
        let in_prompt = step < self.prompt_len;
        if in_prompt && step < self.first_of_prompt {
            return;
        }
        let first = seen.positions.partition_point(|position| position.index() < self.start);
        self.rows[first..].iter_mut().for_each(|rows| *rows += 1);
        self.reached.clear();
        self.reached.extend(seen.weights[first..].iter().map(|weight| f64::from(*weight)));
        if !in_prompt {
            reach_forward(&mut self.reached);
        }
        self.scores[first..].iter_mut().zip(&self.reached).for_each(|(score, weight)| *score += weight);
        if step + 1 == self.prompt_len {
            self.reached.copy_from_slice(&self.scores[first..]);
            reach_forward(&mut self.reached);
            self.scores[first..].copy_from_slice(&self.reached);
        }
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let full = self.full_blocks(overflow.kept);
        let first = (self.start / self.block).min(full.len());
        let end = full.len().saturating_sub(self.recent / self.block).max(first);
        let worth = |slots: &std::ops::Range<usize>| slots.clone().fold(0.0, |sum, slot| sum + self.worth(slot));
        let mut blocks: Vec<_> = full[first..end].iter().map(|slots| (worth(slots), slots)).collect();
        blocks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        blocks.truncate(overflow.excess.div_ceil(self.block));
        victims.extend(blocks.into_iter().flat_map(|(_, slots)| slots.clone()).map(Slot));
        victims.sort_unstable();
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.scores.remove(slots);
        self.rows.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.scores.len())
    }

    fn probe(&self, slot: Slot) -> Option<f64> {
        Some(self.scores[slot.0])
    }

    fn slot_bytes(&self) -> usize {
        size_of::<f64>() + size_of::<u32>()
    }
}

/// Raises each value to the largest among itself and the next [`REACH`]: of 2, of 4, of 7.
fn reach_forward(values: &mut [f64]) {
    for step in [1, 2, REACH - 3] {
        for at in 0..values.len().saturating_sub(step) {
            values[at] = values[at].max(values[at + step]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reaches_back_over_six() {
        let values = [5.0, 1.0, 7.0, 0.0, 0.0, 9.0, 2.0, 0.0, 3.0, 8.0, 1.0, 4.0, 0.0];
        let mut reached = values.to_vec();
        reach_forward(&mut reached);
        for at in 0..values.len() {
            let end = values.len().min(at + REACH + 1);
            assert_eq!(reached[at], values[at..end].iter().copied().fold(0.0, f64::max), "{at}");
        }
    }
}
