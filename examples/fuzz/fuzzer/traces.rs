//! Traces: opened, read, inspected, replayed, analyzed and converted.

use super::check::{Checked, Verdict, refused};
use super::random::Random;
use kvsim::analyze::analyze;
use kvsim::error::{Error, Result};
use kvsim::inspect::inspect_stream;
use kvsim::keeping::{Combine, Keeping, PromptMode, PromptPlan, Scope};
use kvsim::meter::{METERS, MeterPlan, defaults};
use kvsim::policy::entry::PolicyEntry;
use kvsim::policy::parameter::Value;
use kvsim::policy::table::POLICIES;
use kvsim::replay::{
    BadRows, CachePlan, LanePlan, NoObserver, Options, Outcome, Tally, ViewKind, caches_of, replay, shared_caches_of,
};
use kvsim::trace::options::{Normalize, PerLayer, ReadOptions};
use kvsim::trace::safetensors::{StoredType, WriteError, write};
use kvsim::trace::{RowBlock, SelfAttention, Source, formats};
use std::path::Path;

/// Rows that a damaged spec may ask for: more is work, and no fault.
const MOST_ROWS: u64 = 400;

/// Sums may differ in the last digits.
const ROUNDING: f64 = 1e-9;

/// Runs a trace.
pub fn check(path: &Path, random: &mut Random) -> Checked {
    let options = read_options(random);
    let source = match formats::open(path.as_os_str(), &options) {
        Err(error) => return refused(&error, path),
        Ok(source) => source,
    };
    if source.info().rows() > MOST_ROWS && source.info().format == "spec" {
        return Ok(Verdict::Accepted);
    }
    let mut verdict = Verdict::Accepted;
    for work in [read, inspect, replay_some, analyze_some, convert] {
        match work(&*source, path, random) {
            Ok(()) => (),
            Err(Problem::Refused(error)) => {
                refused(&error, path)?;
                verdict = Verdict::Refused;
            }
            Err(Problem::Finding(finding)) => return Err(finding),
        }
    }
    Ok(verdict)
}

enum Problem {
    Refused(Error),
    Finding(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Refused(error)
    }
}

fn ensure(holds: bool, finding: impl FnOnce() -> String) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err(Problem::Finding(finding())) }
}

fn read_options(random: &mut Random) -> ReadOptions {
    let mut options = ReadOptions::default();
    if !random.one_in(4) {
        return options;
    }
    let number = *random.pick(&[0, 1, 2, 3, 5, 7, 1 << 24, u32::MAX as usize, usize::MAX]);
    match random.below(7) {
        0 => options.self_attention = Some(SelfAttention::Included),
        1 => options.self_attention = Some(SelfAttention::Excluded),
        2 => options.start = Some(number),
        3 => options.first_position = Some(number),
        4 => options.column_offset = PerLayer::all(number),
        5 => options.layer_window = PerLayer::all(number),
        _ => options.normalize = Some(Normalize::Rows),
    }
    options.max_memory = random.one_in(2).then_some(1 << 20);
    options
}

/// Every row is as long as its step says, and there are as many as the description says.
fn read(source: &dyn Source, _: &Path, random: &mut Random) -> Result<(), Problem> {
    let info = source.info();
    let at_once = 1 + random.below(8);
    for stream in 0..info.streams.len() {
        let (mut block, mut reader, mut rows) = (RowBlock::default(), source.open(stream)?, 0);
        while reader.read(&mut block, at_once)? > 0 {
            for row in block.rows() {
                let needed = info.self_attention.row_len(row.step);
                ensure(row.weights.is_empty() || row.weights.len() == needed, || {
                    format!("a row of another length than {needed}")
                })?;
                ensure(row.step.index() == info.first_position.index() + rows, || {
                    format!("row {rows} is of step {}", row.step)
                })?;
                rows += 1;
            }
            block.clear();
        }
        ensure(rows == info.streams[stream].rows, || format!("{rows} rows, {} were said", info.streams[stream].rows))?;
    }
    Ok(())
}

