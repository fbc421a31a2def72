//! `kvsim replay`: the main job.

use super::list;
use super::output::Output;
use super::parameters::ParameterArgs;
use super::plan::{Budget, LaneRequest, Lanes, policies_named};
use super::progress::Progress;
use super::timing::Timing;
use anyhow::{Context, Result};
use clap::Args;
use kvsim::error::Error;
use kvsim::replay::{
    BadRows, CachePlan, DEFAULT_HEAVY_HITTERS, LanePlan, Observer, Options, Outcome, Stage, StepRecord, ViewKind,
    caches_of, replay,
};
use kvsim::report::format::{self, FORMATS, OutputFormat};
use kvsim::report::line::{Line, Replayed};
use kvsim::report::steps::StepWriter;
use kvsim::trace::formats;
use kvsim::trace::options::ReadOptions;
use kvsim::trace::spec::DEFAULT_TRACE;
use kvsim::trace::{Source, StreamLabel};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Budget where none is named.
const DEFAULT_BUDGET: &str = "512";

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

    /// Policies to replay [default: all that manage one cache, and oracle]
    #[arg(short, long, value_name = "LIST", help_heading = "What to replay")]
    policy: Vec<String>,

    /// Most positions held between steps: counts (512), shares of the trace's positions (12.5%),
    /// lists and ranges (256..1024x2, 256..1024+256)
    #[arg(short, long, value_name = "LIST", default_value = DEFAULT_BUDGET, help_heading = "What to replay")]
    budget: Vec<String>,

    /// Replay only these layers
    #[arg(long, value_name = "LIST", help_heading = "What to replay")]
    layers: Vec<String>,

    /// Replay only these heads
    #[arg(long, value_name = "LIST", help_heading = "What to replay")]
    heads: Vec<String>,

    /// Replay only the first N rows of each stream (shares stay shares of the whole trace)
    #[arg(long, value_name = "N", help_heading = "What to replay")]
    steps: Option<usize>,

    #[command(flatten)]
    parameters: ParameterArgs,

    /// Run what is possible of a sweep and say what was skipped
    #[arg(long, help_heading = "Parameters of policies (lists and ranges multiply)")]
    skip_invalid: bool,

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

/// A trace with its lanes, checked before any row is read.
struct Job {
    source: Box<dyn Source>,
    caches: Vec<CachePlan>,
    lanes: Vec<LanePlan>,
}

