//! `kvsim diff`: where two policies, settings or files of decisions part, why, and what it costs.

mod text;

use super::notes;
use super::output::{Output, print};
use super::sweep_args::SweepArgs;
use super::words::words;
use anyhow::Result;
use clap::{Args, ValueEnum};
use kvsim::decisions::diff::{Diff, of_files, of_lanes};
use kvsim::decisions::{Decisions, LaneHeader};
use kvsim::error::Error;
use kvsim::experiment::{Budget, Experiment, LaneRequest, OpenTrace};
use kvsim::policy::rounding::Rounding;
use kvsim::policy::spec::{Named, PolicySpec};
use kvsim::policy::table::find;
use kvsim::replay::{LanePlan, Options};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Say where two policies, settings or files of decisions part, why, and what it costs
///
/// A and B are policies (h2o, h2o:recent-window=33) or files of decisions (docs/decisions.md), from another
/// version of kvsim or from an engine. For each cache: the first step at which they evict otherwise, and why, as
/// far as what the slots were judged by tells: a tie, a rounding, a window, a flipped sign; how far the kept sets
/// drift apart; and what each retains. Two files are compared without a trace too, by positions and steps alone.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim diff h2o scissorhands trace.safetensors --budget 64\n  \
    kvsim diff h2o:recent-window=32 h2o:recent-window=33 trace.safetensors --budget 64\n  \
    kvsim diff h2o h2o trace.safetensors --budget 64 --round-scores bf16\n  \
    kvsim diff h2o engine.jsonl trace.safetensors --budget 64\n  \
    kvsim diff old.jsonl new.jsonl")]
pub struct DiffArgs {
    /// A policy, or a file of decisions
    #[arg(value_name = "A")]
    one: String,

    /// Another
    #[arg(value_name = "B")]
    other: String,

    /// The trace that they decide on; several files with --join [without one, two files are compared alone]
    #[arg(value_name = "TRACE")]
    traces: Vec<OsString>,

    #[command(flatten)]
    sweep: SweepArgs,

    /// Round what B scores by to this type after every row, as an engine that holds it in fewer bits
    #[arg(long, value_parser = words::<Rounding>(), value_name = "TYPE", help_heading = "What to replay")]
    round_scores: Option<Rounding>,

    /// Which lane of a file that holds several: 0 for the first, or 0,2 for A and B
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0", help_heading = "What to replay")]
    lane: Vec<usize>,

    /// Output format
    #[arg(short, long, value_enum, default_value = "text", help_heading = "Output")]
    format: Format,

    /// List every cache that parts, however many; json always does
    #[arg(long, help_heading = "Output")]
    all: bool,

    /// Write the report to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No notes
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One object
    Json,
}

/// One of the two.
enum Side {
    Policy(PolicySpec),
    File(Decisions, usize),
}

