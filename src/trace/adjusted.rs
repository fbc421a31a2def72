//! What can be said about a trace of any format: the windows of its layers, and rows divided by their sums.

use super::options::{Normalize, PerLayer, ReadOptions};
use super::{About, RowBlock, RowReader, Source, TraceInfo};
use crate::error::{Error, Result};
use crate::position::Position;

/// Adds to a trace what the options say and its format knows nothing of.
///
/// # Errors
/// When an option names a layer that the trace does not have.
pub(super) fn adjust(source: Box<dyn Source>, options: &ReadOptions) -> Result<Box<dyn Source>> {
    check_layers(source.info(), &options.layer_window, "--layer-window")?;
    check_layers(source.info(), &options.column_offset, "--column-offset")?;
    if options.layer_window.is_empty() && options.normalize.is_none() {
        return Ok(source);
    }
    let info = with_windows(source.info().clone(), &options.layer_window);
    Ok(Box::new(AdjustedTrace { source, info, normalize: options.normalize }))
}

fn check_layers(info: &TraceInfo, values: &PerLayer, flag: &str) -> Result<()> {
    let known = |layer: &u32| info.streams.iter().any(|stream| stream.label.layer == *layer);
    match values.layers.keys().find(|layer| !known(layer)) {
        None => Ok(()),
        Some(layer) => Err(Error::usage(format!("{flag} names layer {layer}, which {} does not have", info.name))),
    }
}

fn with_windows(mut info: TraceInfo, windows: &PerLayer) -> TraceInfo {
    for stream in &info.streams {
        if let Some(window) = windows.of(stream.label.layer) {
            info.metadata.insert(format!("sliding_window.{}", stream.label.layer), window.to_string());
        }
    }
    info
}

struct AdjustedTrace {
    source: Box<dyn Source>,
    info: TraceInfo,
    normalize: Option<Normalize>,
}

impl Source for AdjustedTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let rows = self.source.open(stream)?;
        Ok(match self.normalize {
            None => rows,
            Some(Normalize::Rows) => Box::new(NormalizedRows { rows }),
        })
    }

    fn warnings(&self) -> Vec<String> {
        self.source.warnings()
    }

    fn remarks(&self) -> Vec<String> {
        self.source.remarks()
    }

    fn about(&self) -> Result<About> {
        self.source.about()
    }

    fn sample(&self, stream: usize) -> Result<Option<Box<dyn RowReader>>> {
        self.source.sample(stream)
    }

    fn place(&self, stream: usize, step: Position) -> String {
        self.source.place(stream, step)
    }
}

/// Rows, each divided by its sum.
struct NormalizedRows {
    rows: Box<dyn RowReader>,
}

impl RowReader for NormalizedRows {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let before = block.len();
        let read = self.rows.read(block, rows)?;
        for index in before..block.len() {
            if !normalize(block.weights_mut(index)) {
                block.make_null(index);
            }
        }
        Ok(read)
    }
}

/// Divides a row by its sum, and says whether it holds anything. A row that is no attention, with a negative
/// weight or none that is a number, is left for whoever refuses it.
fn normalize(row: &mut [f32]) -> bool {
    let sum: f64 = row.iter().map(|weight| f64::from(*weight)).sum();
    if row.iter().all(|weight| *weight >= 0.0) && sum > 0.0 && sum.is_finite() {
        row.iter_mut().for_each(|weight| *weight = (f64::from(*weight) / sum) as f32);
    }
    row.iter().any(|weight| *weight != 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(row: &[f32]) -> Option<Vec<f32>> {
        let mut row = row.to_vec();
        normalize(&mut row).then_some(row)
    }

    #[test]
    fn a_row_is_divided_by_its_sum_in_doubles() {
        assert_eq!(normalized(&[2.0, 1.0, 1.0]), Some(vec![0.5, 0.25, 0.25]));
        assert_eq!(normalized(&[1.0, 2.0]), Some(vec![(1.0 / 3.0_f64) as f32, (2.0 / 3.0_f64) as f32]));
        assert_eq!(normalized(&[f32::MAX, f32::MAX]), Some(vec![0.5, 0.5]));
    }

    #[test]
    fn a_row_of_zeros_is_no_information() {
        assert_eq!(normalized(&[0.0, 0.0]), None);
        assert_eq!(normalized(&[]), None);
    }

    #[test]
    fn a_row_that_is_no_attention_is_left_to_be_refused() {
        assert_eq!(normalized(&[-1.0, 3.0]), Some(vec![-1.0, 3.0]));
        assert_eq!(normalized(&[f32::INFINITY, 3.0]), Some(vec![f32::INFINITY, 3.0]));
        assert!(normalized(&[f32::NAN, 3.0]).expect("left").iter().any(|weight| weight.is_nan()));
    }
}
