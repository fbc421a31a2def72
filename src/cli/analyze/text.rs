//! The analysis for people: a table for each part, and what to make of it.

use super::laws;
use super::summary::summary;
use kvsim::analyze::advice::{Advice, Choice};
use kvsim::analyze::agreement::Agreement;
use kvsim::analyze::locality::{HeavyPosition, LocalityFigures};
use kvsim::analyze::persistence::Overlap;
use kvsim::analyze::{Analysis, StreamAnalysis};
use kvsim::report::text_table::TextTable;
use kvsim::text::plain;
use kvsim::trace::{StreamLabel, TraceInfo};
use kvsim::word::Word;

/// More streams than this are summed up, unless all are asked for.
const MOST_LISTED: usize = 12;

pub fn text(info: &TraceInfo, analysis: &Analysis, all: bool) -> String {
    let mut parts = vec![head(info, analysis)];
    if all || analysis.streams.len() <= MOST_LISTED {
        parts.push(persistence(info, analysis));
        if !analysis.agreement.is_empty() {
            parts.push(agreement(&analysis.agreement));
        }
        parts.push(locality(&analysis.streams));
        parts.extend(laws::laws(&analysis.streams));
    } else {
        parts.push(summary(analysis));
    }
    parts.extend(analysis.advice.iter().map(advice));
    parts.extend(analysis.theory.iter().map(laws::theory));
    parts.join("\n")
}

fn head(info: &TraceInfo, analysis: &Analysis) -> String {
    let (kind, positions) = (info.self_attention.word(), info.positions);
    format!(
        "{}: self {kind}, {positions} positions, {}\n",
        plain(&info.name),
        counted(analysis.streams.len(), "stream")
    )
}

fn persistence(info: &TraceInfo, analysis: &Analysis) -> String {
    let half = info.reached() / 2;
    let of_streams = analysis.streams.iter().map(|stream| (&stream.label, &stream.persistence));
    let of_layers = analysis.layers.iter().map(|layer| (&layer.label, &layer.persistence));
    let row = |label: &StreamLabel, overlap: &Overlap| {
        let words = [label.to_string(), overlap.reading.word().to_owned()];
        let figures = [overlap.ratio, overlap.chance, overlap.second_share].map(number);
        words.into_iter().chain(figures).chain([overlap.positions.to_string()]).collect()
    };
    let rows = of_streams.chain(of_layers);
    let rows = rows.flat_map(|(label, overlaps)| overlaps.iter().map(move |overlap| row(label, overlap))).collect();
    format!(
        "Persistence of importance: of the positions that matter in rows {half} to {}, the share that mattered\n\
         before (ratio), and the share of all positions that mattered then (chance)\n\n{}\n\
         Only equal-visibility means something: the union readings are near 1 for a random model too.\n\
         A ratio says something as far as it exceeds the chance beside it.\n",
        (2 * half).saturating_sub(1),
        table(&["stream", "reading", "ratio", "chance", "second half", "positions"], 2, rows)
    )
}

fn agreement(pairs: &[Agreement]) -> String {
    let row = |pair: &Agreement| {
        let [lower, upper] = pair.layers;
        vec![pair.head.to_string(), format!("{lower} and {upper}"), number(pair.spearman)]
    };
    format!(
        "Agreement between layers: rank correlation of what early positions get from late rows\n\n{}",
        table(&["head", "layers", "spearman"], 2, pairs.iter().map(row).collect())
    )
}

fn locality(streams: &[StreamAnalysis]) -> String {
    let row = |StreamAnalysis { label, locality, .. }: &StreamAnalysis| {
        let LocalityFigures { rows, first_4, on_self, local_90, effective_size, heavy } = locality;
        let local = local_90.map_or("-".to_owned(), |width| width.to_string());
        let heavy: Vec<String> = heavy.iter().map(heavy_position).collect();
        let figures = [label.to_string(), rows.to_string(), number(*first_4), number(*on_self), local];
        figures.into_iter().chain([number(*effective_size), heavy.join(", ")]).collect()
    };
    let mut table = plain_table(
        &["stream", "rows", "first 4", "self", "local 90%", "effective size", "positions above 5%"],
        1,
        streams.iter().map(row).collect(),
    );
    table.right[6] = false;
    format!(
        "Locality: shares of all mass; local 90%: newest positions that hold 90% of what is not on the first four\n\
         (median over rows); effective size: exp(entropy) in positions (mean over rows)\n\n{}",
        table.aligned()
    )
}

fn heavy_position(HeavyPosition { position, share }: &HeavyPosition) -> String {
    format!("{position}: {share:.3}")
}

fn advice(advice: &Advice) -> String {
    let lines: Vec<String> = advice.recommended.iter().map(|choice| recommendation(choice, advice.bound)).collect();
    let header = ["policy", "budget", "recent window", "retained", "best window", "best", advice.bound, "headroom"];
    format!(
        "Advice: the smallest budget and recent window within {} of the policy's best retained mass\n\n{}\n\
         At each budget, the smallest recent window within {} of the best one there\n\n{}\n{}",
        advice.tolerance,
        lines.concat(),
        advice.tolerance,
        table(&header, 1, advice.at_budgets.iter().map(choice_row).collect()),
        swept(advice)
    )
}

fn recommendation(choice: &Choice, bound: &str) -> String {
    format!(
        "  {:<14} {} retains {:.6}, {} of {bound}; best: {} retains {:.6}\n",
        choice.policy,
        setting(choice.budget, choice.recent_window),
        choice.retained_mass,
        number(choice.headroom),
        setting(choice.best_budget, choice.best_recent_window),
        choice.best_retained_mass,
    )
}

fn setting(budget: usize, window: Option<usize>) -> String {
    match window {
        Some(window) => format!("budget {budget}, window {window}"),
        None => format!("budget {budget}"),
    }
}

fn choice_row(choice: &Choice) -> Vec<String> {
    let window = |window: Option<usize>| window.map_or("-".to_owned(), |window| window.to_string());
    vec![
        choice.policy.to_owned(),
        choice.budget.to_string(),
        window(choice.recent_window),
        number(Some(choice.retained_mass)),
        window(choice.best_recent_window),
        number(Some(choice.best_retained_mass)),
        number(Some(choice.bound)),
        number(choice.headroom),
    ]
}

fn swept(advice: &Advice) -> String {
    let Advice { bound, lanes, caches, .. } = advice;
    let list = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let hint = match *bound {
        "oracle" => " (optimal, which is closer, takes long here: fewer streams or budgets would get it)",
        _ => "",
    };
    format!(
        "Swept: {}; budgets {}; recent windows {}\n(below the budget, where the policy has one; other parameters \
         at their defaults): {lanes} lanes with {bound},\n{}. Headroom: retained over {bound}{hint}.\n",
        advice.policies.join(", "),
        list(&advice.budgets),
        list(&advice.windows),
        combined(*caches),
    )
}

fn combined(caches: usize) -> String {
    let all = if caches == 1 { "" } else { ", combined" };
    format!("{}{all}", counted(caches, "cache"))
}

pub(super) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

pub(super) fn table(header: &[&str], words: usize, rows: Vec<Vec<String>>) -> String {
    plain_table(header, words, rows).aligned()
}

/// The first `words` columns to the left, the others to the right.
fn plain_table(header: &[&str], words: usize, rows: Vec<Vec<String>>) -> TextTable {
    TextTable {
        header: header.iter().map(|title| (*title).to_owned()).collect(),
        right: (0..header.len()).map(|column| column >= words).collect(),
        rows,
    }
}

pub(super) fn number(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), |figure| format!("{figure:.6}"))
}
