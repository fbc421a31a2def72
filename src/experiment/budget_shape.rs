//! How budgets are dealt out to caches, with the words for it.

use crate::budgets::CacheBudgets;
use crate::error::Result;

use std::ffi::OsStr;

/// How budgets are dealt out to caches, with the words for it.
#[derive(Clone, Debug)]
pub struct BudgetShape {
    /// As it was asked for, which is how reports call it.
    pub name: String,
    /// What it means.
    pub budgets: CacheBudgets,
}

impl BudgetShape {
    /// Reads it as [`CacheBudgets::parse`] does.
    ///
    /// # Errors
    /// As [`CacheBudgets::parse`].
    pub fn parse(text: &OsStr) -> Result<BudgetShape> {
        Ok(BudgetShape { name: text.to_string_lossy().into_owned(), budgets: CacheBudgets::parse(text)? })
    }
}

impl Default for BudgetShape {
    fn default() -> Self {
        BudgetShape { name: "uniform".to_owned(), budgets: CacheBudgets::uniform() }
    }
}
