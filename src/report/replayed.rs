//! From outcomes to results: one line for each lane, on one cache or on several combined.

use super::cell::Cell;
use super::identity::{Identity, label, pair, part};
use super::results::Results;
use super::schema::{self, Column};
use crate::meter::{self, METERS, Number, Tally};
use crate::policy::parameter::{PARAMETERS, Parameter, Value};
use crate::replay::{LanePlan, Outcome};
use crate::trace::{Head, StreamLabel};
use crate::word::Word;
use std::collections::BTreeMap;

/// What lines are made for, beside each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Per {
    /// One line, combined over all caches.
    #[default]
    Trace,
    /// One line for each cache.
    Stream,
    /// One line for each layer, its heads combined.
    Layer,
    /// One line for each head, its layers combined.
    Head,
}

/// What caches are combined by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// One line for each layer, its heads combined
    Layer,
    /// One line for each head, its layers combined
    Head,
}

impl Word for By {
    const WORDS: &'static [(By, &'static str, &'static str)] = &[
        (By::Layer, "layer", "one line for each layer, its heads combined"),
        (By::Head, "head", "one line for each head, its layers combined"),
    ];
}

/// What came out of one replay of one trace.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// What was replayed, and how.
    pub identity: &'a Identity,
    /// The lanes, in the order of the tallies.
    pub lanes: &'a [LanePlan],
    /// What came out.
    pub outcomes: &'a [Outcome],
}

impl<'a> Replayed<'a> {
    /// One line for each lane, and for what else it is made for.
    pub fn per(self, per: Per) -> Results {
        match per {
            Per::Trace => self.combined(),
            Per::Stream => self.per_stream(),
            Per::Layer => self.by(By::Layer),
            Per::Head => self.by(By::Head),
        }
    }

    /// One line for each lane, combined over all caches.
    fn combined(self) -> Results {
        self.results(&[(self.outcomes.iter().collect(), self.identity.available.iter().collect())])
    }

    /// One line for each cache and lane.
    fn per_stream(self) -> Results {
        let alone = |outcome: &'a Outcome| (vec![outcome], vec![&outcome.cache.label]);
        self.results(&self.outcomes.iter().map(alone).collect::<Vec<_>>())
    }

    /// One line for each layer or head, and lane.
    fn by(self, by: By) -> Results {
        let mut groups: BTreeMap<(Option<u32>, Option<&Head>), Vec<&'a Outcome>> = BTreeMap::new();
        for outcome in self.outcomes {
            groups.entry(group_of(&outcome.cache.label, by)).or_default().push(outcome);
        }
        let mut whole: BTreeMap<(Option<u32>, Option<&Head>), Vec<&'a StreamLabel>> = BTreeMap::new();
        for label in &self.identity.available {
            whole.entry(group_of(label, by)).or_default().push(label);
        }
        let group = |(key, outcomes)| (outcomes, whole.remove(&key).unwrap_or_default());
        self.results(&groups.into_iter().map(group).collect::<Vec<_>>())
    }

    /// The lines of some groups of caches, each with all the caches of its kind that there are.
    fn results(self, groups: &[(Vec<&'a Outcome>, Vec<&'a StreamLabel>)]) -> Results {
        let columns = schema::columns();
        let sources: Vec<Source> = columns.iter().map(|column| Source::of(column, self.identity)).collect();
        let mut results = Results::new(columns);
        for (outcomes, whole) in groups {
            let labels: Vec<&StreamLabel> = named(outcomes);
            let part = part(&labels, whole);
            for lane in 0..self.lanes.len() {
                let group = Group::new(self, outcomes, &part, lane);
                if group.outcomes.is_empty() && !outcomes.is_empty() {
                    continue;
                }
                results.push(sources.iter().map(|source| group.cell(source)).collect());
            }
        }
        results.derive();
        results
    }
}

/// The labels of caches; of layers' sets where these stand alone.
fn named<'a>(outcomes: &[&'a Outcome]) -> Vec<&'a StreamLabel> {
    let is_layer = |outcome: &Outcome| outcome.cache.layer_set.is_some();
    let all_layers = outcomes.iter().all(|outcome| is_layer(outcome));
    let of_caches = outcomes.iter().filter(|outcome| all_layers || !is_layer(outcome));
    of_caches.map(|outcome| &outcome.cache.label).collect()
}

/// The group that a cache belongs to.
fn group_of(label: &StreamLabel, by: By) -> (Option<u32>, Option<&Head>) {
    match by {
        By::Layer => (Some(label.layer), None),
        By::Head => (None, Some(&label.head)),
    }
}

