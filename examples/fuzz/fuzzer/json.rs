//! Damage to JSON values and to numbers in text.

use super::random::Random;
use serde_json::{Map, Value, json};

/// Numbers and words at the edges of what types hold and what readers expect.
const EDGES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "13",
    "-1",
    "-0",
    "0.5",
    "1.5",
    "1e-20",
    "5e-324",
    "1e-45",
    "2e19",
    "1e38",
    "1e39",
    "1e308",
    "1e400",
    "65504",
    "65536",
    "1000000",
    "16777216",
    "16777217",
    "2147483647",
    "2147483648",
    "4294967294",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    "true",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
];

/// Words that mean something somewhere.
const WORDS: &[&str] = &[
    "included",
    "excluded",
    "F32",
    "F16",
    "BF16",
    "F64",
    "I32",
    "BOOL",
    "mean",
    "all",
    "0",
    "1",
    "layer.0",
    "h2o",
    "tova",
    "evict",
    "onDecodeStep",
    "keptCount",
    "budget",
    "recentWindow",
    "recurrent",
    "\u{1b}[31m",
    "a\nb",
    "|",
    "50%",
    "attn",
];

/// One of the edges, as text.
pub fn edge(random: &mut Random) -> &'static str {
    EDGES[random.below(EDGES.len())]
}

/// One of the edges as a JSON value; what JSON does not know is a string.
fn edge_value(random: &mut Random) -> Value {
    let text = edge(random);
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Changes one value somewhere inside.
pub fn change(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() && !random.one_in(12) => change_field(fields, random),
        Value::Array(items) if !items.is_empty() && !random.one_in(12) => change_item(items, random),
        Value::String(text) if random.one_in(2) => *text = other_text(text, random),
        _ => *value = edge_value(random),
    }
}

fn change_field(fields: &mut Map<String, Value>, random: &mut Random) {
    let key = fields.keys().nth(random.below(fields.len())).cloned().expect("there are fields");
    match random.below(10) {
        0 => drop(fields.shift_remove(&key)),
        1 => {
            let value = fields.shift_remove(&key).expect("it is there");
            fields.insert(other_text(&key, random), value);
        }
        2 => {
            let value = fields[&key].clone();
            fields.insert(other_text(&key, random), value);
        }
        _ => change(&mut fields[&key], random),
    }
}

fn change_item(items: &mut Vec<Value>, random: &mut Random) {
    let at = random.below(items.len());
    match random.below(10) {
        0 => drop(items.remove(at)),
        1 => items.insert(at, items[at].clone()),
        2 => items.swap(0, at),
        _ => change(&mut items[at], random),
    }
}

/// A text with another number in it, another word, or a part of itself.
fn other_text(text: &str, random: &mut Random) -> String {
    match random.below(4) {
        0 => (*random.pick(WORDS)).to_owned(),
        1 => edge(random).trim_matches('"').to_owned(),
        2 => text.chars().skip(random.below(4)).collect(),
        _ => with_other_number(text, random).unwrap_or_else(|| format!("{text}{}", random.pick(WORDS))),
    }
}

/// The text with one of its numbers replaced; `None` where it has none.
pub fn with_other_number(text: &str, random: &mut Random) -> Option<String> {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let bytes = text.as_bytes();
    let starts: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit() && (*at == 0 || !is_part(bytes[*at - 1]))).collect();
    if starts.is_empty() {
        return None;
    }
    let start = *random.pick(&starts);
    let len = bytes[start..].iter().take_while(|byte| is_part(**byte)).count();
    Some([&text[..start], edge(random), &text[start + len..]].concat())
}
