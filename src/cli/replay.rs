//! `kvsim replay`: the main job. Arguments, and the path from them to a written report.

mod job;
mod watch;

use super::output::{Output, refuse_overlap};
use super::parameters::ParameterArgs;
use super::plan::{Budget, LaneRequest, policies_named};
use super::progress::Progress;
use super::read_args::ReadArgs;
use super::streams::StreamArgs;
use super::timing::Timing;
use super::{list, notes};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use job::{Job, rows_of, weights_of};
use kvsim::budgets::CacheBudgets;
use kvsim::error::Error;
use kvsim::meter::{self, METERS, MeterPlan, Run};
use kvsim::replay::{BadRows, DEFAULT_HEAVY_HITTERS, DEFAULT_MAX_MEMORY, Options, Outcome, ViewKind, replay};
use kvsim::report::format::{self, FORMATS, OutputFormat};
use kvsim::report::line::{By, Line, Replayed};
use kvsim::report::steps::StepWriter;
use kvsim::trace::spec::DEFAULT_TRACE;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;
use watch::Watcher;

/// Budget where none is named.
const DEFAULT_BUDGET: &str = "512";

fn budget_help() -> String {
    format!(
        "Most positions held between steps: counts (512), shares of the trace's positions (12.5%), lists and ranges of \
         counts (256..1024x2, 256..1024+256; 64..66 goes by ones) [default: {DEFAULT_BUDGET}]"
    )
}

fn meters_help() -> String {
    let names: Vec<&str> = METERS.iter().filter(|entry| entry.run != Run::Always).map(|entry| entry.name).collect();
    format!(
        "What is counted, instead of what is counted by default: {}; default and all stand for several. A parameter is \
         written in place: sink_mass:sinks=8",
        names.join(", ")
    )
}

/// Replay traces through policies and report what each retained
///
/// Every row is read once and feeds every lane: each policy with each budget and each parameter
/// value. Recorded weights come from the full cache, so a replay says what a policy would have
/// kept of the attention that was paid, not what the model would have said instead.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim replay --policy scissorhands --budget 512\n  \
    kvsim replay --policy scissorhands,h2o --budget 256,512 --recent-window 16..128x2\n  \
    kvsim replay trace.safetensors --budget 5%,10%,20% --per-stream --format csv -o results.csv")]
pub struct ReplayArgs {
    /// Trace files (see README.md for formats), a built-in name, or - for JSON lines on standard
    /// input [default: decode-4096]
    #[arg(value_name = "TRACE")]
    traces: Vec<OsString>,

    /// Policies to replay, parameters in place where need be: h2o,scissorhands-paper:count=low|high,drop=1
    /// [default: all that manage one cache, and oracle]
    #[arg(short, long, value_name = "LIST", help_heading = "What to replay")]
    policy: Vec<String>,

    #[arg(short, long, value_name = "LIST", help_heading = "What to replay", help = budget_help())]
    budget: Vec<String>,

    #[command(flatten, next_help_heading = "What to replay")]
    streams: StreamArgs,

    /// Replay only the first N rows of each stream (shares stay shares of the whole trace)
    #[arg(long, value_name = "N", help_heading = "What to replay")]
    steps: Option<usize>,

    /// How the budget is dealt out to layers, the same in total: uniform, pyramid:RATIO (RATIO times
    /// more for the first layer), funnel:RATIO (for the last), or a JSON file such as {"0": 3, "1": 1}
    #[arg(long, value_name = "SHAPE", default_value = "uniform", help_heading = "What to replay")]
    layer_budget: OsString,

    /// Whether the budget holds from the first row, or the prompt is observed whole and then cut
    /// down at once
    #[arg(long, value_enum, default_value = "stream", value_name = "HOW", help_heading = "What to replay")]
    prompt: PromptKind,

