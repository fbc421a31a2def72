//! `kvsim recommend`: the answer to which policy, which window, which budget.

use super::keeping::KeepingArgs;
use super::list::expand_all;
use super::notes;
use super::output::refuse_overlap;
use super::progress::Progress;
use super::read_args::ReadArgs;
use super::report_args::{self, ReportArgs};
use super::streams::StreamArgs;
use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{ArgGroup, Args};
use kvsim::error::Error;
use kvsim::experiment::{Budget, Work};
use kvsim::policy::spec::PolicySpec;
use kvsim::recommend::{Answer, Candidate, Deal, Dealt, Figure, Goal, Ground, Objective, Passes, Question};
use kvsim::replay::{DEFAULT_MAX_MEMORY, Observer, Options};
use kvsim::report::format::{OutputFormat, Writer, Written};
use kvsim::threads::use_threads;
use kvsim::word::Word;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Say which policy, window and budget serve best, and what is lost
///
/// Tries every policy at several windows and sinks, moves the edge of what it tries where the best lies there,
/// and ranks the policies; those whose difference is not clear share a rank. With several traces a setting is
/// chosen on the others and reported on each. Where a trace knows its prompt, the prompt is cut at its end, as
/// servers do.
#[derive(Args)]
#[command(
    group = ArgGroup::new("goal").required(true).args(["budget", "within", "peak_miss", "loss"]),
    after_help = "Examples:\n  \
    kvsim recommend trace.safetensors --budget 25%\n  \
    kvsim recommend trace.safetensors --within 0.02\n  \
    kvsim recommend a.safetensors b.safetensors --peak-miss 0.005 --policy h2o,tova,snapkv\n  \
    kvsim recommend trace.safetensors --budget 512 --quick -o answer.json\n  \
    kvsim recommend trace.safetensors --budget 64 --policy h2o:recent-window=50% --allocate auto --write-budgets b.json")]
pub struct RecommendArgs {
    /// Trace files (see README.md for formats), folders of them, or built-in names
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<OsString>,

    /// The best at this budget: a count (512), or a share of the trace's positions (25%)
    #[arg(short, long, value_name = "BUDGET", value_parser = Budget::parse, help_heading = "What is wanted")]
    budget: Option<Budget>,

    /// The smallest budget that loses at most this share of the attention, on the rows in which something can be
    /// lost
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true, help_heading = "What is wanted")]
    within: Option<f64>,

    /// The smallest budget at which at most this share of the rows miss a position that they gave more than a
    /// tenth of their attention
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true, help_heading = "What is wanted")]
    peak_miss: Option<f64>,

    /// The smallest budget at which predicted_loss is at most this many nats a row, where the trace has gradients
    #[arg(long, value_name = "NATS", value_parser = nats, allow_negative_numbers = true, help_heading = "What is wanted")]
    loss: Option<f64>,

    /// Deal the budget out to caches so that they lose least together by this objective (auto: what is known to
    /// help, where the trace has it), and say what that gives beside one budget for all; takes one --policy. Of
    /// several traces the last is the one on which the others' choice is replayed
    #[arg(long, value_name = "OBJECTIVE", value_parser = objectives(), requires = "budget",
        conflicts_with = "quick", help_heading = "Budgets of caches")]
    allocate: Option<String>,

    /// Budgets that a cache may have [default: quarters of --budget, up to three times it]
    #[arg(long, value_name = "LIST", requires = "allocate", help_heading = "Budgets of caches")]
    grid: Vec<String>,

    /// Write the caches' budgets to a file that --layer-budget takes
    #[arg(long, value_name = "FILE", requires = "allocate", help_heading = "Budgets of caches")]
    write_budgets: Option<PathBuf>,

    /// Policies that are compared, parameters in place where they are to stay: h2o,snapkv:obs-window=32
    /// [default: all that have a budget]
    #[arg(short, long, value_name = "LIST", help_heading = "What is compared")]
    policy: Vec<String>,

    /// Let a tenth of the caches, at least six, stand for all: less time, wider intervals
    #[arg(long, help_heading = "What is compared")]
    quick: bool,

    #[command(flatten, next_help_heading = "What is compared")]
    streams: StreamArgs,

    /// Use only the first N rows of each stream
    #[arg(long, value_name = "N", help_heading = "What is compared")]
    steps: Option<usize>,

    #[command(
        flatten,
        next_help_heading = "How caches are kept (one way; a prompt that the trace knows is cut at its end)"
    )]
    keeping: KeepingArgs,

    #[command(flatten)]
    read: ReadArgs,

    /// Threads; results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Output",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: usize,

    #[command(flatten)]
    report: ReportArgs,

    /// No progress bar, no notes
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is no share from 0 to 1, such as 0.02"))
}

fn nats(text: &str) -> Result<f64, String> {
    let nats = text.parse().ok().filter(|nats: &f64| nats.is_finite() && *nats >= 0.0);
    nats.ok_or_else(|| format!("{text:?} is no number of nats from 0 on, such as 0.05"))
}

/// What may be dealt out by.
fn objectives() -> Vec<PossibleValue> {
    let auto = PossibleValue::new("auto").help("what is known to help, where the trace has it");
    let words = Objective::WORDS.iter().map(|(_, word, meaning)| PossibleValue::new(*word).help(*meaning));
    std::iter::once(auto).chain(words).collect()
}

