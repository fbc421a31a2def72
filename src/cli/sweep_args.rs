//! The flags that say what is replayed and how, shared by the commands that run policies over traces.

use super::keeping::KeepingArgs;
use super::list::expand_all;
use super::parameters::ParameterArgs;
use super::read_args::ReadArgs;
use super::streams::StreamArgs;
use super::words::words;
use clap::Args;
use kvsim::error::Error;
use kvsim::experiment::{Budget, BudgetShape, DEFAULT_BUDGET, Experiment, LaneRequest};
use kvsim::policy::spec::PolicySpec;
use kvsim::replay::{BadRows, DEFAULT_MAX_MEMORY, Options, ViewKind};
use kvsim::threads::use_threads;
use std::ffi::OsString;

fn budget_help() -> String {
    format!(
        "Most positions held between steps: counts (512), shares of the trace's positions (12.5%), lists and ranges of \
         counts (256..1024x2, 256..1024+256; 64..66 goes by ones) [default: {DEFAULT_BUDGET}]"
    )
}

/// Policies, budgets and parameters, and how they are replayed.
#[derive(Args)]
pub struct SweepArgs {
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
    pub layer_budget: OsString,

    #[command(flatten, next_help_heading = "How caches are kept (lists multiply)")]
    pub keeping: KeepingArgs,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    read: ReadArgs,

    /// Run what is possible of a sweep and say what was skipped
    #[arg(long, help_heading = "Parameters of policies (lists and ranges multiply)")]
    skip_invalid: bool,

    /// What policies see of a row: the recorded weights, or these divided by their sum
    #[arg(long, value_parser = words::<ViewKind>(), default_value = "raw", help_heading = "How to measure")]
    view: ViewKind,

    /// A row with a negative weight or no number: stop, or pass over it and count it
    #[arg(long, value_parser = words::<BadRows>(), default_value = "error", value_name = "WHAT",
        help_heading = "How to measure")]
    on_bad_row: BadRows,

    /// Threads; results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "How to measure",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: usize,
}

/// The policies of several lists.
pub fn policies(lists: &[String]) -> Result<Vec<PolicySpec>, Error> {
    let parsed = lists.iter().map(|list| PolicySpec::parse_list(list)).collect::<Result<Vec<_>, _>>();
    Ok(parsed.map_err(Error::Usage)?.concat())
}

impl SweepArgs {
    /// The experiment that was described.
    pub fn experiment(
        &self,
        policies: Vec<PolicySpec>,
        traces: &[OsString],
        options: Options,
        quiet: bool,
    ) -> Result<Experiment, Error> {
        use_threads(self.threads)?;
        let (traces, read) = self.read.of(traces, quiet);
        Ok(Experiment {
            traces: traces.to_vec(),
            read,
            streams: self.streams.selection()?,
            lanes: self.lanes(policies)?,
            shape: BudgetShape::parse(&self.layer_budget)?,
            options,
        })
    }

    /// How it is run; what is measured stays as it is by default.
    pub fn options(&self) -> Options {
        Options {
            view: self.view,
            steps: self.steps,
            bad_rows: self.on_bad_row,
            max_memory: self.read.max_memory.unwrap_or(DEFAULT_MAX_MEMORY),
            ..Options::default()
        }
    }

    /// These policies, or those that run by default, with the budgets and parameters that were asked for.
    pub fn lanes(&self, policies: Vec<PolicySpec>) -> Result<LaneRequest, Error> {
        Ok(LaneRequest {
            policies,
            budgets: self.budgets()?,
            values: self.parameters.values()?,
            keeping: self.keeping.request()?,
            skip_refused: self.skip_invalid,
            ..LaneRequest::default()
        })
    }

    /// The budgets that were asked for.
    pub fn budgets(&self) -> Result<Vec<Budget>, Error> {
        let texts = expand_all("budget", &self.budget)?;
        texts.iter().map(|text| Budget::parse(text)).collect::<Result<_, _>>().map_err(Error::Usage)
    }
}
