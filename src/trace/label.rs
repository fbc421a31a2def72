//! The name of a stream: layer and head, ordered as reports show them.

use serde::{Serialize, Serializer};
use std::fmt;

/// Layer and head of a stream; ordered by layer, then head.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamLabel {
    /// Layer number, from 0.
    pub layer: u32,
    /// Head number, or a word such as `mean`.
    pub head: Head,
}

/// A head: numbers come before words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Head {
    /// A single head, from 0.
    Number(u32),
    /// What several heads were reduced to, such as `mean`.
    Word(String),
}

impl StreamLabel {
    /// Reads `{layer}.{head}`, as it stands in tensor names.
    pub fn parse(text: &str) -> Option<StreamLabel> {
        let (layer, head) = text.split_once('.')?;
        let layer = layer.parse().ok()?;
        (!head.is_empty()).then(|| StreamLabel { layer, head: Head::parse(head) })
    }
}

impl Head {
    /// Reads a head as it stands in tensor names and JSON lines.
    pub fn parse(text: &str) -> Head {
        text.parse().map_or_else(|_| Head::Word(text.to_owned()), Head::Number)
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Head::Number(number) => number.fmt(f),
            Head::Word(word) => word.fmt(f),
        }
    }
}

impl fmt::Display for StreamLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.layer, self.head)
    }
}

impl Serialize for Head {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for StreamLabel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_order_numbers_before_words() {
        let mut heads = ["mean", "10", "9", "kv"].map(Head::parse).to_vec();
        heads.sort();
        let words: Vec<String> = heads.iter().map(Head::to_string).collect();
        assert_eq!(words, ["9", "10", "kv", "mean"]);
    }
}
