//! What a user may say about a trace that its file does not: how rows and columns are to be read.
//!
//! A set of plain values. Knows no file format; each format lists in [`super::formats::FORMATS`]
//! which of them it can honour, and the others are refused by name.

use super::SelfAttention;
use super::axes::Axes;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How a trace is to be read, where the file does not say it or says it wrongly. The default adds
/// nothing to what the file says.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Whether rows hold the token itself; decides against the file and against what its diagonal looks like.
    pub self_attention: Option<SelfAttention>,
    /// Rows and columns before this position are padding: they do not exist, and the position here
    /// becomes position 0.
    pub start: Option<usize>,
    /// The position of the token that row 0 belongs to, counted before [`ReadOptions::start`] is taken off.
    pub first_position: Option<usize>,
    /// The position that column 0 stands for, counted before [`ReadOptions::start`] is taken off.
    pub column_offset: PerLayer,
    /// The sliding window of the layers, in positions.
    pub layer_window: PerLayer,
    /// What rows are divided by.
    pub normalize: Option<Normalize>,
    /// What the indices of an array count, where its shape alone would be read otherwise.
    pub axes: Option<Axes>,
    /// How the columns of a cache that lets old positions go are ordered.
    pub columns: ColumnOrder,
    /// Names or patterns (`*`, `?`) of the arrays that hold the attention, of the arrays of a file; empty where
    /// only one kind of array can.
    pub arrays: Vec<String>,
    /// Bytes that may be held in memory for an array which cannot be streamed as it is stored; a
    /// larger one goes through a temporary file.
    pub max_memory: Option<u64>,
}

/// What the weights of a row are divided by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Normalize {
    /// Each row by its own sum, in f64, rounded to f32; a row of zeros says nothing about its step.
    Rows,
}

/// The order of the columns of a layer whose cache is as wide as its sliding window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ColumnOrder {
    /// Positions ascend: the last column is the token itself.
    #[default]
    Ascending,
    /// Position `p` is in column `p` mod window, as in a ring buffer.
    Ring,
}

impl FromStr for ColumnOrder {
    type Err = String;

    /// Reads `ascending` or `ring`.
    fn from_str(text: &str) -> Result<ColumnOrder, String> {
        match text {
            "ascending" => Ok(ColumnOrder::Ascending),
            "ring" => Ok(ColumnOrder::Ring),
            _ => Err(format!(
                "{text:?} is not an order of columns: write ascending or ring (slot = position mod window)"
            )),
        }
    }
}

/// A number for all layers, for some of them, or for none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PerLayer {
    /// For every layer that is not named.
    pub others: Option<usize>,
    /// For single layers.
    pub layers: BTreeMap<u32, usize>,
}

impl PerLayer {
    /// The same number for every layer.
    pub fn all(value: usize) -> PerLayer {
        PerLayer { others: Some(value), layers: BTreeMap::new() }
    }

    /// The number for a layer.
    pub fn of(&self, layer: u32) -> Option<usize> {
        self.layers.get(&layer).copied().or(self.others)
    }

    /// Whether no layer has a number.
    pub fn is_empty(&self) -> bool {
        self.others.is_none() && self.layers.is_empty()
    }
}

impl FromStr for PerLayer {
    type Err = String;

    /// Reads `512` (every layer) or `0:512,2:1024` (these layers), or both mixed.
    fn from_str(text: &str) -> Result<PerLayer, String> {
        let mut values = PerLayer::default();
        for part in text.split(',') {
            values.add(part.trim()).ok_or_else(|| {
                format!("{part:?} is not a number for every layer, such as 512, or for one, such as 3:512, given once")
            })?;
        }
        Ok(values)
    }
}

impl fmt::Display for PerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers = self.layers.iter().map(|(layer, value)| format!("{layer}:{value}"));
        let all: Vec<String> = self.others.iter().map(usize::to_string).chain(layers).collect();
        f.write_str(&all.join(","))
    }
}

impl PerLayer {
    fn add(&mut self, part: &str) -> Option<()> {
        let before = match part.split_once(':') {
            None => self.others.replace(part.parse().ok()?),
            Some((layer, value)) => self.layers.insert(layer.parse().ok()?, value.parse().ok()?),
        };
        before.is_none().then_some(())
    }
}

