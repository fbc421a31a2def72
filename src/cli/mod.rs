//! The command line: one small file per command. Arguments become checked plans here; the work is
//! the library's.

mod analyze;
mod block_args;
mod completions;
mod convert;
mod decide;
mod decisions;
mod diff;
mod generate;
mod inspect;
mod keeping;
mod list;
mod memory;
mod notes;
mod output;
mod parameters;
mod plot;
mod policies;
mod progress;
mod read_args;
mod recommend;
mod replay;
mod report_args;
mod results_args;
mod streams;
mod sweep_args;
mod table;
mod tasks;
mod timing;
mod unfinished;
mod vectors;
mod words;

pub use notes::to_stderr;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use kvsim::error::Error;
use std::process::ExitCode;

/// If I cap the KV cache, which tokens should I forget, and what do I lose?
///
/// kvsim replays recorded attention through KV-cache eviction policies, across budgets and
/// recent-window sizes, in one pass, and reports what each would have kept.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
        kvsim recommend trace.safetensors --budget 25%\n  \
        kvsim replay --policy scissorhands --budget 512\n  \
        kvsim replay trace.safetensors --budget 5%,10%,20%\n  \
        kvsim policies\n\n\
        kvsim help COMMAND, or kvsim COMMAND --help, shows the flags of a command.\n\
        Exit status: 0 done, 1 bad data or I/O, 2 usage."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What a first run is told.
const WELCOME: &str = "\
kvsim replays recorded attention through KV-cache eviction policies and says what each would have kept.

  kvsim replay --policy scissorhands,h2o --budget 512   replay the trace that is built in
  kvsim inspect TRACE                                   see what kvsim reads in a trace of yours
  kvsim recommend TRACE --budget 25%                    which policy, which window, what is lost
  kvsim replay TRACE --budget 10%,25%                   every policy, two budgets
  kvsim policies                                        what there is to replay
  kvsim help                                            all commands, by task

Traces are dumps of attention (npy, npz, safetensors, JSON lines) or recorded with traces/record.py.";

/// The definition of the command line.
pub fn command() -> clap::Command {
    tasks::grouped(Cli::command())
}

/// Each is described where its arguments are.
#[derive(Subcommand)]
enum Command {
    Recommend(Box<recommend::RecommendArgs>),
    Replay(Box<replay::ReplayArgs>),
    Decisions(Box<decisions::DecisionsArgs>),
    Diff(Box<diff::DiffArgs>),
    Decide(Box<decide::DecideArgs>),
    Table(table::TableArgs),
    Plot(plot::PlotArgs),
    Generate(generate::GenerateArgs),
    Convert(convert::ConvertArgs),
    Inspect(inspect::InspectArgs),
    Analyze(Box<analyze::AnalyzeArgs>),
    Vectors(vectors::VectorsArgs),
    Policies(policies::PoliciesArgs),
    Memory(Box<memory::MemoryArgs>),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(completions::ManArgs),
}

impl Cli {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// When they make no sense, or ask for help.
    pub fn parse_arguments() -> Result<Cli, clap::Error> {
        Cli::from_arg_matches(&command().try_get_matches()?)
    }

    /// Runs the command.
    ///
    /// # Errors
    /// Whatever stops it; [`exit_code`] tells what to exit with.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let Some(command) = self.command else {
            WELCOME.lines().for_each(to_stderr);
            return Ok(ExitCode::from(2));
        };
        match command {
            Command::Recommend(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Decisions(args) => args.run(),
            Command::Diff(args) => args.run(),
            Command::Decide(args) => args.run(),
            Command::Table(args) => args.run(),
            Command::Plot(args) => args.run(),
            Command::Generate(args) => args.run(),
            Command::Convert(args) => args.run(),
            Command::Inspect(args) => args.run(),
            Command::Analyze(args) => args.run(),
            Command::Vectors(args) => args.run(),
            Command::Policies(args) => args.run(),
            Command::Memory(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
        }
    }
}

/// 2 for a request that makes no sense, 1 for anything else.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let usage = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(Error::Usage(_))));
    ExitCode::from(if usage { 2 } else { 1 })
}

/// Whether whoever read our output has left, which is no error of ours.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(Error::Io { error, .. }) => closed(error),
        _ => cause.downcast_ref().is_some_and(closed),
    })
}
