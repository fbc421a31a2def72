//! Result files, vector files and tables of budgets by layer.

use super::check::{Checked, Verdict, refused};
use super::random::Random;
use kvsim::budgets::CacheBudgets;
use kvsim::memory::count::Storage;
use kvsim::replay::{CachePlan, caches_of};
use kvsim::report::pivot::{Pivot, PivotPlan};
use kvsim::report::read::read;
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::{SelfAttention, Source};
use std::path::Path;

/// Reads a result file and lays it out as a table.
pub fn check(path: &Path, random: &mut Random) -> Checked {
    let text = std::fs::read(path).expect("it was written just now");
    let Ok(results) = read(&text) else { return Ok(Verdict::Refused) };
    // Whatever was read merges or is refused.
    let _ = results.merge();
    let plan = plan(random);
    match Pivot::new(&results, &plan).map(|pivot| pivot.table()) {
        Err(_) => Ok(Verdict::Refused),
        Ok(table) => {
            let text = table.markdown();
            let is_odd = |figure: &str| figure.parse().is_ok_and(|figure: f64| !figure.is_finite());
            let mut figures = table.rows.iter().flat_map(|row| &row[1..]).flat_map(|cell| cell.split([' ', '*']));
            if figures.any(is_odd) { Err(format!("a figure that is none: {text}")) } else { Ok(Verdict::Accepted) }
        }
    }
}

fn plan(random: &mut Random) -> PivotPlan {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    PivotPlan {
        aside: None,
        rows: names(&[*random.pick(&["policy", "policy", "budget"])]),
        columns: (*random.pick(&["budget", "budget", "policy"])).to_owned(),
        values: names(&["retained_mass", *random.pick(&["heavy_recall", "heavy_recall", "steps", "view"])]),
        difference: random.one_in(4).then(|| ("h2o".to_owned(), "tova".to_owned())),
        bold: random.one_in(2),
        precision: *random.pick(&[6, 6, 0, 17]),
    }
}

/// Runs a vector file.
pub fn check_vectors(path: &Path) -> Checked {
    match kvsim::vectors::run_file(path) {
        Err(error) => refused(&error, path),
        Ok(_) => Ok(Verdict::Accepted),
    }
}

/// Reads the config.json of a model, and counts the bytes of its caches.
pub fn check_model_config(path: &Path) -> Checked {
    let text = std::fs::read(path).expect("it was written just now");
    match kvsim::memory::config::read(&text) {
        Err(problem) if problem.len() > 2000 => Err(format!("a message of {} bytes", problem.len())),
        Err(_) => Ok(Verdict::Refused),
        Ok(caches) => {
            let bytes = |length| caches.sequence_bytes(length, None, Storage::plain(16));
            if bytes(1) <= bytes(4096) { Ok(Verdict::Accepted) } else { Err("fewer bytes for more tokens".to_owned()) }
        }
    }
}

/// Deals budgets out by a table.
pub fn check_layer_budgets(path: &Path, random: &mut Random) -> Checked {
    let shape = match CacheBudgets::parse(path.as_os_str()) {
        Err(error) => return refused(&error, path),
        Ok(shape) => shape,
    };
    let budget = *random.pick(&[1, 2, 5, 1000, u32::MAX as usize, usize::MAX >> 1, usize::MAX]);
    let dealt =
        caches().iter().map(|cache| shape.of(&cache.label, cache.place, budget, 0)).collect::<Result<Vec<_>, _>>();
    match dealt {
        Err(_) => Ok(Verdict::Refused),
        Ok(dealt) if dealt.iter().all(|dealt| dealt.budget == 0) => Err("every layer gets a budget of 0".to_owned()),
        Ok(_) => Ok(Verdict::Accepted),
    }
}

/// Caches in the layers that the sample table names.
fn caches() -> Vec<CachePlan> {
    let row = || vec![Some(vec![1.0])];
    let trace = [0, 1, 7].into_iter().try_fold(MemoryTrace::new("layers", SelfAttention::Included), |trace, layer| {
        trace.with_stream(layer, "0", row())
    });
    caches_of(trace.expect("rows are sound").info()).expect("it names no number of layers")
}