    /// Positions of the prompt [default: as the trace says]
    #[arg(long, value_name = "N", help_heading = "What to replay")]
    prompt_len: Option<usize>,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    read: ReadArgs,

    /// Run what is possible of a sweep and say what was skipped
    #[arg(long, help_heading = "Parameters of policies (lists and ranges multiply)")]
    skip_invalid: bool,

    #[arg(long, value_name = "LIST", help_heading = "How to measure", help = meters_help())]
    meters: Vec<String>,

    /// k of the heavy-hitter recall
    #[arg(long, value_name = "K", default_value_t = DEFAULT_HEAVY_HITTERS, help_heading = "How to measure",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65536))]
    heavy_hitters: usize,

    /// What policies see of a row: the recorded weights, or these divided by their sum
    #[arg(long, value_enum, default_value_t, help_heading = "How to measure")]
    view: ViewKind,

    /// A row with a negative weight or no number: stop, or pass over it and count it
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = "How to measure")]
    on_bad_row: BadRows,

    /// Threads; results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "How to measure",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: usize,

    /// One line for each stream instead of one for each trace
    #[arg(long, help_heading = "Output")]
    per_stream: bool,

    /// One line for each layer, or for each head
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "per_stream", help_heading = "Output")]
    by: Option<By>,

    /// Also write one CSV line for each lane and step
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    per_step: Option<PathBuf>,

    /// Output format [default: table on a terminal, csv elsewhere]
    #[arg(short, long, value_name = "FORMAT", value_parser = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>(), help_heading = "Output")]
    format: Option<String>,

    /// Write the report to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Say on standard error where the time went
    #[arg(long, help_heading = "Output")]
    timing: bool,

    /// No progress bar, no notes
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// What happens to the prompt.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PromptKind {
    /// The budget holds from the first row
    Stream,
    /// Prompt rows are observed with nothing evicted, then the cache is cut to the budget at once, as
    /// serving engines do; figures are over decode rows only
    Block,
}

