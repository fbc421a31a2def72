//! The analysis as CSV: one figure a line, so that analyses of every shape fit one table.

use kvsim::analyze::advice::{Advice, Choice};
use kvsim::analyze::agreement::Agreement;
use kvsim::analyze::locality::LocalityFigures;
use kvsim::analyze::persistence::Overlap;
use kvsim::analyze::theory::{AtBudget, Theory};
use kvsim::analyze::{Analysis, StreamAnalysis};
use kvsim::report::cell::Cell;
use kvsim::text;
use kvsim::trace::{StreamLabel, TraceInfo};
use kvsim::word::Word;

/// What a figure belongs to stands in the columns before it, blank where it does not apply.
const COLUMNS: [&str; 11] =
    ["trace", "analysis", "layer", "head", "reading", "next_layer", "position", "policy", "budget", "figure", "value"];

/// What a figure belongs to; a blank word where it does not apply.
#[derive(Clone, Default)]
struct Key {
    analysis: &'static str,
    layer: String,
    head: String,
    reading: &'static str,
    next_layer: String,
    position: String,
    policy: &'static str,
    budget: String,
}

type Figures = Vec<(Key, &'static str, Cell)>;

pub fn csv(info: &TraceInfo, analysis: &Analysis) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let in_memory = "writing to memory cannot fail";
    writer.write_record(COLUMNS).expect(in_memory);
    let trace = text::csv(&info.name);
    for (key, figure, cell) in figures(analysis) {
        let Key { analysis, layer, head, reading, next_layer, position, policy, budget } = key;
        let value = cell.exact();
        let record = [
            &*trace,
            analysis,
            &layer,
            &text::csv(&head),
            reading,
            &next_layer,
            &position,
            policy,
            &budget,
            figure,
            &value,
        ];
        writer.write_record(record).expect(in_memory);
    }
    String::from_utf8(writer.into_inner().expect(in_memory)).expect("cells are text")
}

fn figures(analysis: &Analysis) -> Figures {
    let mut all = Vec::new();
    for StreamAnalysis { label, persistence, .. } in &analysis.streams {
        all.extend(persistence.iter().flat_map(|overlap| of_overlap(label, overlap)));
    }
    for layer in &analysis.layers {
        all.extend(layer.persistence.iter().flat_map(|overlap| of_overlap(&layer.label, overlap)));
    }
    all.extend(analysis.agreement.iter().map(of_agreement));
    all.extend(analysis.streams.iter().flat_map(|stream| of_locality(&stream.label, &stream.locality)));
    all.extend(analysis.streams.iter().flat_map(of_law));
    all.extend(analysis.advice.iter().flat_map(of_advice));
    all.extend(analysis.theory.iter().flat_map(of_theory));
    all
}

fn stream_key(analysis: &'static str, label: &StreamLabel) -> Key {
    Key { analysis, layer: label.layer.to_string(), head: label.head.to_string(), ..Key::default() }
}

fn of_overlap(label: &StreamLabel, overlap: &Overlap) -> Figures {
    let key = Key { reading: overlap.reading.word(), ..stream_key("persistence", label) };
    let figures = [
        ("ratio", Cell::from(overlap.ratio)),
        ("chance", Cell::from(overlap.chance)),
        ("second_share", Cell::from(overlap.second_share)),
        ("positions", count(overlap.positions)),
        ("first", count(overlap.first)),
        ("second", count(overlap.second)),
        ("both", count(overlap.both)),
    ];
    figures.map(|(name, cell)| (key.clone(), name, cell)).to_vec()
}

fn of_agreement(agreement: &Agreement) -> (Key, &'static str, Cell) {
    let [layer, next_layer] = agreement.layers.map(|layer| layer.to_string());
    let head = agreement.head.to_string();
    let key = Key { analysis: "agreement", layer, head, next_layer, ..Key::default() };
    (key, "spearman", Cell::from(agreement.spearman))
}

