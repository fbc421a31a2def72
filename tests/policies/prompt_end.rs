//! Policies that cut a prompt once, at its end: published figures, slots and positions, and the definitions
//! again the slow way on recorded and drawn rows.

use crate::common::assert_near;
use crate::common::binary::{Csv, kvsim};
use crate::common::lanes::{open, read_rows};
use crate::reference::prompt_end::{Cut, Heads};
use crate::streaming::{PROSE, assert_lines};
use kvsim::error::Result;
use kvsim::keeping::{Keeping, PromptPlan};
use kvsim::needs::Needs;
use kvsim::policy::parameter::PARAMETERS;
use kvsim::policy::table::find;
use kvsim::replay::{CachePlan, LanePlan, Observer, Options, StepRecord, caches_of, replay, shared_caches_of};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::{SelfAttention, Source};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The prompt of the published figures.
const PROMPT: usize = 256;

#[test]
fn figures_after_one_cut_are_those_published() {
    let at = |policy: &str, more: &[&str], wanted: &[[f64; 2]]| {
        let args = [PROSE, "--budget", "64,128", "--prompt-len", "256", "--policy", policy];
        assert_lines(&[&args[..], more].concat(), wanted);
    };
    at("snapkv-prompt", &[], &[[0.908191, 0.007378], [0.954223, 0.002604]]);
    at("snapkv-prompt:pool=max,pool-kernel=7", &[], &[[0.902854, 0.007812], [0.949012, 0.002387]]);
    at("snapkv-prompt:pool-kernel=1", &[], &[[0.926523, 0.003906], [0.970833, 0.000434]]);
    at("snapkv-prompt", &["--kv-heads", "off"], &[[0.913898, 0.003906], [0.959398, 0.001736]]);
    at("ada-kv", &[], &[[0.912828, 0.006727], [0.965218, 0.002170]]);
    at("ada-kv:pool=max,pool-kernel=7", &[], &[[0.904103, 0.007812], [0.959241, 0.003038]]);
    at("ada-kv:alpha=1", &[], &[[0.908191, 0.007378], [0.954223, 0.002604]]);
    at("defensive-kv", &[], &[[0.901245, 0.008030], [0.945524, 0.003038]]);
    at("defensive-kv:deal=layer", &[], &[[0.902669, 0.006727], [0.954798, 0.003906]]);
    at("cake", &[], &[[0.864369, 0.124132], [0.956824, 0.000217]]);
}

#[test]
fn a_lazy_layer_keeps_its_window_and_any_other_everything() {
    let run = |threshold: &str| {
        let policy = format!("simlayer-kv:recent-window=60,lazy-above={threshold}");
        let args = ["replay", PROSE, "--policy", &policy, "--prompt-len", "256", "-q", "--format", "csv"];
        Csv::parse(&kvsim(&args).report())
    };
    let lazy = run("0.65");
    assert_near(lazy.number(0, "retained_mass"), 0.819643, "retained mass");
    assert_near(lazy.number(0, "peak_miss_rate"), 0.199653, "peak misses");
    assert_eq!((lazy.text(0, "mean_kept"), lazy.text(0, "budget")), ("176.5", ""));
    assert_eq!(run("0.9").text(0, "evicted"), "0", "the published mass of the laziest is 0.81");
    // The mass of row 255 on 4 + 60, layer by layer.
    for (below, above, layers) in [("0.813522", "0.813524", 1), ("0.785337", "0.785339", 2), ("0.697798", "0.6978", 3)]
    {
        assert_eq!(run(below).number(0, "evicted"), f64::from(layers * 3 * 192), "more than {below}");
        assert_eq!(run(above).number(0, "evicted"), f64::from((layers - 1) * 3 * 192), "not more than {above}");
    }
}

/// What every cache keeps of the prompt, once it is cut.
#[derive(Default)]
struct AfterTheCut(Mutex<Vec<BTreeSet<usize>>>);

impl Observer for AfterTheCut {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS
    }

    fn steps(&self, _cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        let mut all = self.0.lock().expect("no thread panicked");
        let last = records[0].last().map_or(0, |record| record.step.index());
        if records[0].first().is_some_and(|record| record.step.index() <= 1) {
            all.push(BTreeSet::new());
        }
        let mut kept: BTreeSet<usize> = (0..=last).collect();
        let gone = records[0].iter().flat_map(|record| &record.victims);
        gone.for_each(|victim| _ = kept.remove(&victim.index()));
        let at = all.len() - 1;
        all[at] = kept;
        Ok(())
    }
}

fn kept_on(source: &dyn Source, caches: &[CachePlan], lane: &LanePlan, prompt: usize) -> Vec<BTreeSet<usize>> {
    let lane = lane.clone().kept(Keeping { prompt: PromptPlan::once(prompt), ..lane.keeping });
    let log = AfterTheCut::default();
    // The rows of the prompt and no more, so that what is held at the end is what the cut left.
    let rows = prompt - source.info().first_position.index();
    let options = Options { steps: Some(rows), threads: 1, ..Options::default() };
    replay(source, caches, &[lane], &options, &log).expect("a sound replay");
    log.0.into_inner().expect("no thread panicked")
}

