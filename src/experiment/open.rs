//! A trace that has been opened, and the caches chosen of it.

use super::caches::{ChosenCaches, Selection};
use super::remark::{Listener, Severity, tell};
use crate::error::Result;
use crate::replay::CachePlan;
use crate::trace::options::ReadOptions;
use crate::trace::{Source, TraceInfo, formats};
use std::ffi::OsStr;

/// A trace, and the caches chosen of it.
pub struct OpenTrace {
    /// The trace.
    pub source: Box<dyn Source>,
    /// The caches, and what is known of them.
    pub chosen: ChosenCaches,
    /// Rows of each stream that are used; `None`: all.
    pub steps: Option<usize>,
}

impl OpenTrace {
    /// Opens a file, a built-in name, or standard input, and chooses its caches; of each stream the first
    /// `steps` rows will be used.
    ///
    /// # Errors
    /// When it cannot be read, or has no such streams.
    pub fn open(
        trace: &OsStr,
        read: &ReadOptions,
        streams: &Selection,
        steps: Option<usize>,
        listener: &mut Listener<'_>,
    ) -> Result<OpenTrace> {
        let source = formats::open(trace, read)?;
        let info = source.info();
        tell(listener, Severity::Note, &info.name, info.notes.clone());
        let chosen = streams.choose(info, steps)?;
        tell(listener, Severity::Note, &info.name, chosen.notes.clone());
        Ok(OpenTrace { source, chosen, steps })
    }

    /// What is known of the trace.
    pub fn info(&self) -> &TraceInfo {
        self.source.info()
    }

    /// The caches, in the order of reports.
    pub fn caches(&self) -> &[CachePlan] {
        &self.chosen.caches
    }

    /// For each stream of the caches, the rows that are used.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        let most = self.steps.unwrap_or(usize::MAX);
        let streams = self.caches().iter().flat_map(|cache| &cache.streams);
        streams.map(move |stream| self.info().streams[*stream].rows.min(most))
    }

    /// Weights of all rows that are used.
    pub fn weights(&self) -> u64 {
        self.rows().map(|rows| self.info().weights_of(rows)).sum()
    }
}
