//! Finds the facts of rows as they come, and watches for rows that are not attention.

use super::caches::CachePlan;
use super::options::BadRows;
use super::row_facts::{FactFinder, RowFacts};
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::trace::{RowBlock, RowSums, Source, refuse_weights};

/// Finds the facts of a batch's rows and deals with rows that are not attention.
pub(super) struct RowWatch<'a> {
    source: &'a dyn Source,
    streams: &'a [usize],
    finders: Vec<FactFinder>,
    bad_rows: BadRows,
    /// One entry for each stream.
    sums: Vec<RowSums>,
}

impl<'a> RowWatch<'a> {
    pub(super) fn new(
        source: &'a dyn Source,
        section: &'a CachePlan,
        heavy_hitters: usize,
        bad_rows: BadRows,
    ) -> RowWatch<'a> {
        let finders = section.streams.iter().map(|_| FactFinder::new(heavy_hitters)).collect();
        let sums = section.streams.iter().map(|stream| RowSums::of(source, *stream)).collect();
        RowWatch { source, streams: &section.streams, finders, bad_rows, sums }
    }

    /// Tells the trace what its rows sum to.
    pub(super) fn finish(self) {
        self.streams.iter().zip(&self.sums).for_each(|(stream, sums)| self.source.keep_sums(*stream, sums));
    }

    /// Finds the facts of every row of the batch.
    pub(super) fn find(&mut self, batch: &mut StepBatch) -> Result<()> {
        for (index, head) in batch.heads.iter_mut().enumerate() {
            for row in 0..head.rows.len() {
                let facts = self.find_one(&mut head.rows, row, index)?;
                head.facts.push(facts);
            }
        }
        Ok(())
    }

    fn find_one(&mut self, rows: &mut RowBlock, index: usize, head: usize) -> Result<Option<RowFacts>> {
        let row = rows.weights_mut(index);
        if row.is_empty() {
            return Ok(None);
        }
        let facts = self.finders[head].find(row);
        if facts.is_none() && self.bad_rows == BadRows::Error {
            return refuse_weights(self.source, self.streams[head], rows.row(index)).map(|()| None);
        }
        if let Some(facts) = &facts {
            self.sums[head].add(rows.row(index).step, facts.total);
        }
        Ok(facts)
    }
}
