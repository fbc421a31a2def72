//! The weights of a line, read straight into the four bytes each takes: a long line must not take many times
//! its length.

use crate::trace::limits::MOST_POSITIONS;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Weights as they stand in a line, f64 rounded to the nearest f32; NaN where the line has `null`.
pub(super) struct Weights(pub Vec<f32>);

impl<'de> Deserialize<'de> for Weights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Weights, D::Error> {
        deserializer.deserialize_seq(List).map(Weights)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = Vec<f32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f32>, A::Error> {
        let mut weights = Vec::new();
        while let Some(weight) = list.next_element::<Option<f64>>()? {
            if weights.len() == MOST_POSITIONS {
                return Err(A::Error::custom(format!("more than {MOST_POSITIONS} weights")));
            }
            weights.push(weight.map_or(f32::NAN, |weight| weight as f32));
        }
        Ok(weights)
    }
}
