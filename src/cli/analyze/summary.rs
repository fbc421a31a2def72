//! The analysis of many streams for people: the least, the median and the most of each figure, and
//! where they are.

use super::text::counted;
use kvsim::analyze::persistence::Reading;
use kvsim::analyze::{Analysis, StreamAnalysis};
use kvsim::report::text_table::TextTable;
use std::collections::BTreeMap;

/// Positions named, of those that are heavy in many streams.
const MOST_NAMED: usize = 8;

/// A figure of each place that has it.
type Figures = Vec<(f64, String)>;

pub fn summary(analysis: &Analysis) -> String {
    let streams = &analysis.streams;
    let of_streams = |figure: fn(&StreamAnalysis) -> Option<f64>| -> Figures {
        streams.iter().filter_map(|stream| Some((figure(stream)?, stream.label.to_string()))).collect()
    };
    let agreement = analysis.agreement.iter().filter_map(|pair| {
        let [lower, upper] = pair.layers;
        Some((pair.spearman?, format!("head {}, layers {lower} and {upper}", pair.head)))
    });
    let rows = [
        ("persistence (equal-visibility)", of_streams(|stream| persistence(stream).0)),
        ("its chance", of_streams(|stream| persistence(stream).1)),
        ("agreement of adjacent layers", agreement.collect()),
        ("mass on the first 4", of_streams(|stream| stream.locality.first_4)),
        ("mass on self", of_streams(|stream| stream.locality.on_self)),
        ("local 90%", of_streams(|stream| stream.locality.local_90)),
        ("effective size", of_streams(|stream| stream.locality.effective_size)),
        ("power law exponent", of_streams(|stream| Some(stream.power_law.as_ref()?.exponent))),
        ("its distance (bad above 0.1)", of_streams(|stream| Some(stream.power_law.as_ref()?.distance))),
    ];
    let table = TextTable {
        header: ["figure", "least", "at", "median", "most", "at"].map(str::to_owned).to_vec(),
        right: vec![false, true, false, true, true, false],
        rows: rows.into_iter().filter_map(|(name, figures)| spread(name, figures)).collect(),
    };
    format!(
        "{}: the least, the median and the most of each figure (--all lists every stream)\n\n{}{}",
        counted(streams.len(), "stream"),
        table.aligned(),
        heavy(streams)
    )
}

/// The ratio and its chance level, in the reading that means something.
fn persistence(stream: &StreamAnalysis) -> (Option<f64>, Option<f64>) {
    let mut readings = stream.persistence.iter();
    let overlap = readings.find(|overlap| overlap.reading == Reading::EqualVisibility);
    overlap.map_or((None, None), |overlap| (overlap.ratio, overlap.chance))
}

/// A line of the table; the lower median of an even number.
fn spread(name: &str, mut figures: Figures) -> Option<Vec<String>> {
    figures.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, median) = (figures.first()?, &figures[(figures.len() - 1) / 2]);
    // The first of those that tie.
    let most = figures.iter().rev().reduce(|most, next| if next.0 == most.0 { next } else { most })?;
    let figure = |figure: f64| format!("{figure:.6}");
    let words = [name.to_owned(), figure(least.0), least.1.clone(), figure(median.0), figure(most.0), most.1.clone()];
    Some(words.to_vec())
}

/// The positions that hold more than a twentieth of the mass, by the number of streams in which they do.
fn heavy(streams: &[StreamAnalysis]) -> String {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let positions = streams.iter().flat_map(|stream| &stream.locality.heavy);
    positions.for_each(|heavy| *counts.entry(heavy.position).or_default() += 1);
    let mut counts: Vec<(usize, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(position, streams)| (std::cmp::Reverse(*streams), *position));
    let more =
        if counts.len() > MOST_NAMED { format!(", and {} more", counts.len() - MOST_NAMED) } else { String::new() };
    let named = counts.iter().take(MOST_NAMED).map(|(position, streams)| format!("{position} (in {streams})"));
    match named.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => String::new(),
        named => format!("\nPositions above 5% of a stream's mass: {named}{more}\n"),
    }
}
