//! Decides for a model that runs: its rows come in, evictions go out, over a pipe.
//!
//! The form is described in docs/decisions.md. A [`Hello`] names the caches and is answered by what decides; then
//! each frame is the row of one cache, answered at once. Caches may come in any order, each step by step.

use super::header::{LaneHeader, VERSION};
use crate::error::{Error, Result};
use crate::experiment::{Budget, BudgetShape, LaneRequest};
use crate::keeping::Scope;
use crate::replay::{CachePlan, LiveCache, Options, caches_of};
use crate::trace::memory::MemoryTrace;
use crate::trace::{Head, MOST_POSITIONS, Metadata, SelfAttention, Source, StreamLabel, TraceInfo};
use crate::word::Word;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::{BufRead, Read, Write};
use std::path::Path;

/// More weights than this in one frame are no row, but another form.
const MOST_WEIGHTS: u32 = 1 << 28;
/// Most bytes of the first line.
const MOST_HELLO: u64 = 1 << 26;
/// Where it comes from.
const INPUT: &str = "standard input";

/// The first line of a model that asks for decisions.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Hello {
    /// The version of the form.
    pub kvsim_decide: u64,
    /// Whether rows hold the token itself.
    #[serde(rename = "self")]
    pub self_attention: String,
    /// The caches, by whose index the frames go.
    pub caches: Vec<HelloCache>,
    /// Layers of the model, where budgets are dealt out to more than have caches here.
    #[serde(default)]
    pub num_layers: Option<usize>,
    /// Positions of the sequence, where a budget is a share of them.
    #[serde(default)]
    pub positions: Option<usize>,
}

/// One cache of a model.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct HelloCache {
    /// Its layer.
    pub layer: u32,
    /// Its head: `kv0`, a query head, `mean`.
    pub head: String,
    /// Rows in a frame: the query heads that read it.
    pub query_heads: usize,
    /// The sliding window of its layer, where it has one.
    #[serde(default)]
    pub window: Option<usize>,
}

/// The caches of a running model, each under the same policy.
pub struct Deciding {
    caches: Vec<LiveCache>,
    answer: Map<String, Value>,
}

impl Deciding {
    /// Makes the caches that a model names.
    ///
    /// # Errors
    /// When the line means nothing, or the lane is impossible on these caches.
    pub fn new(hello: &Hello, request: &LaneRequest, shape: &BudgetShape, options: &Options) -> Result<Deciding> {
        let info = info_of(hello)?;
        let plans = caches_of(&info)?;
        let place = |cache: &HelloCache| plans.iter().position(|plan| plan.label == label(cache)).unwrap_or(0);
        let places: Vec<usize> = hello.caches.iter().map(place).collect();
        let budgets = shape.budgets.of_layers(|_| true).map_err(Error::Usage)?;
        let needs_positions = request.budgets.iter().any(|budget| matches!(budget, Budget::Percent(_)));
        if needs_positions && hello.positions.is_none() {
            return Err(Error::usage("a budget in percent needs \"positions\" in the first line"));
        }
        let keeping = request.keeping.of(&info)?;
        let lanes = request.checked_lanes(info.positions, &plans, &budgets, &keeping)?.possible;
        let [lane] = &lanes[..] else {
            return Err(Error::usage("one policy decides, with one budget and one value of each parameter"));
        };
        if lane.keeping.scope == Scope::Layer {
            return Err(Error::usage("--scope layer: name a layer's caches as one in the first line instead"));
        }
        let dealt = lane.budgets_on(&plans, &budgets).map_err(Error::Usage)?;
        let budget = |at: &usize| dealt[*at].budget;
        let live = |(cache, at): (&HelloCache, &usize)| {
            let plan = CachePlan { window: cache.window, ..plans[*at].clone() };
            LiveCache::new(&info, &plan, cache.query_heads, (lane, budget(at)), options)
        };
        let caches = hello.caches.iter().zip(&places).map(live).collect::<Result<_>>()?;
        let mut answer = Map::from_iter([("kvsim_decide".to_owned(), json!(VERSION))]);
        answer.extend(LaneHeader::of(lane, &places.iter().map(budget).collect::<Vec<usize>>()).to_map());
        Ok(Deciding { caches, answer })
    }

