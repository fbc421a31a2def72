//! What a trace of queries, keys and values looks like: its tensors layer by layer, every number looked at once, and
//! whether rows rebuilt from it look like attention.

use super::layer::Layer;
use super::rows::RebuiltRows;
use super::source::QkvTrace;
use crate::error::Result;
use crate::position::Position;
use crate::trace::{About, RowBlock, RowReader};

/// Rows rebuilt of each query head, spread evenly.
const SAMPLES: usize = 16;

/// Shorter rows say little of what a row looks like.
const SHORTEST: usize = 16;

/// What is said of a trace beyond figures of its rows.
///
/// # Errors
/// When a number is not finite, or the file cannot be read.
pub(super) fn about(trace: &QkvTrace) -> Result<About> {
    for matrix in trace.layers.iter().flat_map(Layer::matrices) {
        matrix.for_each_rows(|_, _| ())?;
    }
    let mut about = About { lines: layer_lines(&trace.layers), warnings: Vec::new() };
    about.lines.push(format!(
        "figures are of {SAMPLES} rows of each query head, spread evenly (kvsim convert makes them all)"
    ));
    let looks = Looks::of(trace)?;
    match looks.doubt() {
        None => about.lines.push(format!("sample rows look like attention: {}", looks.in_words())),
        Some(doubt) => {
            about.warnings.push(format!("sample rows do not look like attention: {}; {doubt}", looks.in_words()))
        }
    }
    Ok(about)
}

/// One line for each run of layers that are alike.
fn layer_lines(layers: &[Layer]) -> Vec<String> {
    let words: Vec<String> = layers.iter().map(layer_words).collect();
    let mut lines = Vec::new();
    let mut first = 0;
    for index in 1..=layers.len() {
        if index < layers.len() && words[index] == words[first] {
            continue;
        }
        let name = layers_in_words(&layers[first..index]);
        lines.push(format!("{name}: {}", words[first]));
        first = index;
    }
    lines
}

fn layers_in_words(layers: &[Layer]) -> String {
    let numbers: Vec<String> = layers.iter().map(|layer| layer.number.to_string()).collect();
    match &numbers[..] {
        [one] => format!("layer {one}"),
        [first, .., last] if numbers.len() > 6 => format!("{} layers, {first} to {last}", numbers.len()),
        _ => format!("layers {}", numbers.join(", ")),
    }
}

fn layer_words(layer: &Layer) -> String {
    let (query, value) = (&layer.queries[0], &layer.values[0]);
    let mut words = vec![
        format!("{} query heads of {} channels in {}", layer.queries.len(), query.width, query.dtype_name()),
        format!("{} KV heads in {}", layer.keys.len(), layer.keys[0].dtype_name()),
        format!("values of {} channels in {}", value.width, value.dtype_name()),
        format!("scale {}{}", layer.settings.scale, if layer.settings.scale_is_said { "" } else { " (not said)" }),
    ];
    words.extend(layer.settings.softcap.map(|cap| format!("soft cap {cap}")));
    words.extend(layer.settings.window.map(|window| format!("sliding window {window}")));
    words.extend(layer.sink.as_ref().map(|_| "learned sinks".to_owned()));
    words.extend(
        layer.output.as_ref().map(|output| format!("output projection to {} in {}", output.rows, output.dtype_name())),
    );
    words.extend(layer.output_norm.as_ref().map(|_| "output norm".to_owned()));
    words.extend(layer.residual_norm.as_ref().map(|_| "residual norms".to_owned()));
    words.extend(layer.gradients.first().map(|gradient| {
        let samples = gradient.rows / query.rows;
        format!("gradients of {samples} samples in {}", gradient.dtype_name())
    }));
    words.join(", ")
}

/// What sample rows of all heads look like.
struct Looks {
    rows: usize,
    /// The heaviest weight of a row, in the median.
    heaviest: f64,
    /// The share of its positions that a row spreads over, in the median: the exponential of its entropy over its
    /// length.
    spread: f64,
}

impl Looks {
    fn of(trace: &QkvTrace) -> Result<Looks> {
        let (mut heaviest, mut spread) = (Vec::new(), Vec::new());
        let streams: usize = trace.layers.iter().map(|layer| layer.queries.len()).sum();
        for stream in 0..streams {
            let mut block = RowBlock::default();
            SampledRows::new(trace, stream)?.read(&mut block, SAMPLES)?;
            for row in block.rows().filter(|row| row.weights.len() >= SHORTEST) {
                heaviest.push(row.weights.iter().copied().fold(0.0, f32::max).into());
                spread.push(spread_of(row.weights));
            }
        }
        Ok(Looks { rows: heaviest.len(), heaviest: median(heaviest), spread: median(spread) })
    }

    fn in_words(&self) -> String {
        let Looks { rows, heaviest, spread } = self;
        let percent = 100.0 * spread;
        format!(
            "of {rows}, the median puts {heaviest:.3} on its heaviest position and spreads over {percent:.1} % of all"
        )
    }

    /// Why rows are not attention, if they do not look like it.
    fn doubt(&self) -> Option<&'static str> {
        match () {
            () if self.rows == 0 => None,
            () if self.heaviest > 0.99 => {
                Some("is the scale too large, or were queries stored as they come before the model's norms?")
            }
            () if self.spread > 0.9 => Some("is the scale too small, or were queries stored scaled already?"),
            () => None,
        }
    }
}

fn spread_of(weights: &[f32]) -> f64 {
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let entropy = |weight: &f32| {
        let share = f64::from(*weight) / total;
        if share > 0.0 { -share * share.ln() } else { 0.0 }
    };
    weights.iter().map(entropy).sum::<f64>().exp() / weights.len() as f64
}

/// The middle value, the upper one of two; 0 where there is none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Some rows of a stream, spread evenly over it, the last among them.
pub(super) struct SampledRows {
    rows: RebuiltRows,
    left: std::vec::IntoIter<usize>,
}

impl SampledRows {
    /// Of a query head.
    pub fn new(trace: &QkvTrace, stream: usize) -> Result<SampledRows> {
        let rows = trace.rows(stream)?;
        let count = rows.left();
        let samples = SAMPLES.min(count);
        let steps: Vec<usize> = (1..=samples).map(|sample| sample * count / samples - 1).collect();
        Ok(SampledRows { rows, left: steps.into_iter() })
    }
}

impl RowReader for SampledRows {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let mut read = 0;
        for step in self.left.by_ref().take(rows) {
            self.rows.skip_to(Position(step as u32));
            self.rows.rebuild(block, 1)?;
            read += 1;
        }
        Ok(read)
    }
}
