//! `kvsim replay`: the main job. Arguments, and the path from them to a written report.

mod watch;

use super::notes;
use super::output::{Output, refuse_overlap};
use super::progress::Progress;
use super::report_args::{self, ReportArgs};
use super::sweep_args::{SweepArgs, policies};
use super::timing::Timing;
use super::words::words;
use anyhow::{Context, Result};
use clap::Args;
use kvsim::error::Error;
use kvsim::experiment::{Experiment, Finished, Job, Work, joined};
use kvsim::meter::{self, METERS, MeterPlan, Run};
use kvsim::replay::{DEFAULT_HEAVY_HITTERS, Options};
use kvsim::report::replayed::{By, Per};
use kvsim::report::steps::StepWriter;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;
use watch::Watcher;

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
    /// Trace files (see README.md for formats), folders of them, built-in names, or - for standard
    /// input [default: decode-4096]
    #[arg(value_name = "TRACE")]
    traces: Vec<OsString>,

    /// Policies to replay, parameters in place where need be: h2o,scissorhands-paper:count=low|high,drop=1
    /// [default: all that manage one cache, and oracle]
    #[arg(short, long, value_name = "LIST", help_heading = "What to replay")]
    policy: Vec<String>,

    #[command(flatten)]
    sweep: SweepArgs,

    #[arg(long, value_name = "LIST", help_heading = "How to measure", help = meters_help())]
    meters: Vec<String>,

    /// k of the heavy-hitter recall
    #[arg(long, value_name = "K", default_value_t = DEFAULT_HEAVY_HITTERS, help_heading = "How to measure",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65536))]
    heavy_hitters: usize,

    /// Measure outputs in the rows of every Nth position only, from the first on: cheaper on long traces
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How to measure",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    output_every: usize,

    /// One line for each stream instead of one for each trace
    #[arg(long, help_heading = "Output")]
    per_stream: bool,

    /// One line for each layer, or for each head
    #[arg(long, value_parser = words::<By>(), value_name = "WHAT", conflicts_with = "per_stream", help_heading = "Output")]
    by: Option<By>,

    /// Also write one CSV line for each lane and step
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    per_step: Option<PathBuf>,

    #[command(flatten)]
    report: ReportArgs,

    /// Show the raw sums too, in a table for people; csv and json always have them
    #[arg(long, help_heading = "Output")]
    sums: bool,

    /// Say on standard error where the time went
    #[arg(long, help_heading = "Output")]
    timing: bool,

    /// No progress bar, no notes
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

impl ReplayArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let experiment = self.experiment()?;
        let format = self.report.format(if self.report.on_terminal() { "table" } else { "csv" })?;
        let inputs: Vec<&OsStr> =
            self.traces.iter().chain([&self.sweep.layer_budget]).map(OsString::as_os_str).collect();
        let outputs: Vec<&Path> = self.report.file().into_iter().chain(self.per_step.as_deref()).collect();
        refuse_overlap(&inputs, &outputs)?;
        let mut output = self.report.open()?;
        let steps = self.open_steps(&output)?;
        let jobs = experiment.jobs(&mut notes::listener(self.quiet))?;
        let timing = Timing::start();
        let finished = self.replay(jobs, &timing, steps.as_ref())?;
        let replayed = Instant::now();
        let results = joined(&finished, self.per())?;
        let written = format.write(&results, self.report.look(format, self.sums));
        report_args::write(&written, &mut output, self.quiet)?;
        if let Some(steps) = steps {
            steps.into_inner().expect("no thread panicked").finish()?.finish()?;
        }
        output.finish()?;
        if self.timing {
            let jobs = || finished.iter().map(|finished| &finished.job);
            let lanes = jobs().map(|job| job.lanes.len()).max().unwrap_or(0);
            let (rows, weights) = (jobs().map(Job::rows).sum(), jobs().map(|job| job.trace.weights()).sum());
            timing.report(rows, weights, lanes, replayed.elapsed());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn replay(
        &self,
        jobs: Vec<Job>,
        timing: &Timing,
        steps: Option<&Mutex<StepWriter<Output>>>,
    ) -> Result<Vec<Finished>> {
        let works: Vec<Work> = jobs.iter().map(Job::work).collect();
        let total = |of: fn(&Work) -> u64| works.iter().map(of).sum();
        let stages = [("planning", total(|work| work.planning)), ("replay", total(|work| work.replay))];
        let progress = Progress::new(&stages, self.quiet);
        let replay_one = |(job, work): (Job, &Work)| {
            let watcher = Watcher { progress: &progress, work, timing, job: &job, steps };
            let outcomes = job.replay(&watcher, &mut notes::listener(self.quiet))?;
            Ok(Finished { job, outcomes })
        };
        jobs.into_iter().zip(&works).map(replay_one).collect()
    }

    /// The experiment that was described.
    fn experiment(&self) -> Result<Experiment, Error> {
        let policies = policies(&self.policy)?;
        let experiment = self.sweep.experiment(policies, &self.traces, self.options()?, self.quiet)?;
        experiment.lanes.check()?;
        Ok(experiment)
    }

    /// What is counted.
    fn meter_plans(&self) -> Result<Vec<MeterPlan>, Error> {
        if self.meters.is_empty() {
            return Ok(meter::defaults());
        }
        meter::chosen(&self.meters.join(",")).map_err(|problem| Error::usage(format!("--meters: {problem}")))
    }

    fn options(&self) -> Result<Options, Error> {
        Ok(Options {
            heavy_hitters: self.heavy_hitters,
            meters: self.meter_plans()?,
            output_every: self.output_every,
            ..self.sweep.options()
        })
    }

    fn open_steps(&self, report: &Output) -> Result<Option<Mutex<StepWriter<Output>>>> {
        let Some(path) = &self.per_step else { return Ok(None) };
        let writer =
            StepWriter::new(report.open_another(path)?, &self.meter_plans()?).context("cannot write the steps")?;
        Ok(Some(Mutex::new(writer)))
    }

    fn per(&self) -> Per {
        match self.by {
            Some(By::Layer) => Per::Layer,
            Some(By::Head) => Per::Head,
            None if self.per_stream => Per::Stream,
            None => Per::Trace,
        }
    }
}
