//! `kvsim analyze`: which positions matter in a trace, and how small a cache may be.

mod csv;
mod json;
mod laws;
mod summary;
mod text;

use super::list::expand_all;
use super::notes;
use super::output::{Output, refuse_overlap};
use super::progress::Progress;
use super::read_args::ReadArgs;
use super::streams::StreamArgs;
use super::words::words;
use anyhow::Result;
use clap::{Args, ValueEnum};
use kvsim::analyze::advice::{Sweep, advise};
use kvsim::analyze::theory::theory;
use kvsim::analyze::{Analysis, analyze};
use kvsim::error::Error;
use kvsim::experiment::{Budget, OpenTrace, Work};
use kvsim::replay::{BadRows, DEFAULT_MAX_MEMORY, Observer, Options};
use kvsim::trace::TraceInfo;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Say which positions matter in a trace, and how small a cache may be
///
/// Persistence: of the positions that matter in the second half of the rows, the share that mattered
/// in the first half already. Of its three readings only equal-visibility means something: both union
/// readings are near 1 for a random model too (see: kvsim analyze control-2048), and any ratio has to
/// be held against the chance level beside it. Agreement: whether adjacent layers attend to the same
/// positions. Locality: where the attention goes. Power law: what the Scissorhands paper assumes of attention,
/// fitted to each stream, with how well it fits. Advice: from a sweep of this very trace, the smallest
/// recent window and budget that retain as much as the best, within a tolerance. Theory: what the fitted
/// laws predict at each budget, beside what was retained.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim analyze traces/smollm2-prose-512.safetensors\n  \
    kvsim analyze control-2048 --no-advice\n  \
    kvsim analyze trace.safetensors --layers 15 --budget 5%,10%,20% --tolerance 0.005 --format json")]
pub struct AnalyzeArgs {
    /// A trace file, a folder of them, a built-in name, or - for standard input; several files with --join
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<OsString>,

    #[command(flatten, next_help_heading = "What to analyze")]
    streams: StreamArgs,

    #[command(flatten)]
    read: ReadArgs,

    /// A row with a negative weight or no number: stop, or pass over it
    #[arg(long, value_parser = words::<BadRows>(), default_value = "error", value_name = "WHAT")]
    on_bad_row: BadRows,

    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    format: Format,

    /// List every stream, however many; the other formats always do
    #[arg(long)]
    all: bool,

    /// Write the report to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// No progress bar, no notes
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten, next_help_heading = "Advice")]
    advice: AdviceArgs,
}

#[derive(Args)]
struct AdviceArgs {
    /// Leave the advice out: the trace is read once and not replayed
    #[arg(long)]
    no_advice: bool,

    /// How much less retained mass than the best is as good
    #[arg(long, value_name = "MASS", default_value_t = 0.01, conflicts_with = "no_advice")]
    tolerance: f64,

    /// Budgets to sweep, as in replay [default: a 32nd to a half of the positions]
    #[arg(short, long, value_name = "LIST", conflicts_with = "no_advice")]
    budget: Vec<String>,

    /// Recent windows to sweep [default: 0, and powers of two up to an eighth of the positions]
    #[arg(long, value_name = "LIST", conflicts_with = "no_advice")]
    recent_window: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs, nested
    Json,
    /// For programs, one figure a line
    Csv,
}

impl AnalyzeArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let outputs: Vec<&Path> = self.output.iter().map(PathBuf::as_path).collect();
        refuse_overlap(&self.traces.iter().map(OsString::as_os_str).collect::<Vec<_>>(), &outputs)?;
        let mut output = Output::open(self.output.as_deref())?;
        let ((trace, read), streams) = (self.read.of_one(&self.traces, self.quiet)?, self.streams.selection()?);
        let trace = OpenTrace::open(trace, &read, &streams, None, &mut notes::listener(self.quiet))?;
        let info = trace.info();
        let sweep = self.advice.sweep(trace.chosen.positions)?;
        let analysis = self.analyze(&trace, sweep.as_ref())?;
        notes::warn(self.quiet, &info.name, &trace.source.warnings());
        output.write_all(self.report(info, &analysis).as_bytes())?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn analyze(&self, trace: &OpenTrace, sweep: Option<&Sweep>) -> Result<Analysis> {
        let (source, caches, options) = (&*trace.source, trace.caches(), self.options());
        let weights = trace.weights();
        if weights == 0 {
            notes::warn(self.quiet, &trace.info().name, &["there is no row to analyze".to_owned()]);
        }
        let work = sweep.map(|sweep| Work::of(trace, &sweep.lanes(source, caches, &options), &options));
        let (planning, replay) = work.as_ref().map_or((0, 0), |work| (work.planning, work.replay));
        let stages = [("reading", weights), ("planning", planning), ("sweep", replay)];
        let progress = Progress::new(&stages, self.quiet);
        let mut analysis = analyze(source, caches, options.bad_rows, &|weights| progress.add(0, weights))?;
        if let Some((sweep, work)) = sweep.zip(work) {
            let advice = advise(source, caches, &options, sweep, &SweepProgress(&progress, work))?;
            analysis.theory = theory(trace.info(), &analysis.streams, &advice);
            analysis.advice = Some(advice);
        }
        Ok(analysis)
    }

    fn options(&self) -> Options {
        let max_memory = self.read.max_memory.unwrap_or(DEFAULT_MAX_MEMORY);
        Options { bad_rows: self.on_bad_row, max_memory, ..Options::default() }
    }

    fn report(&self, info: &TraceInfo, analysis: &Analysis) -> String {
        match self.format {
            Format::Text => text::text(info, analysis, self.all),
            Format::Json => json::json(info, analysis),
            Format::Csv => csv::csv(info, analysis),
        }
    }
}

/// Shows how far the sweep is.
struct SweepProgress<'a>(&'a Progress, Work);

impl Observer for SweepProgress<'_> {
    fn planned(&self, evictions: u64) {
        self.0.add(1, evictions);
    }

    fn rows(&self, rows: u64, weights: u64) {
        self.0.add(2, self.1.of_rows(rows, weights));
    }
}

impl AdviceArgs {
    /// What to sweep; `None` where no advice is wanted.
    fn sweep(&self, positions: usize) -> Result<Option<Sweep>, Error> {
        if !(0.0..1.0).contains(&self.tolerance) {
            let tolerance = self.tolerance;
            return Err(Error::usage(format!("--tolerance: {tolerance} is out of range, at least 0 and below 1")));
        }
        let mut sweep = Sweep::of(positions, self.tolerance);
        if !self.budget.is_empty() {
            sweep.budgets = ascending(self.budgets(positions)?);
        }
        if !self.recent_window.is_empty() {
            sweep.windows = ascending(self.windows()?);
        }
        Ok((!self.no_advice).then_some(sweep))
    }

    fn budgets(&self, positions: usize) -> Result<Vec<usize>, Error> {
        let typed = expand_all("budget", &self.budget)?;
        let budgets: Result<Vec<Budget>, String> = typed.iter().map(|text| Budget::parse(text)).collect();
        Ok(budgets.map_err(Error::Usage)?.into_iter().map(|budget| budget.resolve(positions)).collect())
    }

    fn windows(&self) -> Result<Vec<usize>, Error> {
        let number = |text: &String| {
            text.parse().map_err(|_| Error::usage(format!("--recent-window: {text:?} is not a whole number")))
        };
        expand_all("recent-window", &self.recent_window)?.iter().map(number).collect()
    }
}

fn ascending(mut values: Vec<usize>) -> Vec<usize> {
    values.sort_unstable();
    values.dedup();
    values
}
