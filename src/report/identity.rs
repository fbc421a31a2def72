//! What was replayed and how it was measured: the keys by which results say what they are.
//!
//! A plain struct that whoever runs a replay fills in; knows no outcomes.

use super::cell::Cell;
use crate::trace::{Head, StreamLabel};
use crate::word::Word;
use std::collections::{BTreeMap, BTreeSet};

/// What all lines of one replay of one trace have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Identity {
    /// Version of kvsim; that of this crate by default.
    pub version: String,
    /// Name of the trace.
    pub trace: String,
    /// Hash of the trace's content, where it is known, in hexadecimal digits.
    pub content: Option<String>,
    /// Number of positions of the trace.
    pub positions: usize,
    /// Position of the first row.
    pub first_position: usize,
    /// Whether rows hold the token itself.
    pub self_attention: &'static str,
    /// Positions at the start that were left out as padding.
    pub start: usize,
    /// What rows were divided by; `off` for nothing.
    pub normalize: &'static str,
    /// Rows of each stream that were replayed.
    pub rows: usize,
    /// Rows of each stream that there are.
    pub rows_total: usize,
    /// The caches that the whole trace makes, of which some may have been chosen.
    pub available: Vec<StreamLabel>,
    /// How query heads share caches; `off` where each stream has its own.
    pub kv_heads: String,
    /// What policies saw.
    pub view: &'static str,
    /// Whether positions that have left their layer's sliding window leave the cache.
    pub expiry: bool,
    /// k of the heavy-hitter recall.
    pub heavy_hitters: usize,
    /// Outputs were measured in the rows of every so manieth position; `None` where they were not.
    pub output_every: Option<usize>,
    /// How the budget was dealt out to layers, as it was asked for.
    pub layer_shape: String,
}

impl Identity {
    /// A whole trace that was replayed with nothing asked for.
    pub fn of_trace(info: &crate::trace::TraceInfo) -> Identity {
        let rows = info.streams.iter().map(|stream| stream.rows).max().unwrap_or(0);
        Identity {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            trace: info.name.clone(),
            content: None,
            positions: info.positions,
            first_position: info.first_position.index(),
            self_attention: info.self_attention.word(),
            start: 0,
            normalize: "off",
            rows,
            rows_total: rows,
            available: info.streams.iter().map(|stream| stream.label.clone()).collect(),
            kv_heads: "off".to_owned(),
            view: "raw",
            expiry: true,
            heavy_hitters: crate::replay::DEFAULT_HEAVY_HITTERS,
            output_every: None,
            layer_shape: "uniform".to_owned(),
        }
    }

    /// The cell of a key that all lines share; `None` for any other column.
    pub(super) fn cell(&self, column: &str) -> Option<Cell> {
        Some(match column {
            "trace" => Cell::text(&self.trace),
            "layer_shape" => Cell::text(&self.layer_shape),
            "view" => Cell::text(self.view),
            "heavy_hitters" => Cell::count(Some(self.heavy_hitters)),
            "output_every" => Cell::count(self.output_every),
            "kv_heads" => label(&self.kv_heads),
            "rows" => Cell::count(Some(self.rows)),
            "rows_total" => Cell::count(Some(self.rows_total)),
            "positions" => Cell::count(Some(self.positions)),
            "self" => Cell::text(self.self_attention),
            "first_position" => Cell::count(Some(self.first_position)),
            "start" => Cell::count(Some(self.start)),
            "normalize" => Cell::text(self.normalize),
            "expiry" => Cell::text(if self.expiry { "on" } else { "off" }),
            // Digits alone would come back from a spreadsheet as a number.
            "content" => self.content.as_ref().map_or(Cell::Blank, |hash| Cell::text(&format!("0x{hash}"))),
            "version" => Cell::text(&self.version),
            _ => return None,
        })
    }
}

/// A number or a word.
pub(super) fn label(text: &str) -> Cell {
    text.parse().map_or_else(|_| Cell::text(text), Cell::Count)
}