/// A lane, its parameters as they are written.
pub fn lane(policy: &str, budget: usize, parameters: &[(&str, &str)]) -> LanePlan {
    let mut lane = LanePlan::new(find(policy).expect("in the table"), budget);
    for (name, text) in parameters {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == *name).expect("a parameter");
        lane.values.set(parameter, parameter.parse(text).expect("a possible value"));
    }
    lane
}

fn kept_of_prose(policy: &str, budget: usize, parameters: &[(&str, &str)]) -> Vec<BTreeSet<usize>> {
    let trace = open(PROSE);
    let caches = shared_caches_of(trace.info(), 3).expect("nine heads share three");
    kept_on(&*trace, &caches, &lane(policy, budget, parameters), PROMPT)
}

fn slots(kept: &[BTreeSet<usize>]) -> Vec<usize> {
    kept.iter().map(BTreeSet::len).collect()
}

#[test]
fn slots_are_dealt_out_as_published() {
    let ada = |budget| slots(&kept_of_prose("ada-kv", budget, &[]));
    assert_eq!(ada(64), [55, 57, 80, 63, 54, 75, 51, 79, 62, 58, 46, 88]);
    assert_eq!(ada(128), [56, 158, 170, 100, 74, 210, 91, 159, 134, 122, 73, 189]);
    let defensive = slots(&kept_of_prose("defensive-kv", 64, &[("deal", "layer")]));
    assert_eq!(defensive, [70, 55, 67, 66, 62, 64, 68, 62, 62, 65, 64, 63]);
    let by_layer = |kept: Vec<BTreeSet<usize>>| slots(&kept).into_iter().step_by(3).collect::<Vec<_>>();
    assert_eq!(by_layer(kept_of_prose("cake", 64, &[])), [46, 48, 92, 70]);
    assert_eq!(by_layer(kept_of_prose("cake", 128, &[])), [74, 78, 213, 147]);
}

/// Positions written as numbers and ranges.
fn positions(text: &str) -> BTreeSet<usize> {
    let range = |part: &str| -> std::ops::RangeInclusive<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse().expect("a number")..=last.parse().expect("a number")
    };
    text.split(' ').flat_map(range).collect()
}

#[test]
fn the_prefix_keeps_the_positions_published() {
    let prefix = |kept: &BTreeSet<usize>| -> BTreeSet<usize> { kept.range(..PROMPT - 32).copied().collect() };
    let snapkv = kept_of_prose("snapkv-prompt", 64, &[]);
    let wanted = "0 1 2 10-14 28-32 117-121 153-157 211 214-218 221-223";
    assert_eq!(prefix(&snapkv[0]), positions(wanted), "3.kv0");
    let wanted = "0 1 2 122 123 138-142 167-172 183-186 208-212 217-223";
    assert_eq!(prefix(&snapkv[7]), positions(wanted), "15.kv1");
    let ada = kept_of_prose("ada-kv", 64, &[]);
    assert_eq!(prefix(&ada[6]), positions("0 1 2 105-107 170-172 183 185 186 209-213 220 221"), "15.kv0");
    let defensive = kept_of_prose("defensive-kv", 64, &[]);
    let wanted = "0 1 2 10-14 28-32 117-121 153-157 208-211 214 217 221-223";
    assert_eq!(prefix(&defensive[0]), positions(wanted), "3.kv0");
}

/// The rows of a trace's caches, each with so many heads.
fn rows_of(source: &dyn Source, caches: &[CachePlan], prompt: usize) -> Vec<Heads> {
    let first = source.info().first_position.index();
    let head = |stream: &usize| -> Vec<Vec<f32>> {
        read_rows(source, *stream).into_iter().take(prompt - first).map(|row| row.expect("a row")).collect()
    };
    caches.iter().map(|cache| cache.streams.iter().map(head).collect()).collect()
}

fn assert_as_defined(source: &dyn Source, caches: &[CachePlan], prompt: usize, lane: &LanePlan, cut: &Cut) {
    let layers: Vec<u32> = caches.iter().map(|cache| cache.label.layer).collect();
    let wanted = cut.kept(&rows_of(source, caches, prompt), &layers, prompt);
    assert_eq!(kept_on(source, caches, lane, prompt), wanted, "{cut:?} on a prompt of {prompt}");
}

