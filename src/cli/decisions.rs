//! `kvsim decisions`: who left when, as a file.

use super::notes;
use super::output::{Output, refuse_overlap};
use super::sweep_args::{SweepArgs, policies};
use super::words::words;
use anyhow::{Context, Result};
use clap::Args;
use kvsim::decisions::{Header, LaneHeader, Recorder};
use kvsim::error::Error;
use kvsim::experiment::{Experiment, Job};
use kvsim::meter;
use kvsim::policy::rounding::Rounding;
use kvsim::replay::{CachePlan, LanePlan, Options};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write down which position left which cache, and when
///
/// JSON lines, described in docs/decisions.md: a header, then a line for each cache and lane. traces/decisions.py
/// reads them, traces/loss.py plays them back on the model, kvsim diff compares them.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim decisions trace.safetensors --policy h2o --budget 128 -o h2o.jsonl\n  \
    kvsim decisions trace.safetensors --policy h2o --budget 128 --round-scores bf16 -o h2o-bf16.jsonl\n  \
    python traces/loss.py MODEL --trace trace.safetensors --decisions h2o.jsonl")]
pub struct DecisionsArgs {
    /// A trace file, a folder of them, a built-in name, or - for standard input; several files with --join
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<OsString>,

    /// Policies, parameters in place where need be: h2o,scissorhands-paper:count=low
    #[arg(short, long, value_name = "LIST", required = true, help_heading = "What to replay")]
    policy: Vec<String>,

    #[command(flatten)]
    sweep: SweepArgs,

    /// Round what the policy scores by to this type after every row, as an engine that holds it in fewer bits
    #[arg(long, value_parser = words::<Rounding>(), value_name = "TYPE", help_heading = "What to replay")]
    round_scores: Option<Rounding>,

    /// The file to write, which appears whole or not at all [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No notes
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

impl DecisionsArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let experiment = self.experiment()?;
        let inputs: Vec<&OsStr> =
            self.traces.iter().chain([&self.sweep.layer_budget]).map(OsString::as_os_str).collect();
        let outputs: Vec<&Path> = self.output.as_deref().into_iter().collect();
        refuse_overlap(&inputs, &outputs)?;
        let [trace] = &experiment.traces[..] else {
            return Err(Error::usage("several files are one trace only with --join").into());
        };
        let job = Job::prepare(&experiment, trace, &mut notes::listener(self.quiet))?;
        refuse_bounds(&job)?;
        refuse_scopes(&job)?;
        let output = Output::open(self.output.as_deref())?;
        let recorder = Recorder::new(output, &header(&job)?, &rows(&job)).context("cannot write the decisions")?;
        job.replay(&recorder, &mut notes::listener(self.quiet))?;
        recorder.finish()?.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn experiment(&self) -> Result<Experiment, Error> {
        let options = Options { meters: meter::least(), ..self.sweep.options() };
        let mut experiment = self.sweep.experiment(policies(&self.policy)?, &self.traces, options, self.quiet)?;
        experiment.lanes.rounding = self.round_scores;
        experiment.lanes.check()?;
        Ok(experiment)
    }
}

/// Refuses what holds no positions.
fn refuse_bounds(job: &Job) -> Result<(), Error> {
    match job.lanes.iter().find(|lane| !lane.entry.holds_positions()) {
        None => Ok(()),
        Some(lane) => Err(Error::usage(format!(
            "policy {}: it picks anew for each row and holds no positions, so nothing leaves",
            lane.entry.name
        ))),
    }
}

/// Refuses lanes whose kept sets are not the same.
fn refuse_scopes(job: &Job) -> Result<(), Error> {
    let scope = |lane: &LanePlan| lane.keeping.scope;
    match job.lanes.iter().any(|lane| scope(lane) != scope(&job.lanes[0])) {
        false => Ok(()),
        true => Err(Error::usage("one file is about one kind of kept sets: name one --scope")),
    }
}

fn header(job: &Job) -> Result<Header, Error> {
    let lane = |lane: &LanePlan| {
        let dealt = lane.budgets_on(job.trace.caches(), &job.options.budgets).map_err(Error::Usage)?;
        let budgets: Vec<usize> = dealt.iter().map(|cache| cache.budget).collect();
        Ok(LaneHeader::of(lane, &budgets))
    };
    let lanes = job.lanes.iter().map(lane).collect::<Result<Vec<LaneHeader>, Error>>()?;
    Ok(Header::of(job.trace.info(), &sets(job), job.trace.chosen.positions, lanes))
}

/// Rows of each cache.
fn rows(job: &Job) -> Vec<usize> {
    let most = job.options.steps.unwrap_or(usize::MAX);
    let streams = |cache: &CachePlan| {
        let rows = cache.streams.iter().map(|stream| job.trace.info().streams[*stream].rows.min(most));
        rows.max().unwrap_or(0)
    };
    sets(job).iter().map(streams).collect()
}

/// The kept sets, the same of every lane.
fn sets(job: &Job) -> Cow<'_, [CachePlan]> {
    job.lanes[0].sets_on(job.trace.caches())
}