/// Where the cells of a column come from.
enum Source {
    /// The same in every line.
    Shared(Cell),
    Layer,
    Head,
    Caches,
    Policy,
    Budget,
    /// How the lane's caches are kept.
    Keeping(fn(&LanePlan) -> Cell),
    WorstMass,
    WorstStream,
    Parameter(&'static Parameter),
    /// A sum of a meter.
    Sum(&'static str),
}

impl Source {
    fn of(column: &Column, identity: &Identity) -> Source {
        match &*column.name {
            "layer" => Source::Layer,
            "head" => Source::Head,
            "caches" => Source::Caches,
            "policy" => Source::Policy,
            "budget" => Source::Budget,
            "scope" => Source::Keeping(scope),
            "combine" => Source::Keeping(combine),
            "evict_every" => Source::Keeping(evict_every),
            "page" => Source::Keeping(page),
            "kv_bits" => Source::Keeping(kv_bits),
            "key_groups" => Source::Keeping(key_groups),
            "prompt" => Source::Keeping(|plan| Cell::text(plan.keeping.prompt.mode.word())),
            "prompt_len" => Source::Keeping(|plan| Cell::count(Some(plan.keeping.prompt.len).filter(|len| *len > 0))),
            "prompt_chunk" => Source::Keeping(|plan| Cell::count(plan.keeping.prompt.chunk)),
            "worst_retained_mass" => Source::WorstMass,
            "worst_stream" => Source::WorstStream,
            name => match (PARAMETERS.iter().find(|parameter| parameter.column == name), sum(name)) {
                (Some(parameter), _) => Source::Parameter(parameter),
                (None, Some(sum)) => sum,
                (None, None) => Source::Shared(identity.cell(name).unwrap_or(Cell::Blank)),
            },
        }
    }
}

fn kv_bits(plan: &LanePlan) -> Cell {
    plan.keeping.bits.map_or(Cell::Blank, |bits| label(&bits.to_string()))
}

fn key_groups(plan: &LanePlan) -> Cell {
    let few = plan.keeping.bits.filter(|bits| bits.keys != 16);
    few.map_or(Cell::Blank, |bits| Cell::text(bits.key_groups.word()))
}

fn sum(name: &str) -> Option<Source> {
    let mut sums = METERS.iter().flat_map(|meter| meter.sums);
    sums.find(|sum| sum.name == name).map(|sum| Source::Sum(sum.name))
}

/// One lane on some caches.
struct Group<'a> {
    /// Those on which it keeps a set.
    outcomes: Vec<&'a Outcome>,
    /// How the caches are called: layer and head.
    part: &'a [Cell; 2],
    plan: &'a LanePlan,
    tally: Tally,
    /// The cache with the least retained mass, where there are several.
    worst: Option<(f64, &'a StreamLabel)>,
}

impl<'a> Group<'a> {
    fn new(replayed: Replayed<'a>, outcomes: &'a [&'a Outcome], part: &'a [Cell; 2], lane: usize) -> Group<'a> {
        let kept = outcomes.iter().copied().filter(|outcome| !outcome.tallies[lane].is_empty());
        let outcomes: Vec<&Outcome> = kept.collect();
        let worst = if outcomes.len() > 1 { worst(&outcomes, lane) } else { None };
        let tally = merged(&outcomes, lane);
        Group { outcomes, part, plan: &replayed.lanes[lane], tally, worst }
    }

    fn cell(&self, source: &Source) -> Cell {
        match source {
            Source::Shared(cell) => cell.clone(),
            Source::Layer => self.part[0].clone(),
            Source::Head => self.part[1].clone(),
            Source::Caches => Cell::count(Some(self.outcomes.iter().map(|outcome| outcome.cache.stands_for()).sum())),
            Source::Policy => Cell::text(self.plan.entry.name),
            Source::Budget => Cell::count(self.plan.budget),
            Source::Keeping(cell) => cell(self.plan),
            Source::WorstMass => self.worst.map(|(mass, _)| mass).into(),
            Source::WorstStream => self.worst.map_or(Cell::Blank, |(_, label)| Cell::text(&pair(label))),
            Source::Parameter(parameter) => self.plan.values.get(parameter).map_or(Cell::Blank, of_value),
            Source::Sum(name) => self.tally.number(name).map_or(Cell::Blank, of_number),
        }
    }
}

/// Blank where nobody shares anything.
fn scope(plan: &LanePlan) -> Cell {
    let matters = plan.entry.scopes() || plan.entry.own.scope.is_some();
    if matters { Cell::text(plan.keeping.scope.word()) } else { Cell::Blank }
}

/// Blank where the policy sees no row.
fn combine(plan: &LanePlan) -> Cell {
    let matters = plan.entry.combines() || plan.entry.own.combine.is_some();
    if matters { Cell::text(plan.keeping.combine.word()) } else { Cell::Blank }
}

/// Blank where the policy has its own cuts, or none.
fn evict_every(plan: &LanePlan) -> Cell {
    if plan.entry.cut_late() { Cell::count(Some(plan.keeping.evict_every)) } else { Cell::Blank }
}

fn page(plan: &LanePlan) -> Cell {
    if plan.entry.pages() { Cell::count(Some(plan.keeping.page)) } else { Cell::Blank }
}

fn of_value(value: Value) -> Cell {
    match value {
        Value::Count(count) => Cell::count(Some(count)),
        Value::Real(real) => Cell::Real(real),
        Value::Word(_) | Value::Share(_) => label(&value.to_string()),
    }
}

fn of_number(number: Number) -> Cell {
    match number {
        Number::Count(count) => Cell::Count(count),
        Number::Real(real) => Cell::Real(real),
    }
}

/// The cache with the least retained mass; the first of those that tie.
fn worst<'a>(outcomes: &[&'a Outcome], lane: usize) -> Option<(f64, &'a StreamLabel)> {
    let mass = |outcome: &&'a Outcome| Some((outcome.tallies[lane].figure("retained_mass")?, &outcome.cache.label));
    let masses = outcomes.iter().filter_map(mass);
    masses.reduce(|least, next| if next.0 < least.0 { next } else { least })
}

fn merged(outcomes: &[&Outcome], lane: usize) -> Tally {
    // A trace without streams has counted nothing, which is not the same as not counting.
    let start = if outcomes.is_empty() { Tally::of_no_cache(&meter::defaults()) } else { Tally::default() };
    outcomes.iter().fold(start, |mut sum, outcome| {
        sum.merge(&outcome.tallies[lane]);
        sum
    })
}
