//! Finds the facts of rows as they come, and watches for rows that are not attention.

use super::options::BadRows;
use super::plan::CachePlan;
use super::row_facts::{FactFinder, RowFacts};
use super::step_batch::StepBatch;
use crate::error::Result;
use crate::position::Position;
use crate::trace::{RowBlock, Source, refuse_weights, sum_tolerance};

/// Finds the facts of a batch's rows and deals with rows that are not attention.
pub(super) struct RowWatch<'a> {
    source: &'a dyn Source,
    streams: &'a [usize],
    finders: Vec<FactFinder>,
    bad_rows: BadRows,
    /// One entry for each stream.
    excess: Vec<ExcessMass>,
}

/// Rows of a stream that hold more attention than there is: scaled, or no attention at all.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExcessMass {
    /// Index of the stream in the trace.
    pub stream: usize,
    /// Sums above this are more than rounding to the stored type explains.
    pub limit: f64,
    /// Number of such rows.
    pub rows: u64,
    /// The heaviest row: its step and its sum.
    pub most: (Position, f64),
}

impl ExcessMass {
    fn of(source: &dyn Source, stream: usize) -> ExcessMass {
        let tolerance = sum_tolerance(source.info().streams[stream].dtype);
        ExcessMass { stream, limit: 1.0 + tolerance, rows: 0, most: (Position(0), 0.0) }
    }

    #[inline]
    fn watch(&mut self, step: Position, total: f64) {
        if total > self.limit {
            self.rows += 1;
            if total > self.most.1 {
                self.most = (step, total);
            }
        }
    }
}

impl<'a> RowWatch<'a> {
    pub(super) fn new(
        source: &'a dyn Source,
        cache: &'a CachePlan,
        heavy_hitters: usize,
        bad_rows: BadRows,
    ) -> RowWatch<'a> {
        let finders = cache.streams.iter().map(|_| FactFinder::new(heavy_hitters)).collect();
        let excess = cache.streams.iter().map(|stream| ExcessMass::of(source, *stream)).collect();
        RowWatch { source, streams: &cache.streams, finders, bad_rows, excess }
    }

    /// The streams in which rows hold more attention than there is.
    pub(super) fn excess(&self) -> impl Iterator<Item = &ExcessMass> {
        self.excess.iter().filter(|excess| excess.rows > 0)
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
            self.excess[head].watch(rows.row(index).step, facts.total);
        }
        Ok(facts)
    }
}
