//! The schema of results: every column with its name, unit, direction, meaning, how it is read and how
//! it merges.
//!
//! Keys stand here; parameters come from the table of parameters, sums and figures from the list of
//! meters. Every format, `kvsim table` and the merging of results follow from it.

use super::cell::CellKind;
use crate::meter::column::Kind;
use crate::meter::{self, Better, Figure, METERS, MeterEntry, Sum};
use crate::policy::parameter::{self, PARAMETERS, Parameter};
use std::borrow::Cow;

/// A column of results.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Name in CSV and JSON.
    pub name: Cow<'static, str>,
    /// What it counts in.
    pub unit: &'static str,
    /// One line.
    pub meaning: &'static str,
    /// What part it plays.
    pub role: Role,
    /// What its cells hold.
    pub kind: CellKind,
    /// How its value comes about.
    pub reading: Reading,
    /// How the values of two lines become one.
    pub merge: Merge,
}

/// The part that a column plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Says what was replayed and how it was measured: lines compare where these agree.
    Replayed,
    /// Says with which policy, budget and parameters: what is compared.
    Lane,
    /// Says where the line comes from; lines of different origin compare.
    Origin,
    /// A figure that people read.
    Figure(Better),
    /// A sum or an extreme: what results merge from.
    Sum,
    /// A column that this version does not know, carried along.
    Unknown,
}