fn of_locality(label: &StreamLabel, locality: &LocalityFigures) -> Figures {
    let key = stream_key("locality", label);
    let figures = [
        ("rows", Cell::Count(locality.rows)),
        ("first_4", Cell::from(locality.first_4)),
        ("on_self", Cell::from(locality.on_self)),
        ("local_90", Cell::from(locality.local_90)),
        ("effective_size", Cell::from(locality.effective_size)),
    ];
    let plain = figures.map(|(name, cell)| (key.clone(), name, cell));
    let heavy = locality
        .heavy
        .iter()
        .map(|heavy| (Key { position: heavy.position.to_string(), ..key.clone() }, "share", Cell::Real(heavy.share)));
    plain.into_iter().chain(heavy).collect()
}

fn of_law(stream: &StreamAnalysis) -> Figures {
    let Some(law) = &stream.power_law else { return Figures::new() };
    let (from, to) = law.interval.unzip();
    let figures = [
        ("weights", Cell::Count(law.weights)),
        ("exponent", Cell::Real(law.exponent)),
        ("exponent_from", Cell::from(from)),
        ("exponent_to", Cell::from(to)),
        ("distance", Cell::Real(law.distance)),
    ];
    let key = stream_key("power-law", &stream.label);
    figures.map(|(name, cell)| (key.clone(), name, cell)).to_vec()
}

fn of_theory(theory: &Theory) -> Figures {
    let fits = [("streams", count(theory.streams)), ("good_fits", count(theory.good_fits))];
    let fits = fits.map(|(name, cell)| (combined_key("theory"), name, cell));
    fits.into_iter().chain(theory.at_budgets.iter().flat_map(of_budget)).collect()
}

fn of_budget(at: &AtBudget) -> Figures {
    let key = Key { budget: at.budget.to_string(), ..combined_key("theory") };
    let best = Key { policy: at.best_policy, ..key.clone() };
    vec![
        (key.clone(), "share", Cell::Real(at.share)),
        (key.clone(), "predicted", Cell::Real(at.predicted)),
        (key.clone(), "oracle", Cell::Real(at.oracle)),
        (best, "best_retained_mass", Cell::Real(at.best_retained_mass)),
        (key, "deviation_bound", Cell::from(at.deviation_bound)),
    ]
}

fn of_advice(advice: &Advice) -> Figures {
    let recommended = advice.recommended.iter().map(|choice| ("recommended", choice));
    let at_budgets = advice.at_budgets.iter().map(|choice| ("at-budget", choice));
    let choices = recommended.chain(at_budgets);
    let choices = choices.flat_map(|(analysis, choice)| of_choice(analysis, advice.bound, choice));
    of_sweep(advice).into_iter().chain(choices).collect()
}

fn of_sweep(advice: &Advice) -> Figures {
    let plain =
        [("tolerance", Cell::Real(advice.tolerance)), ("lanes", count(advice.lanes)), ("caches", count(advice.caches))];
    let windows = advice.windows.iter().map(|window| ("recent_window", count(*window)));
    plain.into_iter().chain(windows).map(|(name, cell)| (combined_key("sweep"), name, cell)).collect()
}

fn of_choice(analysis: &'static str, bound: &'static str, choice: &Choice) -> Figures {
    let key = Key { policy: choice.policy, budget: choice.budget.to_string(), ..combined_key(analysis) };
    let window = |window: Option<usize>| window.map_or(Cell::Blank, count);
    let figures = [
        ("recent_window", window(choice.recent_window)),
        ("retained_mass", Cell::Real(choice.retained_mass)),
        ("best_retained_mass", Cell::Real(choice.best_retained_mass)),
        ("best_budget", count(choice.best_budget)),
        ("best_recent_window", window(choice.best_recent_window)),
        (bound, Cell::Real(choice.bound)),
        ("headroom", Cell::from(choice.headroom)),
    ];
    figures.map(|(name, cell)| (key.clone(), name, cell)).to_vec()
}

fn combined_key(analysis: &'static str) -> Key {
    Key { analysis, layer: "all".to_owned(), head: "all".to_owned(), ..Key::default() }
}

fn count(count: usize) -> Cell {
    Cell::Count(count as u64)
}
