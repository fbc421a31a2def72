//! A trace with its lanes: everything about it is checked here, before any row is read.

use super::{PromptKind, ReplayArgs};
use crate::cli::notes;
use crate::cli::plan::{LaneRequest, Lanes};
use kvsim::error::Error;
use kvsim::position::Position;
use kvsim::replay::{CachePlan, LanePlan, Options};
use kvsim::trace::{Source, TraceInfo, formats};
use std::ffi::OsStr;

/// A trace, the caches chosen of it, and the lanes that run on them.
pub struct Job {
    pub source: Box<dyn Source>,
    pub caches: Vec<CachePlan>,
    pub lanes: Vec<LanePlan>,
    pub options: Options,
    /// How budgets are dealt out to layers, as it was typed.
    pub layer_shape: String,
}

impl Job {
    /// Opens a trace and plans its replay.
    pub fn prepare(args: &ReplayArgs, trace: &OsStr, request: &LaneRequest, options: Options) -> Result<Job, Error> {
        let source = formats::open(trace, &args.read.options())?;
        let info = source.info();
        notes::note(args.quiet, &info.name, &info.notes);
        let caches = args.streams.select(info)?;
        notes::note(args.quiet, &info.name, &args.streams.hints(info));
        let options = Options { prompt_end: prompt_end(args, info)?, ..options };
        let Lanes { lanes, notes, .. } =
            request.lanes(info.positions, &caches, &options.budgets).checked(args.skip_invalid)?;
        notes::note(args.quiet, &info.name, &notes);
        notes::warn(args.quiet, &info.name, &nothing_to_measure(info, &caches, &options));
        let layer_shape = args.layer_budget.to_string_lossy().into_owned();
        Ok(Job { source, caches, lanes, options, layer_shape })
    }
}

impl Job {
    /// Says so where the budget holds the whole trace: a user who named none may not have meant that.
    pub fn idle_budget(&self) -> Vec<String> {
        let positions = self.source.info().positions;
        let least = self.lanes.iter().filter_map(|lane| lane.budget).min();
        let idle = least.filter(|budget| positions > 0 && *budget >= positions);
        let say = |budget| {
            format!(
                "the default budget of {budget} holds all {positions} positions: name one, such as --budget 10%,25%"
            )
        };
        idle.map(say).into_iter().collect()
    }
}

/// Where a prompt that is cut down at once ends; 0 where the budget holds from the first row.
fn prompt_end(args: &ReplayArgs, info: &TraceInfo) -> Result<Position, Error> {
    let len = args.prompt_len.or_else(|| info.metadata_count("prompt_len").filter(|len| *len > 0));
    match len {
        _ if args.prompt == PromptKind::Stream && args.prompt_len.is_some() => {
            Err(Error::usage("--prompt-len says where a prompt ends that is cut down at once: add --prompt block"))
        }
        _ if args.prompt == PromptKind::Stream => Ok(Position(0)),
        None => {
            let name = &info.name;
            Err(Error::usage(format!(
                "{name}: it does not say how long its prompt is: --prompt block needs --prompt-len"
            )))
        }
        Some(len) if len > info.positions => {
            let positions = info.positions;
            Err(Error::usage(format!("{}: a prompt of {len} positions is longer than its {positions}", info.name)))
        }
        Some(len) => Ok(Position(len as u32)),
    }
}

/// Why every figure will be blank, where that can be told.
fn nothing_to_measure(info: &TraceInfo, caches: &[CachePlan], options: &Options) -> Vec<String> {
    let most = rows_read(info, caches, options).max().unwrap_or(0);
    let prompt = options.prompt_end;
    match most {
        0 => vec!["there is no row to replay".to_owned()],
        _ if info.first_position.index() + most <= prompt.index() => {
            vec![format!("the prompt of {prompt} positions takes up every row: there is none to measure")]
        }
        _ => Vec::new(),
    }
}

/// For each stream of the caches, the rows that will be read.
fn rows_read(info: &TraceInfo, caches: &[CachePlan], options: &Options) -> impl Iterator<Item = usize> {
    let most = options.steps.unwrap_or(usize::MAX);
    caches.iter().flat_map(|cache| &cache.streams).map(move |stream| info.streams[*stream].rows.min(most))
}

impl Job {
    fn rows_read(&self) -> impl Iterator<Item = u64> {
        rows_read(self.source.info(), &self.caches, &self.options).map(|rows| rows as u64)
    }
}

/// Rows that will be read.
pub fn rows_of(jobs: &[Job]) -> u64 {
    jobs.iter().flat_map(Job::rows_read).sum()
}

/// Weights that will be read.
pub fn weights_of(jobs: &[Job]) -> u64 {
    let of_job = |job: &Job| {
        let info = job.source.info();
        let first = info.self_attention.row_len(info.first_position) as u64;
        job.rows_read().map(move |rows| rows * first + rows * rows.saturating_sub(1) / 2).sum::<u64>()
    };
    jobs.iter().map(of_job).sum()
}