/// The name of an option, by which a format says that it honours it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOption {
    /// [`ReadOptions::self_attention`].
    SelfAttention,
    /// [`ReadOptions::start`].
    Start,
    /// [`ReadOptions::first_position`].
    FirstPosition,
    /// [`ReadOptions::column_offset`].
    ColumnOffset,
    /// [`ReadOptions::layer_window`].
    LayerWindow,
    /// [`ReadOptions::normalize`].
    Normalize,
    /// [`ReadOptions::axes`].
    Axes,
    /// [`ReadOptions::columns`].
    Columns,
    /// [`ReadOptions::arrays`].
    Arrays,
}

impl ReadOption {
    /// The options that any format honours.
    pub const COMMON: &'static [ReadOption] = &[ReadOption::LayerWindow, ReadOption::Normalize];
    /// All of them.
    pub const ALL: &'static [ReadOption] = &[
        ReadOption::SelfAttention,
        ReadOption::Start,
        ReadOption::FirstPosition,
        ReadOption::ColumnOffset,
        ReadOption::LayerWindow,
        ReadOption::Normalize,
        ReadOption::Axes,
        ReadOption::Columns,
        ReadOption::Arrays,
    ];
    /// What rows of a text file honour.
    pub const LINES: &'static [ReadOption] =
        &[ReadOption::FirstPosition, ReadOption::LayerWindow, ReadOption::Normalize];

    /// The flag of the command line.
    pub fn flag(self) -> &'static str {
        match self {
            ReadOption::SelfAttention => "--self",
            ReadOption::Start => "--start",
            ReadOption::FirstPosition => "--first-position",
            ReadOption::ColumnOffset => "--column-offset",
            ReadOption::LayerWindow => "--layer-window",
            ReadOption::Normalize => "--normalize",
            ReadOption::Axes => "--axes",
            ReadOption::Columns => "--columns",
            ReadOption::Arrays => "--array",
        }
    }

    fn is_given(self, options: &ReadOptions) -> bool {
        match self {
            ReadOption::SelfAttention => options.self_attention.is_some(),
            ReadOption::Start => options.start.is_some(),
            ReadOption::FirstPosition => options.first_position.is_some(),
            ReadOption::ColumnOffset => !options.column_offset.is_empty(),
            ReadOption::LayerWindow => !options.layer_window.is_empty(),
            ReadOption::Normalize => options.normalize.is_some(),
            ReadOption::Axes => options.axes.is_some(),
            ReadOption::Columns => options.columns != ColumnOrder::Ascending,
            ReadOption::Arrays => !options.arrays.is_empty(),
        }
    }
}

impl ReadOptions {
    /// Refuses what was asked for beyond `honoured`; `trace` names the kind of trace that has no use for it.
    ///
    /// # Errors
    /// When an option is given that is not among `honoured`.
    pub fn allow_only(&self, honoured: &[ReadOption], trace: &str) -> Result<()> {
        let refused = ReadOption::ALL.iter().find(|option| option.is_given(self) && !honoured.contains(option));
        match refused {
            None => Ok(()),
            Some(option) => {
                let flag = option.flag();
                Err(Error::usage(format!("{flag} is for square arrays: {trace} says it itself (leave out {flag})")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_for_all_layers_or_for_some() {
        let values: PerLayer = "0:512, 3:64".parse().expect("sound");
        assert_eq!([0, 1, 3].map(|layer| values.of(layer)), [Some(512), None, Some(64)]);
        assert_eq!(values.to_string(), "0:512,3:64");
        let values: PerLayer = "16,3:64".parse().expect("sound");
        assert_eq!([0, 3].map(|layer| values.of(layer)), [Some(16), Some(64)]);
    }

    #[test]
    fn what_is_no_number_or_is_said_twice_is_refused() {
        for text in ["", "x", "1:", ":1", "1:2:3", "1,2", "1:2,1:3", "-1"] {
            assert!(text.parse::<PerLayer>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_option_without_a_use_is_refused_by_name() {
        let options = ReadOptions { start: Some(3), ..Default::default() };
        let error = options.allow_only(ReadOption::COMMON, "a native trace").expect_err("refused");
        assert_eq!(
            error.to_string(),
            "--start is for square arrays: a native trace says it itself (leave out --start)"
        );
        assert!(options.allow_only(ReadOption::ALL, "x").is_ok());
    }
}
