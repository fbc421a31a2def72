//! A trace that has been opened, and the caches chosen of it.

use super::caches::Selection;
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
    /// The caches, in the order of reports.
    pub caches: Vec<CachePlan>,
}

impl OpenTrace {
    /// Opens a file, a built-in name, or standard input, and chooses its caches.
    ///
    /// # Errors
    /// When it cannot be read, or has no such streams.
    pub fn open(
        trace: &OsStr,
        read: &ReadOptions,
        streams: &Selection,
        listener: &mut Listener<'_>,
    ) -> Result<OpenTrace> {
        let source = formats::open(trace, read)?;
        let info = source.info();
        tell(listener, Severity::Note, &info.name, info.notes.clone());
        let caches = streams.caches(info)?;
        tell(listener, Severity::Note, &info.name, streams.hints(info));
        Ok(OpenTrace { source, caches })
    }

    /// What is known of the trace.
    pub fn info(&self) -> &TraceInfo {
        self.source.info()
    }

    /// For each stream of the caches, the rows that a run over `most` rows of each reads.
    pub fn rows(&self, most: Option<usize>) -> impl Iterator<Item = usize> {
        let most = most.unwrap_or(usize::MAX);
        self.caches
            .iter()
            .flat_map(|cache| &cache.streams)
            .map(move |stream| self.info().streams[*stream].rows.min(most))
    }
}
