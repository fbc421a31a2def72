//! The report of `kvsim diff`, for people and for programs.

use kvsim::decisions::diff::{CacheDiff, Diff, Parting};
use kvsim::meter::Tally;
use kvsim::report::text_table::TextTable;
use kvsim::text::plain;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Caches listed unless all are asked for.
const MOST: usize = 12;
/// Points of the curve that are shown.
const POINTS: usize = 8;
/// Victims listed of one parting.
const MOST_VICTIMS: usize = 4;

/// The report for people.
pub fn text(names: &[String; 2], diff: &Diff, all: bool) -> String {
    let mut text = format!("A: {}\nB: {}\n\n", plain(&names[0]), plain(&names[1]));
    let parting: Vec<(&CacheDiff, &Parting)> =
        diff.caches.iter().filter_map(|cache| Some((cache, cache.parting.as_ref()?))).collect();
    let (count, total) = (parting.len(), diff.caches.len());
    let Some((first, at)) = parting.iter().min_by_key(|(_, parting)| parting.step) else {
        text += &format!("they evict the same in all {total} caches\n");
        return text + &cost(diff);
    };
    text += &format!("they part in {count} of {total} caches, first in {} at step {}\n", first.cache, at.step);
    text += &format!("why: {}\n\n", kinds(&parting));
    let shown = if all { count } else { MOST };
    text += &partings(&parting[..count.min(shown)]).aligned();
    if count > shown {
        text += &format!("... and {} more (--all lists them)\n", count - shown);
    }
    text + "\n" + &drift(diff) + &cost(diff)
}

/// How many caches part for which kind of reason, the most frequent first.
fn kinds(parting: &[(&CacheDiff, &Parting)]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    parting.iter().for_each(|(_, parting)| *counts.entry(parting.why.kind()).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
}

fn partings(parting: &[(&CacheDiff, &Parting)]) -> TextTable {
    let row = |(cache, parting): &(&CacheDiff, &Parting)| {
        let [one, other] = [0, 1].map(|side| victims(parting, side));
        let overlap = format!("{:.4}", cache.overlap.mean);
        vec![cache.cache.to_string(), parting.step.to_string(), one, other, overlap, parting.why.to_string()]
    };
    TextTable {
        header: ["cache", "step", "A evicts", "B evicts", "jaccard", "why"].map(str::to_owned).to_vec(),
        rows: parting.iter().map(row).collect(),
        right: vec![false, true, true, true, true, false],
    }
}

fn victims(parting: &Parting, side: usize) -> String {
    let only = &parting.only[side];
    let shown: Vec<String> = only.iter().take(MOST_VICTIMS).map(ToString::to_string).collect();
    let more = if only.len() > MOST_VICTIMS { format!(" +{}", only.len() - MOST_VICTIMS) } else { String::new() };
    if only.is_empty() { "-".to_owned() } else { shown.join(" ") + &more }
}

/// How the kept sets drift apart, mean over caches.
fn drift(diff: &Diff) -> String {
    let mean = |of: fn(&CacheDiff) -> f64| diff.caches.iter().map(of).sum::<f64>() / diff.caches.len().max(1) as f64;
    let [over_steps, last] = [mean(|cache| cache.overlap.mean), mean(|cache| cache.overlap.last)];
    let least = diff.caches.iter().map(|cache| cache.overlap.least).fold(1.0, f64::min);
    let points: Vec<String> = curve(diff).iter().map(|(step, overlap)| format!("{step}: {overlap:.4}")).collect();
    format!(
        "kept sets (Jaccard, mean over caches): {over_steps:.4} over steps, {last:.4} after the last; least of any cache \
         {least:.4}\n  by step  {}\n",
        points.join("  ")
    )
}

/// Some points of the curve, evenly spaced, the last among them.
fn curve(diff: &Diff) -> Vec<(u32, f64)> {
    let all: Vec<(u32, f64)> = diff.curve.iter().map(|(step, (sum, count))| (step.0, sum / *count as f64)).collect();
    let every = all.len().div_ceil(POINTS).max(1);
    let mut points: Vec<(u32, f64)> = all.iter().rev().step_by(every).copied().collect();
    points.reverse();
    points
}

/// What each retains, where that was measured.
fn cost(diff: &Diff) -> String {
    let Some(tallies) = &diff.tallies else { return String::new() };
    let rows = figures(tallies).into_iter().map(|(name, [one, other])| {
        let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{figure:.6}"));
        let change = one.zip(other).map(|(one, other)| other - one);
        vec![
            name.to_owned(),
            figure(one),
            figure(other),
            change.map_or("-".to_owned(), |change| format!("{change:+.6}")),
        ]
    });
    let header = ["cost", "A", "B", "B - A"].map(str::to_owned).to_vec();
    format!("\n{}", TextTable { header, rows: rows.collect(), right: vec![false, true, true, true] }.aligned())
}

/// The figures that are shown, of both.
fn figures(tallies: &[Tally; 2]) -> Vec<(&'static str, [Option<f64>; 2])> {
    let names = ["retained_mass", "retained_mass_full", "peak_miss_rate", "broken_row_rate"];
    names.map(|name| (name, [0, 1].map(|side: usize| tallies[side].figure(name)))).to_vec()
}

/// The report for programs.
pub fn json(names: &[String; 2], diff: &Diff) -> Value {
    let cache = |cache: &CacheDiff| {
        let parting = cache.parting.as_ref().map(|parting| {
            let [one, other] = [0, 1].map(|side: usize| parting.only[side].iter().map(|at| at.0).collect::<Vec<u32>>());
            json!({
                "step": parting.step.0,
                "a": one,
                "b": other,
                "kind": parting.why.kind(),
                "why": parting.why.to_string(),
            })
        });
        let overlap = cache.overlap;
        let jaccard =
            json!({"mean": overlap.mean, "least": overlap.least, "last": overlap.last, "steps": overlap.steps});
        let (layer, head) = (cache.cache.layer, cache.cache.head.to_string());
        json!({"layer": layer, "head": head, "parting": parting, "jaccard": jaccard})
    };
    let curve = diff.curve.iter().map(|(step, (sum, count))| json!([step.0, sum / *count as f64]));
    let cost = diff.tallies.as_ref().map(|tallies| {
        figures(tallies)
            .into_iter()
            .map(|(name, both)| (name.to_owned(), json!(both)))
            .collect::<serde_json::Map<_, _>>()
    });
    json!({
        "a": names[0],
        "b": names[1],
        "caches": diff.caches.iter().map(cache).collect::<Vec<_>>(),
        "jaccard_by_step": curve.collect::<Vec<_>>(),
        "cost": cost,
    })
}
