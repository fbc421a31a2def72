//! The table of report columns: name, unit, meaning, which direction is better, how to compute.
//!
//! Every output format, `kvsim table`, and the documentation follow from it. A new metric is a line
//! here (and what it counts in the tally).

use super::cell::Cell;
use super::line::Line;
use crate::meter::{self, METERS, MeterEntry, Number};
use crate::policy::parameter::{PARAMETERS, Parameter, Value};
use crate::trace::Head;

/// A column of the report.
#[derive(Clone, Copy)]
pub struct Column {
    /// Name in CSV and JSON.
    pub name: &'static str,
    /// What it counts in.
    pub unit: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What part it plays.
    pub role: Role,
    value: Compute,
}

/// The part that a column plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Says which line this is.
    Key,
    /// A figure of merit; shown in tables for people.
    Figure(Better),
    /// A figure that describes, without better or worse.
    Plain,
    /// A sum or count behind the means: results merge exactly from these.
    Raw,
}

/// Which direction of a figure is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

#[derive(Clone, Copy)]
enum Compute {
    /// From a line.
    Line(fn(&Line<'_>) -> Cell),
    /// What meters counted, by the name of the column: a figure or a sum.
    Counted,
    /// The value of a parameter.
    Parameter(&'static Parameter),
}

impl Column {
    /// The value of a line in this column.
    pub fn cell(&self, line: &Line<'_>) -> Cell {
        match self.value {
            Compute::Line(compute) => compute(line),
            Compute::Counted => match line.tally.number(self.name) {
                Some(Number::Count(count)) => Cell::Count(count),
                Some(Number::Real(real)) => Cell::Real(real),
                None => line.tally.figure(self.name).into(),
            },
            Compute::Parameter(parameter) => match line.lane.values.get(parameter) {
                None => Cell::Blank,
                Some(Value::Count(count)) => Cell::Count(count as u64),
                Some(Value::Real(real)) => Cell::Real(real),
                Some(value @ (Value::Word(_) | Value::Share(_))) => Cell::Text(value.to_string()),
            },
        }
    }
}

/// Every column, in the order of the report.
pub fn columns() -> Vec<Column> {
    let parameters = PARAMETERS.iter().map(|parameter| Column {
        name: parameter.column,
        unit: "",
        summary: parameter.summary,
        role: Role::Key,
        value: Compute::Parameter(parameter),
    });
    let mut all: Vec<Column> = KEYS.iter().copied().chain(parameters).chain(FIGURES.iter().copied()).collect();
    for column in METERS.iter().flat_map(counted) {
        if !all.iter().any(|known| known.name == column.name) {
            all.push(column);
        }
    }
    all
}

/// The figures and sums of a meter.
fn counted(entry: &MeterEntry) -> impl Iterator<Item = Column> {
    let figures = entry.figures.iter().map(|figure| {
        let role = match figure.better {
            meter::Better::Higher => HIGHER,
            meter::Better::Lower => LOWER,
            meter::Better::Neither => Role::Plain,
        };
        column(figure.name, figure.unit, role, Compute::Counted, figure.meaning)
    });
    let sums = entry.sums.iter().map(|sum| column(sum.name, sum.unit, Role::Raw, Compute::Counted, sum.meaning));
    figures.chain(sums)
}

/// The column with this name.
pub fn find(name: &str) -> Option<Column> {
    columns().into_iter().find(|column| column.name == name)
}

const HIGHER: Role = Role::Figure(Better::Higher);
const LOWER: Role = Role::Figure(Better::Lower);

const fn column(name: &'static str, unit: &'static str, role: Role, value: Compute, summary: &'static str) -> Column {
    Column { name, unit, summary, role, value }
}

const KEYS: &[Column] = &[
    column("trace", "", Role::Key, Compute::Line(|line| text(line.trace)), "the trace"),
    column("layer", "", Role::Key, Compute::Line(layer), "layer of the stream, `all` where several are combined"),
    column("head", "", Role::Key, Compute::Line(head), "head of the stream, `all` where several are combined"),
    column("policy", "", Role::Key, Compute::Line(|line| text(line.lane.entry.name)), "the policy"),
    column("budget", "positions", Role::Key, Compute::Line(budget), "most positions held between steps"),
    column(
        "budget_share",
        "of positions",
        Role::Plain,
        Compute::Line(budget_share),
        "budget over the trace's positions",
    ),
    column(
        "layer_budget",
        "positions",
        Role::Plain,
        Compute::Counted,
        "mean over streams of the budget in force, which differs where budgets are dealt out to layers",
    ),
    column(
        "layer_shape",
        "",
        Role::Key,
        Compute::Line(|line| text(line.layer_shape)),
        "how the budget was dealt out to layers, as asked for",
    ),
    column(
        "prompt",
        "",
        Role::Key,
        Compute::Line(|line| text(line.prompt)),
        "stream: the budget held from the first row; block: the prompt was cut down at once",
    ),
    column(
        "view",
        "",
        Role::Key,
        Compute::Line(|line| text(line.view)),
        "what policies saw: raw or renormalized weights",
    ),
    column(
        "heavy_hitters",
        "positions",
        Role::Key,
        Compute::Line(|line| Cell::Count(line.heavy_hitters as u64)),
        "k of heavy_recall",
    ),
];

const FIGURES: &[Column] = &[
    column("steps", "steps", Role::Plain, Compute::Counted, "steps measured"),
    column("retained_mass", "mass per row", HIGHER, Compute::Counted, "mean over rows of the weight on kept positions"),
    column(
        "retained_mass_full",
        "mass per row",
        HIGHER,
        Compute::Counted,
        "the same over rows measured after the first eviction",
    ),
    column("heavy_recall", "share", HIGHER, Compute::Counted, "share of each row's k heaviest positions that are kept"),
    column(
        "pivotal_hit_rate",
        "share",
        HIGHER,
        Compute::Counted,
        "share of positions with more than 1 / row length that are kept",
    ),
    column(
        "peak_miss_rate",
        "share of rows",
        LOWER,
        Compute::Counted,
        "rows in which a position with weight above 0.1 is not kept",
    ),
    column(
        "broken_row_rate",
        "share of rows",
        LOWER,
        Compute::Counted,
        "rows that keep less than a tenth of their total",
    ),
    column("row_mass", "mass per row", Role::Plain, Compute::Counted, "mean over rows of the weight on all positions"),
    column("min_step_mass", "mass", HIGHER, Compute::Counted, "least weight that was kept of a row"),
    column(
        "recovery_oracle",
        "share",
        HIGHER,
        Compute::Line(|line| recovery(line, line.oracle)),
        "retained_mass over that of oracle at the same budget, where the run has it",
    ),
    column(
        "recovery_optimal",
        "share",
        HIGHER,
        Compute::Line(|line| recovery(line, line.optimal)),
        "retained_mass over that of optimal at the same budget, where the run has it",
    ),
    column(
        "worst_retained_mass",
        "mass per row",
        Role::Plain,
        Compute::Line(|line| line.worst.map(|(mass, _)| mass).into()),
        "retained_mass of the weakest stream, where several are combined",
    ),
    column("worst_stream", "", Role::Plain, Compute::Line(worst_stream), "the weakest stream"),
    column("skipped_rows", "steps", Role::Plain, Compute::Counted, "steps without usable attention"),
    column(
        "prompt_steps",
        "steps",
        Role::Plain,
        Compute::Counted,
        "steps of a prompt that is cut down at once: observed, not measured",
    ),
    column("eviction_calls", "calls", Role::Plain, Compute::Counted, "times that the policy had to evict"),
    column("evicted", "positions", Role::Plain, Compute::Counted, "positions evicted"),
    column(
        "expired",
        "positions",
        Role::Plain,
        Compute::Counted,
        "positions that left because no later row can attend to them",
    ),
    column(
        "mean_kept",
        "positions",
        Role::Plain,
        Compute::Counted,
        "mean over steps of the positions held after eviction",
    ),
    column("peak_kept", "positions", Role::Plain, Compute::Counted, "most positions held after eviction"),
    column(
        "state_bytes",
        "bytes",
        Role::Plain,
        Compute::Counted,
        "policy state and 4 bytes a position, at the most slots held",
    ),
    column("retained_mass_sum", "mass", Role::Raw, Compute::Counted, "sum behind retained_mass"),
    column("rows", "rows", Role::Raw, Compute::Counted, "rows behind the means"),
    column("retained_mass_full_sum", "mass", Role::Raw, Compute::Counted, "sum behind retained_mass_full"),
    column("rows_full", "rows", Role::Raw, Compute::Counted, "rows behind retained_mass_full"),
    column("row_mass_sum", "mass", Role::Raw, Compute::Counted, "sum behind row_mass"),
    column("heavy_hits", "positions", Role::Raw, Compute::Counted, "heavy positions kept"),
    column("heavy_possible", "positions", Role::Raw, Compute::Counted, "heavy positions"),
    column("pivotal_hits", "positions", Role::Raw, Compute::Counted, "pivotal positions kept"),
    column("pivotal_possible", "positions", Role::Raw, Compute::Counted, "pivotal positions"),
    column("peak_misses", "rows", Role::Raw, Compute::Counted, "rows behind peak_miss_rate"),
    column("broken_rows", "rows", Role::Raw, Compute::Counted, "rows behind broken_row_rate"),
    column("kept_sum", "positions", Role::Raw, Compute::Counted, "sum behind mean_kept, over steps + skipped_rows"),
];

fn text(word: &str) -> Cell {
    Cell::Text(word.to_owned())
}

fn layer(line: &Line<'_>) -> Cell {
    line.streams.layer.map_or(text("all"), |layer| Cell::Count(u64::from(layer)))
}

fn head(line: &Line<'_>) -> Cell {
    text(&line.streams.head.map_or("all".to_owned(), Head::to_string))
}

fn budget(line: &Line<'_>) -> Cell {
    line.lane.budget.map_or(Cell::Blank, |budget| Cell::Count(budget as u64))
}

fn budget_share(line: &Line<'_>) -> Cell {
    line.lane.budget.map_or(Cell::Blank, |budget| Cell::ratio(budget as f64, line.positions as u64))
}

fn recovery(line: &Line<'_>, best: Option<f64>) -> Cell {
    let best = best.filter(|best| *best > 0.0);
    best.and_then(|best| Some(line.tally.figure("retained_mass")? / best)).into()
}

fn worst_stream(line: &Line<'_>) -> Cell {
    line.worst.map_or(Cell::Blank, |(_, label)| Cell::Text(label.to_string()))
}
