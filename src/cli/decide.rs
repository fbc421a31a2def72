//! `kvsim decide`: decides for a model that runs, over a pipe.

use super::keeping::KeepingArgs;
use super::list::expand_all;
use super::parameters::ParameterArgs;
use super::sweep_args::policies;
use super::words::words;
use anyhow::Result;
use clap::Args;
use kvsim::decisions::decide::{Deciding, Hello};
use kvsim::error::Error;
use kvsim::experiment::{Budget, BudgetShape, LaneRequest};
use kvsim::meter;
use kvsim::policy::rounding::Rounding;
use kvsim::replay::{Options, ViewKind};
use std::ffi::OsString;
use std::io::{BufReader, BufWriter};
use std::process::ExitCode;

/// Decide for a model that runs: rows of attention in, evictions out, over a pipe
///
/// The first line of standard input names the caches of the model, and is answered by a line that says what decides.
/// Then each frame is one row of one cache and is answered by the positions that leave it. docs/decisions.md has the
/// form; traces/loss.py --closed speaks it, so that there is one implementation of every policy.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim decide --policy h2o --budget 128\n  \
    python traces/loss.py MODEL --text FILE --closed --policy h2o --budget 128")]
pub struct DecideArgs {
    /// The policy, parameters in place where need be: h2o:recent-window=16
    #[arg(short, long, value_name = "POLICY", required = true)]
    policy: String,

    /// Most positions held between steps: a count, or a share of the positions that the first line names
    #[arg(short, long, value_name = "N")]
    budget: Vec<String>,

    /// How the budget is dealt out to layers, the same in total: uniform, pyramid:RATIO, funnel:RATIO, or a JSON file
    #[arg(long, value_name = "SHAPE", default_value = "uniform")]
    layer_budget: OsString,

    #[command(flatten, next_help_heading = "How caches are kept")]
    keeping: KeepingArgs,

    /// What the policy sees of a row: the weights as they come, or these divided by their sum
    #[arg(long, value_parser = words::<ViewKind>(), default_value = "raw")]
    view: ViewKind,

    /// Round what the policy scores by to this type after every row
    #[arg(long, value_parser = words::<Rounding>(), value_name = "TYPE")]
    round_scores: Option<Rounding>,

    #[command(flatten)]
    parameters: ParameterArgs,
}

impl DecideArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let (request, shape) = (self.request()?, BudgetShape::parse(&self.layer_budget)?);
        let mut input = BufReader::new(std::io::stdin());
        let deciding = Deciding::new(&Hello::read(&mut input)?, &request, &shape, &self.options())?;
        deciding.run(&mut input, &mut BufWriter::new(std::io::stdout()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn request(&self) -> Result<LaneRequest, Error> {
        let budgets = expand_all("budget", &self.budget)?;
        let request = LaneRequest {
            policies: policies(std::slice::from_ref(&self.policy))?,
            budgets: budgets.iter().map(|text| Budget::parse(text)).collect::<Result<_, _>>().map_err(Error::Usage)?,
            values: self.parameters.values()?,
            keeping: self.keeping.request()?,
            rounding: self.round_scores,
            ..LaneRequest::default()
        };
        request.check()?;
        Ok(request)
    }

    fn options(&self) -> Options {
        Options { view: self.view, meters: meter::least(), ..Options::default() }
    }
}
