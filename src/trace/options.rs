//! What a user may say about a trace that its file does not: how rows and columns are to be read.
//!
//! A set of plain values. Knows no file format; each format lists in [`super::formats::FORMATS`]
//! which of them it can honour, and the others are refused by name.

use super::SelfAttention;
use super::axes::Axes;
use crate::error::{Error, Result};
use crate::word::Word;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
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
    /// Rows and columns from this position on are padding: they do not exist. Counted before
    /// [`ReadOptions::start`] is taken off.
    pub end: Option<usize>,
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
    /// Further files that are part of the trace: other layers, heads or steps.
    pub joined: Vec<PathBuf>,
    /// Bytes that may be held in memory for an array which cannot be streamed as it is stored; a
    /// larger one goes through a temporary file.
    pub max_memory: Option<u64>,
    /// Is told, before it is done, of work that takes long or much room.
    pub announce: Option<fn(&str)>,
}

/// What the weights of a row are divided by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Normalize {
    /// Each row by its own sum, in f64, rounded to f32; a row of zeros says nothing about its step.
    Rows,
}

impl Word for Normalize {
    const WORDS: &'static [(Normalize, &'static str, &'static str)] = &[(
        Normalize::Rows,
        "rows",
        "each row by its own sum, in f64, rounded to f32; a row of zeros says nothing about its step",
    )];
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

impl Word for ColumnOrder {
    const WORDS: &'static [(ColumnOrder, &'static str, &'static str)] = &[
        (ColumnOrder::Ascending, "ascending", "positions ascend: the last column is the token itself"),
        (ColumnOrder::Ring, "ring", "position p is in column p mod window, as in a ring buffer"),
    ];
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
    /// [`ReadOptions::end`].
    End,
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
    pub const COMMON: &'static [ReadOption] = &[ReadOption::End, ReadOption::LayerWindow, ReadOption::Normalize];
    /// All of them.
    pub const ALL: &'static [ReadOption] = &[
        ReadOption::SelfAttention,
        ReadOption::Start,
        ReadOption::End,
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
        &[ReadOption::FirstPosition, ReadOption::End, ReadOption::LayerWindow, ReadOption::Normalize];

    /// The flag of the command line.
    pub fn flag(self) -> &'static str {
        match self {
            ReadOption::SelfAttention => "--self",
            ReadOption::Start => "--start",
            ReadOption::End => "--end",
            ReadOption::FirstPosition => "--first-position",
            ReadOption::ColumnOffset => "--column-offset",
            ReadOption::LayerWindow => "--layer-window",
            ReadOption::Normalize => "--normalize",
            ReadOption::Axes => "--axes",
            ReadOption::Columns => "--columns",
            ReadOption::Arrays => "--array",
        }
    }

    /// The value that was given for it, as it would be typed.
    fn said(self, options: &ReadOptions) -> Option<String> {
        let count = |count: Option<usize>| count.map(|count| count.to_string());
        let list = |values: &PerLayer| (!values.is_empty()).then(|| values.to_string());
        match self {
            ReadOption::SelfAttention => options.self_attention.map(|kind| kind.word().to_owned()),
            ReadOption::Start => count(options.start),
            ReadOption::End => count(options.end),
            ReadOption::FirstPosition => count(options.first_position),
            ReadOption::ColumnOffset => list(&options.column_offset),
            ReadOption::LayerWindow => list(&options.layer_window),
            ReadOption::Normalize => options.normalize.map(|Normalize::Rows| "rows".to_owned()),
            ReadOption::Axes => options.axes.as_ref().map(Axes::to_string),
            ReadOption::Columns => (options.columns == ColumnOrder::Ring).then(|| "ring".to_owned()),
            ReadOption::Arrays => (!options.arrays.is_empty()).then(|| options.arrays.join(" --array ")),
        }
    }

    /// Whether a report has a column of its own for it.
    fn has_column(self) -> bool {
        matches!(self, ReadOption::Start | ReadOption::Normalize)
    }
}

impl ReadOptions {
    /// Says something before it is done, where anybody listens.
    pub(super) fn announce(&self, text: &str) {
        if let Some(announce) = self.announce {
            announce(text);
        }
    }

    /// What is said of a trace beside its file that decides what its rows mean and has no column of its own in
    /// a report: part of its content.
    pub(super) fn reading(&self) -> String {
        let said = |option: &ReadOption| option.said(self).map(|value| format!(" {} {value}", option.flag()));
        ReadOption::ALL.iter().filter(|option| !option.has_column()).filter_map(said).collect()
    }

    /// The flags that were given, as they would be typed.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let one = |option: &ReadOption| option.said(self).map(|value| (option.flag(), value));
        let single = ReadOption::ALL.iter().filter(|option| **option != ReadOption::Arrays).filter_map(one);
        single.chain(self.arrays.iter().map(|name| (ReadOption::Arrays.flag(), name.clone()))).collect()
    }

    /// Refuses what was asked for beyond `honoured`; `trace` names the kind of trace that has no use for it.
    ///
    /// # Errors
    /// When an option is given that is not among `honoured`.
    pub fn allow_only(&self, honoured: &[ReadOption], trace: &str) -> Result<()> {
        let refused = ReadOption::ALL.iter().find(|option| option.said(self).is_some() && !honoured.contains(option));
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
    fn what_was_read_is_written_as_it_was_typed() {
        for text in ["512", "0:512,3:64", "16,3:64"] {
            assert_eq!(text.parse::<PerLayer>().expect("sound").to_string(), text);
        }
    }

    #[test]
    fn what_decides_what_rows_mean_is_part_of_the_content_unless_it_has_a_column() {
        let options =
            ReadOptions { start: Some(3), end: Some(9), column_offset: PerLayer::all(2), ..Default::default() };
        assert_eq!(options.reading(), " --end 9 --column-offset 2");
        assert_eq!(ReadOptions { start: Some(3), ..Default::default() }.reading(), "");
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