/// How `layer` and `head` call some of the caches that there are.
pub(super) fn part(chosen: &[&StreamLabel], available: &[&StreamLabel]) -> [Cell; 2] {
    let (part, whole) = (by_layer(chosen), by_layer(available));
    let layers: Vec<u32> = part.keys().copied().collect();
    let heads: BTreeSet<&Head> = part.values().flatten().copied().collect();
    let layer = match &layers[..] {
        [only] => Cell::Count(u64::from(*only)),
        some if some.len() == whole.len() => Cell::text("all"),
        some => Cell::text(&ranges(some)),
    };
    let complete = part.iter().all(|(layer, heads)| whole.get(layer).is_none_or(|all| all == heads));
    let alike = part.values().all(|own| own.len() == heads.len());
    let head = match heads.iter().collect::<Vec<_>>()[..] {
        [only] => label(&only.to_string()),
        _ if complete => Cell::text("all"),
        _ if alike => Cell::text(&words(&heads)),
        _ => Cell::text(&shortened(chosen.iter().map(|label| pair(label)).collect())),
    };
    [layer, head]
}

/// The heads of each layer.
fn by_layer<'a>(labels: &[&'a StreamLabel]) -> BTreeMap<u32, BTreeSet<&'a Head>> {
    let mut layers: BTreeMap<u32, BTreeSet<&Head>> = BTreeMap::new();
    for label in labels {
        layers.entry(label.layer).or_default().insert(&label.head);
    }
    layers
}

/// `layer/head`: a slash, since `3.10` is a number to most programs, and the same one as `3.1`.
pub(super) fn pair(label: &StreamLabel) -> String {
    format!("{}/{}", label.layer, label.head)
}

fn words(heads: &BTreeSet<&Head>) -> String {
    let numbers: Option<Vec<u32>> = heads.iter().map(|head| number(head)).collect();
    numbers.map_or_else(|| shortened(heads.iter().map(ToString::to_string).collect()), |heads| ranges(&heads))
}

fn number(head: &Head) -> Option<u32> {
    if let Head::Number(number) = head { Some(*number) } else { None }
}

/// Ascending numbers as a list, three or more in a row as a range with its ends: `3,10`, `0..3,7`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{first}..{last}")],
        few => few.iter().map(u32::to_string).collect(),
    });
    shortened(runs.collect())
}

/// Longest text that names its parts one by one.
const LONGEST: usize = 80;

/// A list, or where that is long, how many there are and a hash that tells it from another such list.
fn shortened(parts: Vec<String>) -> String {
    let list = parts.join(",");
    if list.len() <= LONGEST {
        return list;
    }
    let hash = list.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{} parts (0x{hash:08x})", parts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<StreamLabel> {
        text.split_whitespace().map(|label| StreamLabel::parse(label).expect("a label")).collect()
    }

    #[track_caller]
    fn check(chosen: &str, available: &str, wanted: [&str; 2]) {
        let (chosen, available) = (labels(chosen), labels(available));
        let cells = part(&chosen.iter().collect::<Vec<_>>(), &available.iter().collect::<Vec<_>>());
        assert_eq!(cells.map(|cell| cell.exact()), wanted);
    }

    #[test]
    fn one_layer_or_head_is_named_and_all_is_said_of_the_whole_only() {
        let whole = "0.0 0.1 3.0 3.1 10.0 10.1";
        check(whole, whole, ["all", "all"]);
        check("3.0 3.1", whole, ["3", "all"]);
        check("10.0 10.1", whole, ["10", "all"]);
        check("3.0 3.1 10.0 10.1", whole, ["3,10", "all"]);
        check("0.1 3.1 10.1", whole, ["all", "1"]);
        check("3.1", whole, ["3", "1"]);
        check("3.0 10.1", whole, ["3,10", "3/0,10/1"]);
        check("0.0", "0.0", ["0", "0"]);
        check("15.mean 16.6", "15.mean 16.6", ["all", "all"]);
        check("2.kv0 2.kv1", "2.kv0 2.kv1 2.kv2", ["2", "kv0,kv1"]);
    }

    #[test]
    fn runs_are_ranges_and_long_lists_are_counted_and_told_apart() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 8]), "0..3,7,8");
        let even: Vec<u32> = (0..80).map(|number| 2 * number).collect();
        let odd: Vec<u32> = (0..80).map(|number| 2 * number + 1).collect();
        assert!(ranges(&even).starts_with("80 parts (0x"), "{}", ranges(&even));
        assert_ne!(ranges(&even), ranges(&odd));
    }
}
