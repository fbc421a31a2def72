//! How budgets are dealt out to layers, with the words for it.

use crate::error::Result;
use crate::replay::LayerBudgets;
use std::ffi::OsStr;

/// How budgets are dealt out to layers, with the words for it.
#[derive(Clone, Debug)]
pub struct LayerShape {
    /// As it was asked for, which is how reports call it.
    pub name: String,
    /// What it means.
    pub budgets: LayerBudgets,
}

impl LayerShape {
    /// Reads `uniform`, `pyramid:RATIO`, `funnel:RATIO`, or the name of a JSON file.
    ///
    /// # Errors
    /// As [`LayerBudgets::parse`].
    pub fn parse(text: &OsStr) -> Result<LayerShape> {
        Ok(LayerShape { name: text.to_string_lossy().into_owned(), budgets: LayerBudgets::parse(text)? })
    }
}

impl Default for LayerShape {
    fn default() -> Self {
        LayerShape { name: "uniform".to_owned(), budgets: LayerBudgets::Uniform }
    }
}