/// How a value comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// It is given: a key, or a sum that was counted.
    Given,
    /// One column over the sum of others; blank where that is 0.
    Ratio(&'static str, &'static [&'static str]),
    /// Another column as it stands.
    Value(&'static str),
    /// Retained mass over that of a bound on the same caches at the same budget.
    Recovery(&'static str),
}

/// How the values of two lines become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// They must agree.
    Key,
    /// They say which part a line is about; of several parts, all are named.
    Part,
    /// They are added.
    Add,
    /// The least is kept.
    Least,
    /// The greatest is kept.
    Most,
    /// It says something of a whole only, and nothing of the parts of another: blank where lines merge.
    Whole,
    /// It is read from the merged columns.
    Derived,
    /// That of the weaker stream is kept.
    Weakest,
}

/// Figures in the order in which people ask for them; the others follow.
const READ_FIRST: &[&str] = &[
    "predicted_loss",
    "layer_error",
    "retained_mass",
    "retained_mass_full",
    "peak_miss_rate",
    "broken_row_rate",
    "update_error",
    "output_error",
    "heavy_recall",
    "pivotal_hit_rate",
    "recovery_oracle",
    "recovery_optimal",
    "mean_kept",
];

/// Every column, in the order of reports: keys, parameters, figures, sums.
pub fn columns() -> Vec<Column> {
    let parameters = PARAMETERS.iter().map(|parameter| of_parameter(parameter));
    let sums = METERS.iter().flat_map(|meter| meter.sums.iter().map(|sum| of_sum(meter, sum)));
    let keys = KEYS.iter().cloned().chain(parameters);
    keys.chain(figures()).chain(sums).collect()
}

/// The column with this name, if this version knows it.
pub fn find(name: &str) -> Option<Column> {
    columns().into_iter().find(|column| column.name == name)
}

fn figures() -> Vec<Column> {
    let of_meters = METERS.iter().flat_map(|meter| meter.figures).map(of_figure);
    let mut figures: Vec<Column> = of_meters.chain(DERIVED.iter().cloned()).collect();
    let place = |column: &Column| READ_FIRST.iter().position(|name| column.name == *name);
    figures.sort_by_key(|column| place(column).unwrap_or(READ_FIRST.len()));
    figures
}

impl Column {
    /// A column that this version does not know.
    pub fn unknown(name: &str) -> Column {
        let name = Cow::Owned(crate::text::plain(name).into_owned());
        Column { name, ..column("", "", Role::Unknown, CellKind::Label, Merge::Key, "") }
    }

    /// Whether it tells lines apart, rather than saying what came out.
    pub fn is_key(&self) -> bool {
        matches!(self.role, Role::Replayed | Role::Lane | Role::Origin | Role::Unknown)
    }

    /// Whether it names the policy or one of its parameters.
    pub fn is_of_policy(&self) -> bool {
        self.role == Role::Lane && self.name != "budget"
    }

    /// Which direction is better.
    pub fn better(&self) -> Better {
        if let Role::Figure(better) = self.role { better } else { Better::Neither }
    }
}

const fn column(
    name: &'static str,
    unit: &'static str,
    role: Role,
    kind: CellKind,
    merge: Merge,
    meaning: &'static str,
) -> Column {
    Column { name: Cow::Borrowed(name), unit, meaning, role, kind, reading: Reading::Given, merge }
}

const fn replayed(name: &'static str, unit: &'static str, kind: CellKind, meaning: &'static str) -> Column {
    column(name, unit, Role::Replayed, kind, Merge::Key, meaning)
}

const fn derived(
    name: &'static str,
    unit: &'static str,
    role: Role,
    reading: Reading,
    meaning: &'static str,
) -> Column {
    let (kind, merge) = (CellKind::Real, Merge::Derived);
    Column { name: Cow::Borrowed(name), unit, meaning, role, kind, reading, merge }
}

const DESCRIBES: Role = Role::Figure(Better::Neither);

const KEYS: &[Column] = &[
    replayed("trace", "", CellKind::Text, "the trace"),
    column(
        "layer",
        "",
        Role::Replayed,
        CellKind::Label,
        Merge::Part,
        "layer of the caches; `all` of the trace's, or those chosen: `3,10`, `0..3`",
    ),
    column(
        "head",
        "",
        Role::Replayed,
        CellKind::Label,
        Merge::Part,
        "head of the caches; `all` of these layers', or those chosen; `layer/head` where layers differ in them",
    ),
    column("policy", "", Role::Lane, CellKind::Text, Merge::Key, "the policy"),
    column("budget", "positions", Role::Lane, CellKind::Count, Merge::Key, "most positions held between steps"),
    derived(
        "budget_share",
        "of positions",
        DESCRIBES,
        Reading::Ratio("budget", &["positions"]),
        "budget over the trace's positions",
    ),
    column(
        "scope",
        "",
        Role::Lane,
        CellKind::Text,
        Merge::Key,
        "who shares a kept set: head, for each KV head one; layer",
    ),
    column(
        "combine",
        "",
        Role::Lane,
        CellKind::Text,
        Merge::Key,
        "the row that the policy sees of its query heads: their mean, max or sum, or each; blank where it sees none",
    ),
    column(
        "evict_every",
        "positions",
        Role::Lane,
        CellKind::Count,
        Merge::Key,
        "positions by which the budget is outgrown before it is cut back to; blank where nothing is cut so",
    ),
    column(
        "page",
        "positions",
        Role::Lane,
        CellKind::Count,
        Merge::Key,
        "positions of a block, where whole blocks go; 1 where single positions do",
    ),
    replayed("layer_shape", "", CellKind::Text, "how the budget was dealt out to layers, as asked for"),
    replayed(
        "prompt",
        "",
        CellKind::Text,
        "stream: the budget held from the first row; block: the prompt was cut down at its end; once: and nothing later",
    ),
    replayed("prompt_len", "positions", CellKind::Count, "positions of a prompt that was cut down at its end"),
    column(
        "prompt_chunk",
        "rows",
        Role::Lane,
        CellKind::Count,
        Merge::Key,
        "rows after which the prompt was cut while it was read; blank where at its end alone",
    ),
    replayed("view", "", CellKind::Text, "what policies saw: raw or renormalized weights"),
    replayed("heavy_hitters", "positions", CellKind::Count, "k of heavy_recall"),
    replayed(
        "output_every",
        "positions",
        CellKind::Count,
        "outputs were measured in the rows of every so manieth position",
    ),
    replayed(
        "kv_heads",
        "",
        CellKind::Label,
        "caches in a layer that its query heads share; `off` where each stream has its own",
    ),
    column("caches", "caches", Role::Replayed, CellKind::Count, Merge::Add, "caches that the line is about"),
    replayed("rows", "rows", CellKind::Count, "rows of each stream that were replayed"),
    replayed("rows_total", "rows", CellKind::Count, "rows of each stream that there are"),
    replayed("positions", "positions", CellKind::Count, "positions of the trace"),
    replayed("self", "", CellKind::Text, "whether rows hold the token itself: included or excluded"),
    replayed("first_position", "positions", CellKind::Count, "position of the first row"),
    replayed("start", "positions", CellKind::Count, "positions at the start that were left out as padding"),
    replayed("normalize", "", CellKind::Text, "what rows were divided by: off, or rows for their own sum"),
    replayed(
        "expiry",
        "",
        CellKind::Text,
        "on: positions that have left their layer's sliding window leave the cache; off: they stay until evicted",
    ),
    replayed("content", "", CellKind::Text, "hash of the trace's content"),
    column("version", "", Role::Origin, CellKind::Text, Merge::Key, "version of kvsim"),
];

/// Figures that are read from several lines, or from the caches of one.
const DERIVED: &[Column] = &[
    derived(
        "recovery_oracle",
        "share",
        Role::Figure(Better::Higher),
        Reading::Recovery("oracle"),
        "retained_mass over that of oracle at the same budget, where the run has it",
    ),
    derived(
        "recovery_optimal",
        "share",
        Role::Figure(Better::Higher),
        Reading::Recovery("optimal"),
        "retained_mass over that of optimal at the same budget, where the run has it",
    ),
    column(
        "worst_retained_mass",
        "mass per row",
        DESCRIBES,
        CellKind::Real,
        Merge::Weakest,
        "retained_mass of the weakest cache, where several are combined",
    ),
    column(
        "worst_stream",
        "",
        DESCRIBES,
        CellKind::Text,
        Merge::Weakest,
        "the weakest cache as layer/head, which no program takes for a number",
    ),
];

fn of_parameter(parameter: &'static Parameter) -> Column {
    let kind = match parameter.kind {
        parameter::Kind::Count { .. } => CellKind::Count,
        parameter::Kind::Real { .. } => CellKind::Real,
        parameter::Kind::Word(_) => CellKind::Text,
        parameter::Kind::CountOrShare { .. } | parameter::Kind::CountOr(_) => CellKind::Label,
    };
    column(parameter.column, "", Role::Lane, kind, Merge::Key, parameter.summary)
}

fn of_sum(meter: &MeterEntry, sum: &'static Sum) -> Column {
    let kind = if sum.kind == Kind::Count { CellKind::Count } else { CellKind::Real };
    let merge = match sum.merge {
        _ if meter.of_wholes => Merge::Whole,
        meter::Merge::Add => Merge::Add,
        meter::Merge::Least => Merge::Least,
        meter::Merge::Most => Merge::Most,
    };
    column(sum.name, sum.unit, Role::Sum, kind, merge, sum.meaning)
}

fn of_figure(figure: &'static Figure) -> Column {
    let reading = match figure.reading {
        meter::Reading::Ratio(part, whole) => Reading::Ratio(part, whole),
        meter::Reading::Value(sum) => Reading::Value(sum),
    };
    let role = Role::Figure(figure.better);
    derived(figure.name, figure.unit, role, reading, figure.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_columns_have_one_name_and_every_reading_names_columns() {
        let columns = columns();
        let known = |name: &str| columns.iter().filter(|column| column.name == name).count();
        for column in &columns {
            assert_eq!(known(&column.name), 1, "{}", column.name);
            let sources = match column.reading {
                Reading::Given => vec![],
                Reading::Ratio(part, whole) => [&[part], whole].concat(),
                Reading::Value(sum) => vec![sum],
                Reading::Recovery(_) => vec!["retained_mass"],
            };
            assert!(sources.iter().all(|name| known(name) == 1), "{}", column.name);
        }
        assert!(READ_FIRST.iter().all(|name| known(name) == 1));
    }
}
