//! The flags that say how a trace is to be read, shared by every command that reads one.

use super::notes::to_stderr;
use super::words::words;
use clap::Args;
use kvsim::error::{Error, Result};
use kvsim::trace::axes::Axes;
use kvsim::trace::options::{ColumnOrder, Normalize, PerLayer, ReadOptions};
use kvsim::trace::{SelfAttention, Source, formats};
use std::ffi::OsString;
use std::path::PathBuf;

/// What a user says about a trace that its file does not.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to read the trace (what the file does not say)")]
pub struct ReadArgs {
    /// Whether each row holds the token itself [default: as the file says, or its diagonal]
    #[arg(long = "self", value_parser = words::<SelfAttention>(), value_name = "WHETHER")]
    self_attention: Option<SelfAttention>,

    /// Position where the sequence begins: what lies before it is padding
    #[arg(long, value_name = "N")]
    start: Option<usize>,

    /// Position where the sequence ends, counted like --start: what lies from it on is padding
    #[arg(long, value_name = "N")]
    end: Option<usize>,

    /// Position of the token that the first row belongs to, for dumps of decode steps
    #[arg(long, value_name = "P")]
    first_position: Option<usize>,

    /// Position that column 0 stands for: 512 for every layer, 0:512,3:64 for these
    #[arg(long, value_name = "LIST")]
    column_offset: Option<PerLayer>,

    /// What the indices of an array count, such as layer,head,query,key; batch=0 takes the first of several sequences
    #[arg(long, value_name = "LIST")]
    axes: Option<Axes>,

    /// Order of the columns where a layer is as wide as its window: ascending, or ring (position p is in column p
    /// mod window) [default: ascending]
    #[arg(long, value_parser = words::<ColumnOrder>(), value_name = "ORDER")]
    columns: Option<ColumnOrder>,

    /// The arrays of the file that hold the attention, by name or pattern ('*hook_pattern'); may be given several
    /// times [default: those that look like it]
    #[arg(long, value_name = "NAME")]
    array: Vec<String>,

    /// All the files named are one trace: a file for each layer or step (a folder of them needs no flag)
    #[arg(long)]
    pub join: bool,

    /// Sliding window of the layers, in positions: 512 for every layer, 0:512,3:64 for these
    #[arg(long, value_name = "LIST")]
    layer_window: Option<PerLayer>,

    /// Divide each row by its sum
    #[arg(long, value_parser = words::<Normalize>(), value_name = "WHAT")]
    normalize: Option<Normalize>,

    /// Most memory for what cannot be streamed: bytes, or 512M, 4G [default: 4G for planning ahead,
    /// a temporary file for arrays]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_memory: Option<u64>,
}

impl ReadArgs {
    /// The traces that are opened, and how: of files that are joined, the first stands for all. What is said of
    /// work before it is done is a note too.
    pub fn of<'a>(&self, traces: &'a [OsString], quiet: bool) -> (&'a [OsString], ReadOptions) {
        let options = ReadOptions { announce: (!quiet).then_some(announce), ..self.options() };
        match traces {
            [_, others @ ..] if self.join => {
                let joined = others.iter().map(PathBuf::from).collect();
                (&traces[..1], ReadOptions { joined, ..options })
            }
            _ => (traces, options),
        }
    }

    /// The one trace that a command works on, and how it is read.
    pub fn of_one<'a>(&self, traces: &'a [OsString], quiet: bool) -> Result<(&'a OsString, ReadOptions)> {
        match self.of(traces, quiet) {
            ([trace], options) => Ok((trace, options)),
            _ => Err(Error::usage("several files are one trace only with --join")),
        }
    }

    /// Opens a trace, or all of several files as one.
    pub fn open(&self, traces: &[OsString], quiet: bool) -> Result<Box<dyn Source>> {
        let (trace, options) = self.of_one(traces, quiet)?;
        formats::open(trace, &options)
    }

    /// The flags that were given, as they are typed.
    pub fn flags(&self) -> Vec<String> {
        let given = self.options().flags();
        let flags = given.into_iter().map(|(flag, value)| format!("{flag} {}", quoted(&value)));
        let max_memory = self.max_memory.map(|bytes| format!("--max-memory {bytes}"));
        flags.chain(max_memory).chain(self.join.then(|| "--join".to_owned())).collect()
    }

    /// What the library is told.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            self_attention: self.self_attention,
            start: self.start,
            end: self.end,
            first_position: self.first_position,
            column_offset: self.column_offset.clone().unwrap_or_default(),
            layer_window: self.layer_window.clone().unwrap_or_default(),
            normalize: self.normalize,
            axes: self.axes.clone(),
            columns: self.columns.unwrap_or_default(),
            arrays: self.array.clone(),
            joined: Vec::new(),
            max_memory: self.max_memory,
            announce: None,
        }
    }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn announce(text: &str) {
    to_stderr(&format!("note: {text}"));
}

fn parse_size(text: &str) -> Result<u64, String> {
    let shift = match text.chars().last().map(|unit| unit.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    let number = if shift == 0 { text } else { &text[..text.len() - 1] };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is not a size: write bytes, or 512M, 4G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("a/b-1.npy"), "a/b-1.npy");
        assert_eq!(quoted("*hook pattern"), "'*hook pattern'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