#[test]
fn recorded_prompts_are_cut_as_defined() {
    let trace = open(PROSE);
    let caches = shared_caches_of(trace.info(), 3).expect("nine heads share three");
    for (prompt, budget) in [(100, 40), (200, 90)] {
        let plain = |policy| (lane(policy, budget, &[]), Cut::new(policy, budget));
        let layer = Cut { layer: true, ..Cut::new("defensive-kv", budget) };
        let lazy = Cut { recent: 60, lazy_above: 0.7, ..Cut::new("simlayer-kv", budget) };
        for (lane, cut) in [
            plain("snapkv-prompt"),
            plain("ada-kv"),
            plain("defensive-kv"),
            plain("cake"),
            (lane("defensive-kv", budget, &[("deal", "layer")]), layer),
            (lane("simlayer-kv", 0, &[("recent-window", "60"), ("lazy-above", "0.7")]), lazy),
        ] {
            assert_as_defined(&*trace, &caches, prompt, &lane, &cut);
        }
    }
}

/// Layers of heads whose weights have few values, so that scores tie.
fn drawn(seed: u32, kind: SelfAttention, layers: u32, heads: u32, rows: usize) -> MemoryTrace {
    let mut random = Xoshiro128::new(seed);
    let mut trace = MemoryTrace::new("drawn", kind);
    for (layer, head) in (0..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head))) {
        let lengths = (kind.first_step().0..).map(|step| kind.row_len(kvsim::position::Position(step)));
        let values = 2 + random.below(30);
        let row = |len| Some((0..len).map(|_| random.below(values) as f32 / 64.0).collect());
        let rows: Rows = lengths.take(rows).map(row).collect();
        trace = trace.with_stream(layer, &head.to_string(), rows).expect("rows have their lengths");
    }
    trace
}

#[test]
fn drawn_prompts_are_cut_as_defined_whatever_ties() {
    for seed in 0..60 {
        let mut random = Xoshiro128::new(1000 + seed);
        let mut below = |count: u32| random.below(count) as usize;
        let kind = [SelfAttention::Included, SelfAttention::Excluded][below(2)];
        let trace = drawn(seed, kind, 1 + below(3) as u32, 2, 40);
        let caches = match below(2) {
            0 => caches_of(trace.info()),
            _ => shared_caches_of(trace.info(), 1),
        }
        .expect("heads that can share");
        let (window, prompt) = (1 + below(6), 10 + below(25));
        let budget = window + 1 + below(12);
        let texts = [window, budget].map(|count| count.to_string());
        let (kernel, max_pool) = (1 + 2 * below(4), below(2) == 1);
        let (alpha, layer) = ([0.0, 0.2, 0.5, 1.0][below(4)], below(2) == 1);
        let (kernel_text, alpha_text) = (kernel.to_string(), alpha.to_string());
        let obs = ("obs-window", &*texts[0]);
        let pool = [("pool", if max_pool { "max" } else { "avg" }), ("pool-kernel", &*kernel_text)];
        let cut = |policy| Cut { window, kernel, max_pool, alpha, layer, ..Cut::new(policy, budget) };
        let deal = ("deal", if layer { "layer" } else { "even" });
        for (policy, parameters) in [
            ("snapkv-prompt", vec![obs, pool[0], pool[1]]),
            ("ada-kv", vec![obs, pool[0], pool[1], ("alpha", &*alpha_text)]),
            ("defensive-kv", vec![obs, deal, ("alpha", &*alpha_text)]),
            ("cake", vec![obs]),
        ] {
            assert_as_defined(&trace, &caches, prompt, &lane(policy, budget, &parameters), &cut(policy));
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_remedy() {
    let refuses = |args: &[&str], parts: &[&str]| kvsim(&[&["replay", PROSE, "-q"], args].concat()).refuses(2, parts);
    refuses(&["--policy", "ada-kv"], &["ada-kv", "prompt"]);
    let prompt = ["--prompt-len", "256", "--policy"];
    let at = |policy, more: &[&'static str], parts: &[&str]| refuses(&[&prompt[..], &[policy], more].concat(), parts);
    at("snapkv-prompt", &["--budget", "32"], &["obs-window 32 leaves nothing of the prefix at budget 32"]);
    at("cake", &["--budget", "64", "--layer-budget", "pyramid:4"], &["cake", "leave the layer budget uniform"]);
    at("ada-kv", &["--budget", "64", "--prompt", "block"], &["--prompt once"]);
    at("ada-kv", &["--budget", "64", "--combine", "each"], &["ada-kv", "combine each"]);
    at("simlayer-kv:recent-window=50%", &[], &["simlayer-kv", "no budget", "write a count"]);
    let short = ["--prompt-len", "20", "--policy", "ada-kv", "--budget", "64"];
    refuses(&short, &["obs-window 32 leaves no prefix of a prompt of 20 positions"]);
}

#[test]
fn a_prompt_that_fits_stays_whole() {
    let args = [PROSE, "--prompt-len", "100", "--budget", "128", "--policy", "snapkv-prompt,ada-kv,defensive-kv,cake"];
    let csv = Csv::parse(&kvsim(&[&["replay", "-q", "--format", "csv"], &args[..]].concat()).report());
    assert_eq!(csv.column("evicted"), "0 0 0 0");
}
