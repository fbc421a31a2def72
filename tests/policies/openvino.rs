//! The blocks that OpenVINO GenAI evicts, once more straight from its rule, on ten thousand drawn and recorded
//! cases: which blocks leave, and after which row.

use crate::common::lanes::{open, read_rows};
use crate::prompt_end::lane;
use crate::streaming::PROSE;
use kvsim::error::Result;
use kvsim::keeping::{Keeping, PromptPlan};
use kvsim::needs::Needs;
use kvsim::replay::{CachePlan, LanePlan, Observer, Options, StepRecord, caches_of, replay};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::{SelfAttention, Source};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Drawn traces.
const DRAWN: u32 = 10_000;

/// The sizes of the rule.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    start: usize,
    recent: usize,
    max: usize,
    block: usize,
    prompt_rows: usize,
    normalized: bool,
}

/// The positions that leave after each row, by the rule as it is written down.
fn evicted(heads: &[Vec<Vec<f32>>], prompt: usize, sizes: Sizes) -> Vec<(usize, Vec<usize>)> {
    let mut kept: Vec<usize> = Vec::new();
    let (mut scores, mut counters) = (BTreeMap::<usize, f64>::new(), BTreeMap::<usize, f64>::new());
    let mut of_prompt = BTreeMap::<usize, f64>::new();
    let mut gone = Vec::new();
    for step in 0..heads[0].len() {
        kept.push(step);
        let sum = |position: usize| heads.iter().map(|rows| f64::from(rows[step][position])).sum::<f64>() as f32;
        let tracked: Vec<usize> = kept.iter().copied().filter(|position| *position >= sizes.start).collect();
        let row: Vec<f64> = tracked.iter().map(|position| f64::from(sum(*position))).collect();
        if step >= prompt || step + sizes.prompt_rows >= prompt {
            tracked.iter().for_each(|position| *counters.entry(*position).or_default() += 1.0);
        }
        if step >= prompt {
            add(&mut scores, &tracked, &forward(&row));
        } else if step + sizes.prompt_rows >= prompt {
            add(&mut of_prompt, &tracked, &row);
            if step + 1 == prompt {
                let sums: Vec<f64> = tracked.iter().map(|position| of_prompt[position]).collect();
                add(&mut scores, &tracked, &forward(&sums));
            }
        }
        if step >= prompt && kept.len() >= sizes.max + sizes.block {
            let victims = cut(&kept, &scores, &counters, sizes);
            kept.retain(|position| !victims.contains(position));
            gone.push((step, victims));
        }
    }
    gone
}

fn add(scores: &mut BTreeMap<usize, f64>, positions: &[usize], values: &[f64]) {
    positions.iter().zip(values).for_each(|(position, value)| *scores.entry(*position).or_default() += value);
}

/// Each takes the maximum of itself and the next six.
fn forward(values: &[f64]) -> Vec<f64> {
    (0..values.len()).map(|at| values[at..].iter().take(7).copied().fold(0.0, f64::max)).collect()
}

fn cut(
    kept: &[usize],
    scores: &BTreeMap<usize, f64>,
    counters: &BTreeMap<usize, f64>,
    Sizes { start, recent, max, block, normalized, .. }: Sizes,
) -> Vec<usize> {
    let full: Vec<&[usize]> = kept.chunks(block).filter(|slots| slots.len() == block).collect();
    let worth = |slots: &[usize]| -> f64 {
        let of = |position: &usize| scores[position] / if normalized { counters[position] } else { 1.0 };
        slots.iter().map(of).sum()
    };
    let mut candidates: Vec<(f64, &[usize])> =
        full[start / block..full.len() - recent / block].iter().map(|slots| (worth(slots), *slots)).collect();
    candidates.sort_by(|a, b| a.partial_cmp(b).expect("no worth is NaN"));
    let mut victims: Vec<usize> =
        candidates.iter().take(kept.len() / block - max / block).flat_map(|(_, slots)| slots.to_vec()).collect();
    victims.sort_unstable();
    victims
}

/// What left after each step, of the one lane there is.
#[derive(Default)]
struct Victims(Mutex<Vec<(usize, Vec<usize>)>>);

impl Observer for Victims {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS
    }

    fn steps(&self, _cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let mut all = self.0.lock().expect("no thread panicked");
        for record in records[0].iter().filter(|record| !record.victims.is_empty()) {
            all.push((record.step.index(), record.victims.iter().map(|victim| victim.index()).collect()));
        }
        Ok(())
    }
}

