//! The flags that say how a trace is to be read, shared by every command that reads one.

use super::notes::to_stderr;
use super::words::words;
use clap::Args;
use kvsim::trace::SelfAttention;
use kvsim::trace::options::{Normalize, PerLayer, ReadOptions};

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
            max_memory: self.max_memory,
            announce: Some(|text| to_stderr(&format!("note: {text}\n"))),
        }
    }
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
