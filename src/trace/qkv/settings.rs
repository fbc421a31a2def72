//! What metadata says of scores: the scale, a soft cap, a sliding window.

use crate::error::{Error, Result};
use crate::trace::limits::{cut, quoted};
use std::collections::BTreeMap;
use std::str::FromStr;

/// What is done to the scores of a layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Settings {
    pub scale: f32,
    /// Whether the file says the scale; else it is one over the root of the number of channels.
    pub scale_is_said: bool,
    pub softcap: Option<f32>,
    pub window: Option<usize>,
}

impl Settings {
    /// Of a layer whose queries have `width` channels.
    ///
    /// # Errors
    /// When metadata says what cannot be.
    pub fn of(file: &str, metadata: &BTreeMap<String, String>, layer: u32, width: usize) -> Result<Settings> {
        let said = Said { file, metadata };
        let scale = said.of_layer("scale", layer, positive)?;
        Ok(Settings {
            scale: scale.unwrap_or((1.0 / (width as f64).sqrt()) as f32),
            scale_is_said: scale.is_some(),
            softcap: said.of_layer("softcap", layer, positive)?,
            window: said.at(&format!("sliding_window.{layer}"), at_least_one)?,
        })
    }
}

/// Numbers of the metadata that belong to the whole file.
pub(super) struct Said<'a> {
    pub file: &'a str,
    pub metadata: &'a BTreeMap<String, String>,
}

/// A check of a text, and what to say where it fails.
type Check<T> = fn(&str) -> Result<T, &'static str>;

impl Said<'_> {
    fn of_layer<T>(&self, key: &str, layer: u32, check: Check<T>) -> Result<Option<T>> {
        match self.at(&format!("{key}.{layer}"), check)? {
            None => self.at(key, check),
            own => Ok(own),
        }
    }

    /// What stands at a key.
    pub fn at<T>(&self, key: &str, check: Check<T>) -> Result<Option<T>> {
        let read = |text: &String| {
            check(text).map_err(|must| {
                Error::data(self.file, format!("{} is {} in the metadata, must be {must}", cut(key), quoted(text)))
            })
        };
        self.metadata.get(key).map(read).transpose()
    }
}

fn number<T: FromStr>(text: &str, sound: fn(&T) -> bool, must: &'static str) -> Result<T, &'static str> {
    text.parse().ok().filter(sound).ok_or(must)
}

/// A finite number above 0, as f32 holds it.
pub(super) fn positive(text: &str) -> Result<f32, &'static str> {
    number(text, |number: &f32| number.is_finite() && *number > 0.0, "a finite number above 0")
}

/// A whole number above 0.
pub(super) fn at_least_one(text: &str) -> Result<usize, &'static str> {
    number(text, |count: &usize| *count > 0, "a whole number of at least 1")
}