impl DiffArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let sides = [self.side(&self.one, 0)?, self.side(&self.other, 1)?];
        let (names, diff) = match (&sides, self.traces.is_empty()) {
            ([Side::File(one, lane), Side::File(other, other_lane)], true) => {
                (names(&sides, [None, None]), of_files([(one, *lane), (other, *other_lane)])?)
            }
            (_, true) => return Err(Error::usage("a policy decides on a trace: name one after A and B").into()),
            _ => self.on_trace(&sides)?,
        };
        let report = match self.format {
            Format::Text => text::text(&names, &diff, self.all),
            Format::Json => format!("{}\n", text::json(&names, &diff)),
        };
        let Some(path) = &self.output else { return print(&report) };
        let mut output = Output::open(Some(path))?;
        std::io::Write::write_all(&mut output, report.as_bytes())?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    /// What an operand names: a policy, if there is one of that name, else a file.
    fn side(&self, operand: &str, side: usize) -> Result<Side, Error> {
        let name = Named::split(operand).ok().and_then(|named| Some(named.first()?.name.clone()));
        if name.is_some_and(|name| find(&name).is_some()) {
            let specs = PolicySpec::parse_list(operand).map_err(Error::Usage)?;
            let [spec] = &specs[..] else {
                return Err(Error::usage(format!("{operand:?} is not one policy: A and B are one each")));
            };
            return Ok(Side::Policy(spec.clone()));
        }
        if !Path::new(operand).exists() {
            return Err(Error::usage(format!("{operand:?} is neither a policy (kvsim policies) nor a file")));
        }
        let file = Decisions::read(Path::new(operand))?;
        let lane = *self.lane.get(side).or(self.lane.last()).unwrap_or(&0);
        let lanes = file.header.lanes.len();
        if lane >= lanes {
            return Err(Error::usage(format!("--lane {lane}: {operand} has {lanes}, 0..={}", lanes - 1)));
        }
        Ok(Side::File(file, lane))
    }

    fn on_trace(&self, sides: &[Side; 2]) -> Result<([String; 2], Diff)> {
        let experiment = self.sweep.experiment(Vec::new(), &self.traces, self.sweep.options(), self.quiet)?;
        let [trace] = &experiment.traces[..] else {
            return Err(Error::usage("several files are one trace only with --join").into());
        };
        let (trace, options) = experiment.open(trace, &mut notes::listener(self.quiet))?;
        let lane = |side: usize| self.plan(sides, side, &experiment, &trace, &options);
        let mut lanes = [lane(0)?, lane(1)?];
        // A file does not say which rows are of a prompt, and so are not measured.
        let prompts = [lanes[1].keeping.prompt, lanes[0].keeping.prompt];
        let played = lanes.iter_mut().zip(prompts).filter(|(lane, _)| lane.playback.is_some());
        played.for_each(|(lane, prompt)| lane.keeping.prompt = prompt);
        let names = names(sides, [0, 1].map(|side| Some(LaneHeader::of(&lanes[side], &[]).in_words())));
        Ok((names, of_lanes(&*trace.source, trace.caches(), lanes, &options)?))
    }

    /// The lane of a side on a trace.
    fn plan(
        &self,
        sides: &[Side; 2],
        side: usize,
        experiment: &Experiment,
        trace: &OpenTrace,
        options: &Options,
    ) -> Result<LanePlan, Error> {
        let spec = match &sides[side] {
            Side::Policy(spec) => spec,
            Side::File(file, lane) => return Ok(LanePlan::played(file.playback(*lane))),
        };
        let request = LaneRequest {
            policies: vec![spec.clone()],
            budgets: self.budget(sides, side)?.into_iter().collect(),
            rounding: self.round_scores.filter(|_| side == 1),
            ..experiment.lanes.clone()
        };
        let keeping = request.keeping.of(trace.info())?;
        let lanes = request.checked_lanes(trace.chosen.positions, trace.caches(), &options.budgets, &keeping)?;
        let mut lanes = lanes.possible;
        match (lanes.pop(), lanes.is_empty()) {
            (Some(lane), true) if lane.entry.holds_positions() => Ok(lane),
            (Some(lane), true) => Err(Error::usage(format!("{} holds no positions that could leave", lane.entry.name))),
            _ => Err(Error::usage(format!("{}: name one value of each parameter", spec.entry.name))),
        }
    }

    /// The budget of a side: as asked for, or that of the file beside it.
    fn budget(&self, sides: &[Side; 2], side: usize) -> Result<Option<Budget>, Error> {
        let asked = self.sweep.budgets()?;
        if asked.len() > 2 {
            return Err(Error::usage("--budget takes one for both, or one for A and one for B"));
        }
        let of_file = match &sides[1 - side] {
            Side::File(file, lane) => file.header.lanes[*lane].budget.map(Budget::Count),
            Side::Policy(_) => None,
        };
        Ok(asked.get(side).or(asked.last()).copied().or(of_file))
    }
}

/// What the sides are called.
fn names(sides: &[Side; 2], lanes: [Option<String>; 2]) -> [String; 2] {
    let [one, other] = lanes;
    let name = |side: &Side, lane: Option<String>| match side {
        Side::Policy(spec) => lane.unwrap_or_else(|| spec.entry.name.to_owned()),
        Side::File(file, lane) => format!("{} ({})", file.name, file.header.lanes[*lane].in_words()),
    };
    [name(&sides[0], one), name(&sides[1], other)]
}
