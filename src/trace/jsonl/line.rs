//! One line of a JSON lines trace: the optional header, or a row. Parses and checks a single line.

use super::weights::Weights;
use crate::position::Position;
use crate::trace::limits::{check_positions, cut};
use crate::trace::{Head, SelfAttention, StreamLabel};
use crate::word::Word;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// No header is longer: what is, is a row that cannot be read.
const MOST_HEADER: usize = 1 << 24;

/// A parsed line.
pub(super) enum Line {
    Header(HeaderLine),
    Row(RowLine),
}

/// What the header says.
#[derive(Default)]
pub(super) struct HeaderLine {
    pub self_attention: Option<SelfAttention>,
    pub seq_len: Option<usize>,
    /// The step of every stream's first row.
    pub first_position: Option<usize>,
    pub metadata: BTreeMap<String, String>,
}

/// A row as it stands in the file; `null` weights are what some writers make of NaN.
#[derive(Deserialize)]
#[serde(expecting = "an object with layer, head, step and attn")]
pub(super) struct RowLine {
    #[serde(default)]
    layer: u32,
    #[serde(default)]
    head: HeadField,
    pub step: u32,
    #[serde(deserialize_with = "null_or_weights")]
    attn: Option<Weights>,
}

/// Null says that there is no information; a line that does not say it is an error.
fn null_or_weights<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Weights>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a head must be a number or a word")]
enum HeadField {
    Number(u32),
    Word(#[serde(deserialize_with = "some_word")] String),
}

/// A stream whose head has no name could be named by no other format.
fn some_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let word = String::deserialize(deserializer)?;
    if word.is_empty() { Err(serde::de::Error::custom("an empty word")) } else { Ok(word) }
}

impl Default for HeadField {
    fn default() -> Self {
        HeadField::Number(0)
    }
}

impl Line {
    /// Parses a line of text.
    pub(super) fn parse(text: &[u8]) -> Result<Line, String> {
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err("not a row: each line is one JSON object".to_owned());
        }
        let parsed = serde_json::from_slice::<RowLine>(text).or_else(|error| parse_with_nan(text).ok_or(error));
        let error = match parsed {
            Ok(row) => return Ok(Line::Row(row)),
            Err(error) => error,
        };
        match serde_json::from_slice::<Value>(if text.len() <= MOST_HEADER { text } else { &[] }) {
            Ok(value) if value.get("kvsim").is_some() => parse_header(&value).map(Line::Header),
            _ => Err(format!("not a row: {}", one_line(&error))),
        }
    }
}

/// Python writes NaN and Infinity, which JSON does not know: read the first as a weight that is not a number, the
/// other as a number beyond f32, which rounds to an infinity.
fn parse_with_nan(text: &[u8]) -> Option<RowLine> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains("NaN") && !text.contains("Infinity") {
        return None;
    }
    let text = text.replace("Infinity", "1e39").replace("NaN", "null");
    serde_json::from_str(&text).ok()
}

/// The parser counts lines within the line it was given: only the column means something here.
fn one_line(error: &serde_json::Error) -> String {
    let text = cut(&error.to_string());
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("{} (column {})", &text[..end], error.column())
}

fn parse_header(value: &Value) -> Result<HeaderLine, String> {
    let Some(fields) = value.as_object() else { return Err("not a header".to_owned()) };
    let mut header = HeaderLine::default();
    for (key, field) in fields {
        match key.as_str() {
            "kvsim" if field.as_u64() != Some(1) && field.as_str() != Some("1") => {
                return Err(format!("format version {field}, this version reads 1"));
            }
            "kvsim" => {}
            "self" => {
                let word = field.as_str().and_then(SelfAttention::from_word);
                let problem = || format!("self is {field}, must be \"included\" or \"excluded\"");
                header.self_attention = Some(word.ok_or_else(problem)?);
            }
            "seq_len" => header.seq_len = Some(positions(key, field)?),
            "first_position" => header.first_position = Some(positions(key, field)?),
            _ => {
                let text = field.as_str().map_or_else(|| field.to_string(), str::to_owned);
                header.metadata.insert(key.clone(), text);
            }
        }
    }
    Ok(header)
}

/// A number of positions, or a position.
fn positions(key: &str, field: &Value) -> Result<usize, String> {
    let number = field.as_u64().or_else(|| field.as_str()?.parse().ok());
    let number = number.ok_or_else(|| format!("{key} is {field}, must be a whole number"))? as usize;
    check_positions(number).map_err(|problem| format!("{key}: {problem}"))?;
    Ok(number)
}

impl RowLine {
    pub(super) fn label(&self) -> StreamLabel {
        let head = match &self.head {
            HeadField::Number(number) => Head::Number(*number),
            HeadField::Word(word) => Head::parse(word),
        };
        StreamLabel { layer: self.layer, head }
    }

    /// The weights; empty where there is no information.
    pub(super) fn weights(&self) -> &[f32] {
        self.attn.as_ref().map_or(&[], |weights| &weights.0)
    }

    /// Where no header says it, the first row does: as many weights as the step, or one more.
    pub(super) fn guess_self_attention(&self) -> SelfAttention {
        let included = match &self.attn {
            Some(weights) => weights.0.len() == self.step as usize + 1,
            None => self.step == 0,
        };
        if included { SelfAttention::Included } else { SelfAttention::Excluded }
    }

    pub(super) fn check_len(&self, kind: SelfAttention) -> Result<(), String> {
        let needed = kind.row_len(Position(self.step));
        match self.attn.as_ref().map(|weights| weights.0.len()) {
            Some(found) if found != needed => Err(format!(
                "row has {found} weights, step {} needs {needed} (one for each position 0..={})",
                self.step,
                needed.saturating_sub(1)
            )),
            _ => Ok(()),
        }
    }
}