impl ReplayArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let request = self.request()?;
        let format = self.output_format();
        let mut output = Output::open(self.output.as_deref())?;
        let steps = self.open_steps()?;
        let jobs = self.jobs(&request)?;
        let options = self.options();
        let progress = Progress::new(rows_of(&jobs, self.steps), self.quiet);
        let timing = Timing::start();
        let outcomes = jobs
            .iter()
            .map(|job| {
                let watcher = Watcher { progress: &progress, timing: &timing, job, steps: steps.as_ref() };
                replay(&*job.source, &job.caches, &job.lanes, &options, &watcher)
            })
            .collect::<kvsim::error::Result<Vec<_>>>()?;
        drop(progress);
        let replayed = Instant::now();
        let lines: Vec<Line<'_>> =
            jobs.iter().zip(&outcomes).flat_map(|(job, outcomes)| self.lines(job, outcomes)).collect();
        output.write_all((format.write)(&lines).as_bytes())?;
        if let Some(steps) = steps {
            steps.into_inner().expect("no thread panicked").finish()?.finish()?;
        }
        output.finish()?;
        if self.timing {
            eprint!("{}", self.time_report(&jobs, &timing, replayed.elapsed()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn time_report(&self, jobs: &[Job], timing: &Timing, report: Duration) -> String {
        let kind = |job: &Job| job.source.info().self_attention;
        let weights = |job: &Job| {
            let rows = rows_of(std::slice::from_ref(job), self.steps);
            let streams = job.caches.iter().map(|cache| cache.streams.len() as u64).sum::<u64>().max(1);
            let last = kind(job).positions_of((rows / streams) as usize) as u64;
            streams * last * (last + 1) / 2
        };
        let lanes = jobs.iter().map(|job| job.lanes.len()).max().unwrap_or(0);
        timing.report(rows_of(jobs, self.steps), jobs.iter().map(weights).sum(), lanes, report)
    }

    fn request(&self) -> Result<LaneRequest, Error> {
        let names = expand_all("policy", &self.policy)?;
        let budgets = expand_all("budget", &self.budget)?;
        let request = LaneRequest {
            policies: policies_named(&names)?,
            budgets: budgets.iter().map(|text| Budget::parse(text)).collect::<Result<_, _>>().map_err(Error::Usage)?,
            values: self.parameters.values().map_err(Error::Usage)?,
        };
        request.check_flags()?;
        Ok(request)
    }

    fn jobs(&self, request: &LaneRequest) -> Result<Vec<Job>, Error> {
        let default = [OsString::from(DEFAULT_TRACE)];
        let traces = if self.traces.is_empty() { &default[..] } else { &self.traces };
        let mut jobs = Vec::new();
        for trace in traces {
            let source = formats::open(trace, &ReadOptions::default())?;
            let Lanes { lanes, notes, .. } = request.lanes(source.info().positions).checked(self.skip_invalid)?;
            let caches = self.select(&*source)?;
            self.note(&source.info().name, &notes);
            if caches.iter().all(|cache| cache.streams.iter().all(|stream| source.info().streams[*stream].rows == 0)) {
                self.warn(&source.info().name, "there is no row to replay");
            }
            jobs.push(Job { source, caches, lanes });
        }
        Ok(jobs)
    }

    fn note(&self, trace: &str, notes: &[String]) {
        if !self.quiet {
            notes.iter().for_each(|note| eprintln!("note: {trace}: {note}"));
        }
    }

    fn warn(&self, trace: &str, warning: &str) {
        if !self.quiet {
            eprintln!("warning: {trace}: {warning}");
        }
    }

    /// The caches that were asked for.
    fn select(&self, source: &dyn Source) -> Result<Vec<CachePlan>, Error> {
        let layers = expand_all("layers", &self.layers)?;
        let heads = expand_all("heads", &self.heads)?;
        let all = caches_of(source.info())?;
        let layer = |label: &StreamLabel| label.layer.to_string();
        let head = |label: &StreamLabel| label.head.to_string();
        check_known("layer", &layers, &all, layer)?;
        check_known("head", &heads, &all, head)?;
        let wanted = |names: &[String], name: String| names.is_empty() || names.contains(&name);
        let keep = |cache: &CachePlan| wanted(&layers, layer(&cache.label)) && wanted(&heads, head(&cache.label));
        let chosen: Vec<CachePlan> = all.into_iter().filter(keep).collect();
        if chosen.is_empty() && !source.info().streams.is_empty() {
            return Err(Error::usage("no stream has both a chosen layer and a chosen head"));
        }
        Ok(chosen)
    }

    fn options(&self) -> Options {
        Options {
            heavy_hitters: self.heavy_hitters,
            view: self.view,
            steps: self.steps,
            bad_rows: self.on_bad_row,
            threads: self.threads,
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
        let writer = StepWriter::new(Output::open(Some(path))?).context("cannot write the steps")?;
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
            outcomes,
        };
        if self.per_stream { replayed.per_stream() } else { replayed.combined() }
    }
}

/// Tells the progress bar and the step report what happens.
struct Watcher<'a> {
    progress: &'a Progress,
    timing: &'a Timing,
    job: &'a Job,
    steps: Option<&'a Mutex<StepWriter<Output>>>,
}

impl Observer for Watcher<'_> {
    fn timed(&self, stage: Stage, time: Duration) {
        self.timing.add(stage, time);
    }

    fn rows(&self, rows: u64) {
        self.progress.add(rows);
    }

    fn wants_steps(&self) -> bool {
        self.steps.is_some()
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> kvsim::error::Result<()> {
        let Some(steps) = self.steps else { return Ok(()) };
        let mut writer = steps.lock().expect("no thread panicked");
        let trace = &self.job.source.info().name;
        writer
            .write(trace, cache, &self.job.lanes, records)
            .map_err(|error| Error::data("step report", format!("cannot be written: {error}")))
    }
}

fn rows_of(jobs: &[Job], steps: Option<usize>) -> u64 {
    let rows = |job: &Job| {
        let streams = job.caches.iter().flat_map(|cache| &cache.streams);
        streams
            .map(|stream| job.source.info().streams[*stream].rows.min(steps.unwrap_or(usize::MAX)) as u64)
            .sum::<u64>()
    };
    jobs.iter().map(rows).sum()
}

fn expand_all(flag: &str, typed: &[String]) -> Result<Vec<String>, Error> {
    let expanded = typed.iter().map(|text| list::expand(text)).collect::<Result<Vec<_>, _>>();
    expanded.map(|lists| lists.concat()).map_err(|problem| Error::usage(format!("--{flag}: {problem}")))
}

fn check_known(
    what: &str,
    names: &[String],
    caches: &[CachePlan],
    name_of: impl Fn(&StreamLabel) -> String,
) -> Result<(), Error> {
    let known: Vec<String> = caches.iter().map(|cache| name_of(&cache.label)).collect();
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let mut known = known;
            known.dedup();
            Err(Error::usage(format!("--{what}s: no {what} {name:?}; there are {}", known.join(", "))))
        }
    }
}