/// Letters in a line of the table where nobody says how wide it may be.
const WIDTH: usize = 80;

impl RecommendArgs {
    pub fn run(&self) -> Result<ExitCode> {
        use_threads(self.threads)?;
        let question = self.question()?;
        let format = self.report.format("table")?;
        let inputs: Vec<&OsStr> = self.traces.iter().map(OsString::as_os_str).collect();
        let outputs: Vec<&Path> = self.report.file().into_iter().chain(self.write_budgets.as_deref()).collect();
        refuse_overlap(&inputs, &outputs)?;
        let mut output = self.report.open()?;
        let passes = Bars { quiet: self.quiet };
        let mut listener = notes::listener(self.quiet);
        let written = match &self.allocate {
            None => self.written(&question.answer(&passes, &mut listener)?, format),
            Some(objective) => {
                let file = self.write_budgets.as_deref().map(|path| output.open_another(path)).transpose()?;
                let dealt = self.deal(question, objective)?.find(&passes, &mut listener)?;
                if let Some(mut file) = file {
                    file.write_all(dealt.file().as_bytes())?;
                    file.finish()?;
                }
                self.written_deal(&dealt, format)
            }
        };
        report_args::write(&written, &mut output, self.quiet)?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn deal(&self, question: Question, objective: &str) -> Result<Deal, Error> {
        let (Goal::Budget(budget), [policy]) = (question.goal, &question.policies[..]) else {
            return Err(Error::usage("--allocate deals one budget out for one policy: name it with --policy"));
        };
        let grid = expand_all("grid", &self.grid)?;
        let count = |text: &String| {
            text.parse().map_err(|_| Error::usage(format!("--grid: {text:?} is not a number of positions")))
        };
        Ok(Deal {
            candidate: Candidate::of(policy),
            ground: question.ground,
            budget,
            objective: Objective::from_word(objective),
            grid: grid.iter().map(count).collect::<Result<_, _>>()?,
        })
    }

    fn written_deal(&self, dealt: &Dealt, format: &OutputFormat) -> Written {
        let Writer::People(write) = format.writer else {
            return format.write(&dealt.results(), self.report.look(format, false));
        };
        let notes: String = dealt.notes().iter().map(|note| format!("- {note}\n")).collect();
        let (ways, table) = (write(&dealt.ways()), write(&dealt.table()));
        Written { text: format!("{}\n\n{ways}\n{table}\n{notes}", dealt.sentence()), left_out: Vec::new() }
    }

    fn question(&self) -> Result<Question, Error> {
        let (traces, read) = self.read.of(&self.traces, self.quiet);
        let policies = self.policy.iter().map(|list| PolicySpec::parse_list(list)).collect::<Result<Vec<_>, _>>();
        let ground = Ground {
            traces: traces.to_vec(),
            read,
            streams: self.streams.selection()?,
            keeping: self.keeping.request_one()?,
            options: Options {
                steps: self.steps,
                max_memory: self.read.max_memory.unwrap_or(DEFAULT_MAX_MEMORY),
                ..Options::default()
            },
            quick: self.quick,
        };
        Ok(Question { ground, policies: policies.map_err(Error::Usage)?.concat(), goal: self.goal()? })
    }

    fn goal(&self) -> Result<Goal, Error> {
        let within = self.within.map(|most| Goal::Promise(Figure::LostMass, most));
        let peak_miss = self.peak_miss.map(|most| Goal::Promise(Figure::PeakMisses, most));
        let loss = self.loss.map(|most| Goal::Promise(Figure::PredictedLoss, most));
        let goal = self.budget.map(Goal::Budget).or(within).or(peak_miss).or(loss);
        goal.ok_or_else(|| Error::usage("say what is wanted: --budget, --within, --peak-miss or --loss"))
    }

    fn written(&self, answer: &Answer, format: &OutputFormat) -> Written {
        let Writer::People(write) = format.writer else {
            return format.write(&answer.results(), self.report.look(format, false));
        };
        let (mut table, spare) = answer.table();
        let width = self.report.width().unwrap_or(WIDTH);
        let left_out = if format.name == "table" { table.fit(width, &spare) } else { Vec::new() };
        let notes: String = answer.notes().iter().map(|note| format!("- {note}\n")).collect();
        Written { text: format!("{}\n\n{}\n{notes}", answer.sentence(), write(&table)), left_out }
    }
}

/// A progress bar for each pass.
struct Bars {
    quiet: bool,
}

struct Bar {
    progress: Progress,
    work: Work,
}

impl Passes for Bars {
    fn begin(&self, work: Work) -> Box<dyn Observer + '_> {
        let progress = Progress::new(&[("planning", work.planning), ("replay", work.replay)], self.quiet);
        Box::new(Bar { progress, work })
    }
}

impl Observer for Bar {
    fn planned(&self, evictions: u64) {
        self.progress.add(0, evictions);
    }

    fn rows(&self, rows: u64, weights: u64) {
        self.progress.add(1, self.work.of_rows(rows, weights));
    }
}
