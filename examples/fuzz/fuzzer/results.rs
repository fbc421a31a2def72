//! Result files, vector files and tables of budgets by layer.

use super::check::{Checked, Verdict, refused};
use super::random::Random;
use kvsim::budgets::{CacheBudgets, LayerPlace};
use kvsim::memory::count::Storage;
use kvsim::report::pivot::{Pivot, PivotPlan};
use kvsim::report::read::read;
use kvsim::trace::StreamLabel;
use serde_json::{Map, Value};
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

/// Deals budgets out by a table: what its layers get is the average times their number, to the unit.
pub fn check_layer_budgets(path: &Path, random: &mut Random) -> Checked {
    let shape = match CacheBudgets::parse(path.as_os_str()) {
        Err(error) => return refused(&error, path),
        Ok(shape) => shape,
    };
    let budget = *random.pick(&[1, 2, 5, 1000, u32::MAX as usize, usize::MAX >> 1, usize::MAX]);
    let labels = labels(path);
    let deal = |label: &StreamLabel| shape.of(label, LayerPlace::ONLY, budget, 0).map(|dealt| dealt.budget as u128);
    let total: u128 = labels.iter().map(deal).sum::<Result<u128, _>>()?;
    let wanted = budget.min(u32::MAX as usize) as u128 * labels.len() as u128;
    if total == wanted { Ok(Verdict::Accepted) } else { Err(format!("{total} was dealt out of {wanted}")) }
}

/// What a sound table names: caches, or layers.
fn labels(path: &Path) -> Vec<StreamLabel> {
    let text = std::fs::read(path).expect("it was written just now");
    let table: Map<String, Value> = serde_json::from_slice(&text).expect("it was read just now");
    let label = |key: &String| StreamLabel::parse(key).or_else(|| StreamLabel::parse(&format!("{key}.0")));
    table.keys().map(|key| label(key).expect("a table names layers or caches")).collect()
}