fn inspect(source: &dyn Source, _: &Path, _: &mut Random) -> Result<(), Problem> {
    for stream in 0..source.info().streams.len().min(3) {
        let figures = inspect_stream(source, stream, &|_| ())?;
        let sums = [figures.row_sum_min, figures.row_sum_mean, figures.row_sum_max, figures.zeros, figures.first_4];
        ensure(sums.into_iter().flatten().all(f64::is_finite), || format!("inspect: {figures:?}"))?;
    }
    source.warnings();
    source.remarks();
    Ok(())
}

fn replay_some(source: &dyn Source, _: &Path, random: &mut Random) -> Result<(), Problem> {
    let info = source.info();
    let caches = if random.one_in(4) { shared_caches_of(info, 1 + random.below(2))? } else { caches_of(info)? };
    let (lanes, options) = (lanes(random), replay_options(random));
    let outcomes = replay(source, &caches, &lanes, &options, &NoObserver)?;
    outcomes.iter().try_for_each(|outcome| check_outcome(outcome, &lanes))?;
    if random.one_in(32) {
        let again = replay(source, &caches, &lanes, &Options { threads: 2, ..options }, &NoObserver)?;
        let same = again.iter().zip(&outcomes).all(|(a, b)| a.tallies == b.tallies);
        ensure(same, || "two threads give other figures than one".to_owned())?;
    }
    Ok(())
}

fn replay_options(random: &mut Random) -> Options {
    Options {
        heavy_hitters: 1 + random.below(4),
        view: if random.one_in(4) { ViewKind::Renormalized } else { ViewKind::Raw },
        steps: random.one_in(8).then(|| random.below(5)),
        bad_rows: if random.one_in(2) { BadRows::Skip } else { BadRows::Error },
        threads: 1,
        meters: if random.one_in(4) { every_meter() } else { defaults() },
        max_memory: 32 << 20,
        ..Options::default()
    }
}

fn every_meter() -> Vec<MeterPlan> {
    METERS.iter().map(MeterPlan::new).collect()
}

/// Three lanes of one budget, with the bounds beside them that no lane may surpass.
fn lanes(random: &mut Random) -> Vec<LanePlan> {
    let budget = 1 + random.below(6);
    let mut lanes: Vec<LanePlan> = (0..3).map(|_| lane(random.pick(POLICIES), budget, random)).collect();
    if random.one_in(2) {
        lanes.extend(["h2o", "optimal", "oracle"].map(|name| lane(find(name), budget, random)));
    }
    let keeping = keeping(random);
    lanes = lanes.into_iter().map(|lane| lane.kept(keeping)).collect();
    lanes.retain(|lane| lane.check().is_ok());
    lanes
}

fn find(name: &str) -> &'static PolicyEntry {
    kvsim::policy::table::find(name).expect("a policy of the table")
}

fn lane(entry: &'static PolicyEntry, budget: usize, random: &mut Random) -> LanePlan {
    let mut lane = LanePlan::new(entry, budget);
    for (parameter, value) in entry.parameters {
        if matches!(value, Value::Count(_)) {
            let small = [0, 1, 1, 2, 3];
            let text = random.pick(&small).to_string();
            lane.values.set(parameter, parameter.parse(&text).unwrap_or(*value));
        }
    }
    lane
}

/// One way to keep caches for all lanes, so that bounds stay bounds.
fn keeping(random: &mut Random) -> Keeping {
    let len = if random.one_in(4) { random.below(6) } else { 0 };
    let prompt = PromptPlan { chunk: random.one_in(8).then(|| 1 + random.below(3)), ..PromptPlan::block(len) };
    let once = len > 0 && random.one_in(2);
    Keeping {
        combine: *random.pick(&[Combine::Mean, Combine::Max, Combine::Sum, Combine::Each]),
        scope: if random.one_in(3) { Scope::Layer } else { Scope::Head },
        evict_every: if random.one_in(3) { 1 + random.below(4) } else { 1 },
        page: if random.one_in(3) { 2 } else { 1 },
        prompt: if once { PromptPlan { mode: PromptMode::Once, ..prompt } } else { prompt },
    }
}

fn check_outcome(outcome: &Outcome, lanes: &[LanePlan]) -> Result<(), Problem> {
    lanes.iter().zip(&outcome.tallies).try_for_each(|(lane, tally)| check_tally(lane.entry.name, tally))?;
    check_bounds(outcome, lanes)
}