    /// Answers rows with evictions until there are no more.
    ///
    /// # Errors
    /// When a frame is cut short or means nothing, a row is no attention, or either end of the pipe fails.
    pub fn run(mut self, input: &mut impl Read, output: &mut impl Write) -> Result<()> {
        let answer = format!("{}\n", Value::Object(std::mem::take(&mut self.answer)));
        send(output, answer.as_bytes())?;
        let (mut weights, mut reply) = (Vec::new(), Vec::new());
        while let Some(cache) = receive(input, self.caches.len(), &mut weights)? {
            let left = self.caches[cache].step(&weights)?;
            reply.clear();
            reply.extend((left.len() as u32).to_le_bytes());
            left.iter().for_each(|position| reply.extend(position.0.to_le_bytes()));
            send(output, &reply)?;
        }
        Ok(())
    }
}

/// Reads a frame: a cache, and the weights of its row; `None` where there is no more.
fn receive(input: &mut impl Read, caches: usize, weights: &mut Vec<f32>) -> Result<Option<usize>> {
    let failed = |error| Error::io(Path::new(INPUT), error);
    let mut head = [0; 8];
    if input.read(&mut head[..1]).map_err(failed)? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut head[1..]).map_err(failed)?;
    let [cache, count] = bytemuck::cast::<[u8; 8], [[u8; 4]; 2]>(head).map(u32::from_le_bytes);
    if cache as usize >= caches {
        return Err(Error::data(INPUT, format!("a row of cache {cache}: there are 0..={}", caches.saturating_sub(1))));
    }
    if count > MOST_WEIGHTS {
        return Err(Error::data(INPUT, format!("cache {cache}: {count} weights in one frame: at most {MOST_WEIGHTS}")));
    }
    weights.resize(count as usize, 0.0);
    input.read_exact(bytemuck::cast_slice_mut(weights)).map_err(failed)?;
    weights.iter_mut().for_each(|weight| *weight = f32::from_bits(u32::from_le(weight.to_bits())));
    Ok(Some(cache as usize))
}

fn send(output: &mut impl Write, bytes: &[u8]) -> Result<()> {
    let sent = output.write_all(bytes).and_then(|()| output.flush());
    sent.map_err(|error| Error::io(Path::new("standard output"), error))
}

fn label(cache: &HelloCache) -> StreamLabel {
    StreamLabel { layer: cache.layer, head: Head::parse(&cache.head) }
}

/// What is known of the model, as of a trace of its caches.
fn info_of(hello: &Hello) -> Result<TraceInfo> {
    let bad = |problem: &str| Error::data(INPUT, problem.to_owned());
    if hello.kvsim_decide != VERSION {
        return Err(bad("the first line has another version than \"kvsim_decide\": 1"));
    }
    let kind = SelfAttention::from_word(&hello.self_attention);
    let kind = kind.ok_or_else(|| bad("\"self\" is neither \"included\" nor \"excluded\""))?;
    let mut trace = MemoryTrace::new(INPUT, kind);
    for cache in &hello.caches {
        if cache.query_heads == 0 || cache.window == Some(0) {
            return Err(bad("\"query_heads\" and \"window\" are 1 or more"));
        }
        trace = trace.with_stream(cache.layer, &cache.head, Vec::new())?;
    }
    let mut info = trace.info().clone();
    info.positions = hello.positions.unwrap_or(MOST_POSITIONS);
    if let Some(layers) = hello.num_layers {
        info.set_metadata(Metadata::from_iter([("num_layers".to_owned(), layers.to_string())]))?;
    }
    Ok(info)
}

impl Hello {
    /// Reads the first line.
    ///
    /// # Errors
    /// When there is none, or it means nothing.
    pub fn read(input: &mut impl BufRead) -> Result<Hello> {
        let mut line = String::new();
        let read = input.take(MOST_HELLO).read_line(&mut line);
        read.map_err(|error| Error::io(Path::new(INPUT), error))?;
        let problem = |problem| format!("the first line does not name the caches of a model: {problem}");
        serde_json::from_str(&line).map_err(|error| Error::data(INPUT, problem(error)))
    }
}