impl ReplayArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let request = self.request()?;
        let budgets = CacheBudgets::parse(&self.layer_budget)?;
        let format = self.output_format();
        let inputs: Vec<&OsStr> = self.traces.iter().map(OsString::as_os_str).collect();
        let outputs: Vec<&Path> = self.output.iter().chain(&self.per_step).map(PathBuf::as_path).collect();
        refuse_overlap(&inputs, &outputs)?;
        let mut output = Output::open(self.output.as_deref())?;
        let steps = self.open_steps()?;
        let jobs = self.jobs(&request, &budgets)?;
        let timing = Timing::start();
        let outcomes = self.replay(&jobs, &timing, steps.as_ref())?;
        let replayed = Instant::now();
        let lines: Vec<Line<'_>> =
            jobs.iter().zip(&outcomes).flat_map(|(job, outcomes)| self.lines(job, outcomes)).collect();
        output.write_all((format.write)(&lines).as_bytes())?;
        if let Some(steps) = steps {
            steps.into_inner().expect("no thread panicked").finish()?.finish()?;
        }
        output.finish()?;
        if self.timing {
            let lanes = jobs.iter().map(|job| job.lanes.len()).max().unwrap_or(0);
            let (rows, weights) = (rows_of(&jobs), weights_of(&jobs));
            notes::to_stderr(&timing.report(rows, weights, lanes, replayed.elapsed()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn replay(
        &self,
        jobs: &[Job],
        timing: &Timing,
        steps: Option<&Mutex<StepWriter<Output>>>,
    ) -> kvsim::error::Result<Vec<Vec<Outcome>>> {
        let progress = Progress::new(rows_of(jobs), self.quiet);
        let replay_one = |job: &Job| {
            let watcher = Watcher { progress: &progress, timing, job, steps, excess: Mutex::default() };
            let outcomes = replay(&*job.source, &job.caches, &job.lanes, &job.options, &watcher)?;
            notes::warn(self.quiet, &job.source.info().name, &watcher.warnings());
            notes::note(self.quiet, &job.source.info().name, &self.passed_over(&outcomes));
            if self.budget.is_empty() {
                notes::note(self.quiet, &job.source.info().name, &job.idle_budget());
            }
            Ok(outcomes)
        };
        jobs.iter().map(replay_one).collect()
    }

    /// How many steps were passed over, where that was asked for.
    fn passed_over(&self, outcomes: &[Outcome]) -> Vec<String> {
        let first_lanes = outcomes.iter().filter_map(|outcome| outcome.tallies.first());
        let skipped: u64 = first_lanes.map(|tally| tally.count("skipped_rows")).sum();
        let asked = self.on_bad_row == BadRows::Skip && skipped > 0;
        asked.then(|| format!("{skipped} steps without usable attention were passed over")).into_iter().collect()
    }

    fn request(&self) -> Result<LaneRequest, Error> {
        let default = [DEFAULT_BUDGET.to_owned()];
        let budgets = list::expand_all("budget", if self.budget.is_empty() { &default } else { &self.budget })?;
        let request = LaneRequest {
            policies: policies_named(&self.policy)?,
            budgets: budgets.iter().map(|text| Budget::parse(text)).collect::<Result<_, _>>().map_err(Error::Usage)?,
            values: self.parameters.values().map_err(Error::Usage)?,
        };
        request.check_flags()?;
        Ok(request)
    }

    /// What is counted.
    fn meter_plans(&self) -> Result<Vec<MeterPlan>, Error> {
        if self.meters.is_empty() {
            return Ok(meter::defaults());
        }
        meter::chosen(&self.meters.join(",")).map_err(|problem| Error::usage(format!("--meters: {problem}")))
    }

    fn jobs(&self, request: &LaneRequest, budgets: &CacheBudgets) -> Result<Vec<Job>, Error> {
        let default = [OsString::from(DEFAULT_TRACE)];
        let traces = if self.traces.is_empty() { &default[..] } else { &self.traces };
        let options = Options { meters: self.meter_plans()?, ..self.options(budgets) };
        traces.iter().map(|trace| Job::prepare(self, trace, request, options.clone())).collect()
    }

    fn options(&self, budgets: &CacheBudgets) -> Options {
        Options {
            heavy_hitters: self.heavy_hitters,
            view: self.view,
            steps: self.steps,
            bad_rows: self.on_bad_row,
            threads: self.threads,
            budgets: budgets.clone(),
            max_memory: self.read.max_memory.unwrap_or(DEFAULT_MAX_MEMORY),
            ..Options::default()
        }
    }

    fn output_format(&self) -> &'static OutputFormat {
        let terminal = self.output.is_none() && std::io::stdout().is_terminal();
        let name = self.format.as_deref().unwrap_or(if terminal { "table" } else { "csv" });
        format::find(name).expect("the parser admits known formats only")
    }

    fn open_steps(&self) -> Result<Option<Mutex<StepWriter<Output>>>> {
        let Some(path) = &self.per_step else { return Ok(None) };
        let writer =
            StepWriter::new(Output::open(Some(path))?, &self.meter_plans()?).context("cannot write the steps")?;
        Ok(Some(Mutex::new(writer)))
    }

    fn lines<'a>(&self, job: &'a Job, outcomes: &'a [Outcome]) -> Vec<Line<'a>> {
        let info = job.source.info();
        let replayed = Replayed {
            trace: &info.name,
            positions: info.positions,
            lanes: &job.lanes,
            heavy_hitters: self.heavy_hitters,
            view: self.view.word(),
            prompt: if job.options.prompt_end > info.first_position { "block" } else { "stream" },
            layer_shape: &job.layer_shape,
            outcomes,
        };
        match self.by {
            Some(by) => replayed.by(by),
            None if self.per_stream => replayed.per_stream(),
            None => replayed.combined(),
        }
    }
}