fn replayed(source: &dyn Source, caches: &[CachePlan], lane: LanePlan) -> Vec<(usize, Vec<usize>)> {
    let victims = Victims::default();
    let options = Options { threads: 1, meters: Vec::new(), ..Options::default() };
    replay(source, caches, &[lane], &options, &victims).expect("a sound replay");
    victims.0.into_inner().expect("no thread panicked")
}

fn openvino(sizes: Sizes, prompt: usize) -> LanePlan {
    let texts = [sizes.start, sizes.recent, sizes.max, sizes.block, sizes.prompt_rows].map(|size| size.to_string());
    let [start, recent, max, block, rows] = texts.each_ref().map(String::as_str);
    let aggregation = if sizes.normalized { "norm-sum" } else { "sum" };
    let parameters = [
        ("start-size", start),
        ("recent-size", recent),
        ("max-size", max),
        ("block-size", block),
        ("prompt-rows", rows),
        ("aggregation", aggregation),
    ];
    let lane = lane("openvino", sizes.max + sizes.block - 1, &parameters);
    let keeping = Keeping { prompt: PromptPlan::block(prompt), ..lane.keeping };
    lane.kept(keeping)
}

/// A case drawn at random: sizes in blocks, weights of few values so that worths tie.
fn assert_drawn_case(seed: u32) -> usize {
    let mut random = Xoshiro128::new(seed);
    let block = 1 + random.below(4) as usize;
    let mut blocks = |least: u32, most: u32| (least + random.below(most - least + 1)) as usize * block;
    let (start, recent) = (blocks(0, 2), blocks(0, 3));
    let max = start + recent + blocks(1, 3);
    let prompt_rows = 1 + random.below(8) as usize;
    let sizes = Sizes { start, recent, max, block, prompt_rows, normalized: random.below(2) == 1 };
    let rows = max + block + random.below(4 * block as u32 + 8) as usize;
    let prompt = if random.below(2) == 0 { 0 } else { 1 + random.below(rows as u32 - 1) as usize };
    let values = 2 + random.below(40);
    let mut head = || -> Vec<Vec<f32>> {
        (1..=rows).map(|length| (0..length).map(|_| random.below(values) as f32 / 64.0).collect()).collect()
    };
    let heads: Vec<Vec<Vec<f32>>> = (0..1 + seed % 3).map(|_| head()).collect();
    let mut trace = MemoryTrace::new("drawn", SelfAttention::Included);
    for (name, rows) in heads.iter().enumerate() {
        let rows: Rows = rows.iter().cloned().map(Some).collect();
        trace = trace.with_stream(0, &name.to_string(), rows).expect("rows have their lengths");
    }
    let caches = caches_of(trace.info()).expect("sound metadata");
    let wanted = evicted(&heads, prompt, sizes);
    assert_eq!(replayed(&trace, &caches, openvino(sizes, prompt)), wanted, "seed {seed}: {sizes:?}, prompt {prompt}");
    wanted.len()
}

#[test]
fn ten_thousand_drawn_cases_lose_the_blocks_that_the_engine_evicts() {
    let cuts: usize = (0..DRAWN).map(assert_drawn_case).sum();
    assert!(cuts > 3 * DRAWN as usize, "{cuts} cuts: most cases have several");
}

#[test]
fn recorded_layers_lose_the_blocks_that_the_engine_evicts() {
    let trace = open(PROSE);
    let caches = caches_of(trace.info()).expect("sound metadata");
    for layer in caches.chunks(9) {
        let heads: Vec<Vec<Vec<f32>>> =
            layer.iter().map(|cache| read_rows(&*trace, cache.streams[0]).into_iter().flatten().collect()).collect();
        for ((start, recent, max), block) in
            [((16, 32, 64), 16), ((16, 32, 112), 16), ((32, 64, 160), 32), ((8, 8, 24), 8), ((0, 16, 48), 16)]
                .into_iter()
        {
            for (prompt, normalized) in [0, 100, 250, 256].into_iter().flat_map(|at| [(at, false), (at, true)]) {
                let sizes = Sizes { start, recent, max, block, prompt_rows: 8, normalized };
                let found = replayed(&*trace, layer, openvino(sizes, prompt));
                assert_eq!(found, evicted(&heads, prompt, sizes), "{sizes:?}, prompt {prompt}, {}", layer[0].label);
                assert!(!found.is_empty(), "{sizes:?}: something is evicted");
            }
        }
    }
}