/// Every figure is a finite number, every share is one, and nothing is retained that was not there.
fn check_tally(name: &str, tally: &Tally) -> Result<(), Problem> {
    for figure in METERS.iter().flat_map(|meter| meter.figures) {
        let Some(found) = tally.figure(figure.name) else { continue };
        let is_share = figure.unit.starts_with("share");
        let most = if is_share { 1.0 + ROUNDING } else { f64::MAX };
        // Numbers of a fitted law may be negative; nothing else may.
        let least = if figure.name.starts_with("fit_") { f64::MIN } else { 0.0 };
        ensure((least..=most).contains(&found), || format!("{name}: {} is {found}", figure.name))?;
    }
    let most = tally.real("row_mass_sum") * (1.0 + ROUNDING);
    for sum in ["retained_mass_sum", "retained_mass_full_sum"] {
        let retained = tally.real(sum);
        ensure((0.0..=most).contains(&retained), || format!("{name}: {sum} is {retained} of {most}"))?;
    }
    Ok(())
}

/// No policy retains more than `optimal`, and that no more than `oracle`.
fn check_bounds(outcome: &Outcome, lanes: &[LanePlan]) -> Result<(), Problem> {
    let retained = |name| {
        let at = lanes.iter().position(|lane: &LanePlan| lane.entry.name == name)?;
        // Bounds are of query heads: an outcome of a layer's one set has none.
        let tally = Some(&outcome.tallies[at]).filter(|tally| tally.count("rows_measured") > 0);
        tally.map(|tally| tally.real("retained_mass_sum"))
    };
    for (lower, upper) in [("h2o", "optimal"), ("tova", "optimal"), ("future-greedy", "optimal"), ("optimal", "oracle")]
    {
        if let (Some(lower_mass), Some(upper_mass)) = (retained(lower), retained(upper)) {
            let holds = lower_mass <= upper_mass * (1.0 + ROUNDING);
            ensure(holds, || format!("{lower} retains {lower_mass}, {upper} {upper_mass}"))?;
        }
    }
    Ok(())
}

fn analyze_some(source: &dyn Source, _: &Path, random: &mut Random) -> Result<(), Problem> {
    if random.one_in(4) {
        let caches: Vec<CachePlan> = caches_of(source.info())?;
        analyze(source, &caches, BadRows::Skip, &|_| ())?;
    }
    Ok(())
}

/// A converted trace has the rows of its source, and finite weights alone.
fn convert(source: &dyn Source, path: &Path, random: &mut Random) -> Result<(), Problem> {
    if !random.one_in(4) || source.info().streams.is_empty() {
        return Ok(());
    }
    let stored = *random.pick(&[StoredType::F32, StoredType::F16, StoredType::Bf16]);
    let mut bytes = Vec::new();
    match write(source, stored, &mut bytes, &|_| ()) {
        Err(WriteError::Source(error)) => return Err(error.into()),
        Err(WriteError::Output(error)) => return Err(Problem::Finding(format!("memory refused: {error}"))),
        Ok(()) => (),
    }
    let converted = path.with_file_name("converted.safetensors");
    std::fs::write(&converted, &bytes).expect("inputs can be written");
    let again = formats::open(converted.as_os_str(), &ReadOptions::default())
        .map_err(|error| Problem::Finding(format!("convert wrote what cannot be read: {error}")))?;
    compare(source, &*again, stored)
}

fn compare(source: &dyn Source, again: &dyn Source, stored: StoredType) -> Result<(), Problem> {
    let (rows, rows_again) = (all_rows(source)?, all_rows(again)?);
    let finite = rows_again.iter().flatten().all(|weight| weight.is_finite());
    ensure(finite, || "convert wrote a weight that is not finite".to_owned())?;
    ensure(rows.len() == rows_again.len(), || format!("{} rows, {} once converted", rows.len(), rows_again.len()))?;
    ensure(stored != StoredType::F32 || rows == rows_again, || "convert changed a weight".to_owned())
}

fn all_rows(source: &dyn Source) -> Result<Vec<Vec<f32>>> {
    let mut rows = Vec::new();
    for stream in 0..source.info().streams.len() {
        let (mut block, mut reader) = (RowBlock::default(), source.open(stream)?);
        while reader.read(&mut block, 4)? > 0 {
            rows.extend(block.rows().map(|row| row.weights.to_vec()));
            block.clear();
        }
    }
    Ok(rows)
}
