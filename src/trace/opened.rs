//! A trace of any format as commands get it: with what its user said of it, and with its rows watched.

use super::options::{Normalize, PerLayer, ReadOptions};
use super::watch::{RowSums, SumWatch};
use super::{About, RowBlock, RowReader, Source, TraceInfo, hash};
use crate::error::{Error, Result};
use crate::needs::Needs;
use crate::position::Position;
use crate::tensors::{HeadTensors, LayerTensors};

/// A trace that has been opened.
pub(super) struct OpenedTrace {
    source: Box<dyn Source>,
    /// Where the user said something that the format does not know of.
    info: Option<TraceInfo>,
    normalize: Option<Normalize>,
    /// What else the user said, as part of the content.
    reading: String,
    sums: SumWatch,
}

impl OpenedTrace {
    /// Adds to a trace what the options say and its format knows nothing of.
    ///
    /// # Errors
    /// When an option names a layer that the trace does not have, or leaves no row.
    pub(super) fn open(source: Box<dyn Source>, options: &ReadOptions) -> Result<Box<dyn Source>> {
        check_layers(source.info(), &options.layer_window, "--layer-window")?;
        check_layers(source.info(), &options.column_offset, "--column-offset")?;
        let info = said_of(source.info(), options)?;
        let (normalize, reading, sums) = (options.normalize, options.reading(), SumWatch::default());
        Ok(Box::new(OpenedTrace { source, info, normalize, reading, sums }))
    }
}

fn check_layers(info: &TraceInfo, values: &PerLayer, flag: &str) -> Result<()> {
    let known = |layer: &u32| info.streams.iter().any(|stream| stream.label.layer == *layer);
    match values.layers.keys().find(|layer| !known(layer)) {
        None => Ok(()),
        Some(layer) => Err(Error::usage(format!("{flag} names layer {layer}, which {} does not have", info.name))),
    }
}

/// The description of a trace with what options say against it; `None` where they say nothing.
fn said_of(info: &TraceInfo, options: &ReadOptions) -> Result<Option<TraceInfo>> {
    let end = options.end.map(|end| end.saturating_sub(options.start.unwrap_or(0)));
    if options.layer_window.is_empty() && end.is_none_or(|end| end >= info.positions) {
        return Ok(None);
    }
    let mut info = with_windows(info.clone(), &options.layer_window)?;
    if let Some(end) = end {
        cut(&mut info, end)?;
    }
    Ok(Some(info))
}

fn with_windows(mut info: TraceInfo, windows: &PerLayer) -> Result<TraceInfo> {
    let mut layers: Vec<u32> = info.streams.iter().map(|stream| stream.label.layer).collect();
    layers.dedup();
    for layer in layers {
        let Some(window) = windows.of(layer) else { continue };
        if let Some(other) = info.facts.window_of(layer).filter(|other| *other != window) {
            info.notes.push(format!(
                "its metadata says that layer {layer} has a sliding window of {other} positions: --layer-window makes it \
                 {window}"
            ));
        }
        info.metadata.insert(format!("sliding_window.{layer}"), window.to_string());
    }
    let metadata = std::mem::take(&mut info.metadata);
    info.set_metadata(metadata)?;
    Ok(info)
}

/// Leaves out what lies from position `end` on.
fn cut(info: &mut TraceInfo, end: usize) -> Result<()> {
    let rows = end.saturating_sub(info.first_position.index());
    if rows == 0 && info.rows() > 0 {
        let problem = format!("--end {end} leaves none of the rows, which begin at position {}", info.first_position);
        return Err(Error::usage(format!("{}: {problem}", info.name)));
    }
    info.streams.iter_mut().for_each(|stream| stream.rows = stream.rows.min(rows));
    info.positions = info.positions.min(end);
    Ok(())
}

impl Source for OpenedTrace {
    fn info(&self) -> &TraceInfo {
        self.info.as_ref().unwrap_or_else(|| self.source.info())
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let mut rows = self.source.open(stream)?;
        if self.normalize == Some(Normalize::Rows) {
            rows = Box::new(NormalizedRows { rows });
        }
        match self.info.as_ref().map(|info| info.streams[stream].rows) {
            Some(left) if left < self.source.info().streams[stream].rows => Ok(Box::new(FirstRows { rows, left })),
            _ => Ok(rows),
        }
    }

    fn offers(&self) -> Needs {
        self.source.offers()
    }

    fn head_tensors(&self, stream: usize, needs: Needs) -> Result<Option<HeadTensors>> {
        self.source.head_tensors(stream, needs)
    }

    fn layer_tensors(&self, layer: u32) -> Result<Option<LayerTensors>> {
        self.source.layer_tensors(layer)
    }

    fn content_hash(&self) -> Result<String> {
        let hash = self.source.content_hash()?;
        Ok(if self.reading.is_empty() { hash } else { hash::of_text(&format!("{hash}{}", self.reading)) })
    }

    fn keep_sums(&self, stream: usize, sums: &RowSums) {
        self.sums.keep(stream, sums);
    }

    fn warnings(&self) -> Vec<String> {
        [self.sums.warnings(self.info()), self.source.warnings()].concat()
    }

    fn remarks(&self) -> Vec<String> {
        [self.sums.remarks(self.info()), self.source.remarks()].concat()
    }

    fn about(&self) -> Result<About> {
        self.source.about()
    }

    fn sample(&self, stream: usize) -> Result<Option<Box<dyn RowReader>>> {
        let whole = self.info().streams[stream].rows == self.source.info().streams[stream].rows;
        if whole && self.normalize.is_none() { self.source.sample(stream) } else { Ok(None) }
    }

    fn place(&self, stream: usize, step: Position) -> String {
        self.source.place(stream, step)
    }
}

/// The rows before a position.
struct FirstRows {
    rows: Box<dyn RowReader>,
    left: usize,
}

impl RowReader for FirstRows {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let read = self.rows.read(block, rows.min(self.left))?;
        self.left -= read;
        Ok(read)
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
