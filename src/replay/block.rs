//! A block of steps of one cache: the rows of its query heads, and the facts of each row.

use super::facts::{FactFinder, RowFacts};
use super::plan::CachePlan;
use super::run::BadRows;
use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::{RowBlock, RowReader, SelfAttention, Source, refuse_weights, sum_tolerance};

/// Weights in a block: large enough to share out, small enough to stay in a core's cache.
const TARGET_WEIGHTS: usize = 64 * 1024;

/// Consecutive steps of a cache.
#[derive(Default)]
pub(super) struct StepBlock {
    heads: Vec<HeadRows>,
}

/// The rows of one query head in a block.
#[derive(Default)]
struct HeadRows {
    rows: RowBlock,
    /// One entry per row, `None` where there is no information.
    facts: Vec<Option<RowFacts>>,
}

/// A row with its facts.
#[derive(Clone, Copy)]
pub(super) struct KnownRow<'a> {
    pub weights: &'a [f32],
    pub facts: &'a RowFacts,
}

impl StepBlock {
    /// Number of steps.
    pub(super) fn len(&self) -> usize {
        self.heads.first().map_or(0, |head| head.rows.len())
    }

    /// Position of the token that attends in this step of the block.
    #[inline]
    pub(super) fn position(&self, step: usize) -> Position {
        self.heads[0].rows.row(step).step
    }

    /// Number of query heads.
    #[inline]
    pub(super) fn heads(&self) -> usize {
        self.heads.len()
    }

    /// Rows of all heads, and the weights in them.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.len() * self.heads(), self.heads.iter().map(|head| head.rows.weights()).sum())
    }

    /// Whether this step has a row for every head.
    #[inline]
    pub(super) fn is_known(&self, step: usize) -> bool {
        self.heads.iter().all(|head| head.facts[step].is_some())
    }

    /// The row of a head in a step that [is known](StepBlock::is_known).
    #[inline]
    pub(super) fn row(&self, step: usize, head: usize) -> KnownRow<'_> {
        let head = &self.heads[head];
        let facts = head.facts[step].as_ref().expect("asked for in known steps only");
        KnownRow { weights: head.rows.row(step).weights, facts }
    }
}

/// Reads the rows of a cache's query heads side by side.
struct Feed<'a> {
    source: &'a dyn Source,
    readers: Vec<Box<dyn RowReader>>,
}

impl<'a> Feed<'a> {
    fn open(source: &'a dyn Source, cache: &CachePlan) -> Result<Feed<'a>> {
        let readers = cache.streams.iter().map(|stream| source.open(*stream)).collect::<Result<Vec<_>>>()?;
        Ok(Feed { source, readers })
    }

    /// Replaces the block's steps by the next `rows`, or as many as are left.
    fn fill(&mut self, block: &mut StepBlock, rows: usize) -> Result<()> {
        block.heads.resize_with(self.readers.len(), HeadRows::default);
        for (reader, head) in self.readers.iter_mut().zip(&mut block.heads) {
            head.rows.clear();
            head.facts.clear();
            reader.read(&mut head.rows, rows)?;
        }
        if block.heads.iter().all(|head| head.rows.len() == block.len()) {
            return Ok(());
        }
        Err(Error::data(&self.source.info().name, "streams that share a cache are not equally long"))
    }
}

/// Reads the rows of several caches side by side, the same steps of each at a time.
pub(super) struct Feeds<'a> {
    feeds: Vec<Feed<'a>>,
    kind: SelfAttention,
    next: Position,
    left: usize,
}

impl<'a> Feeds<'a> {
    /// Opens the streams of the caches; at most `steps` rows of each are read.
    pub(super) fn open(source: &'a dyn Source, caches: &[&CachePlan], steps: usize) -> Result<Feeds<'a>> {
        let feeds = caches.iter().map(|cache| Feed::open(source, cache)).collect::<Result<Vec<_>>>()?;
        let info = source.info();
        Ok(Feeds { feeds, kind: info.self_attention, next: info.first_position, left: steps })
    }

    /// A block for each cache, to be filled.
    pub(super) fn blocks(&self) -> Vec<StepBlock> {
        self.feeds.iter().map(|_| StepBlock::default()).collect()
    }

    /// Replaces the steps of each cache's block by the next ones, and returns the number of steps;
    /// 0 means that all have ended. A cache that ends before others has fewer.
    pub(super) fn fill(&mut self, blocks: &mut [StepBlock]) -> Result<usize> {
        let readers: usize = self.feeds.iter().map(|feed| feed.readers.len()).sum();
        let rows = self.rows_to_read(readers);
        for (feed, block) in self.feeds.iter_mut().zip(&mut *blocks) {
            feed.fill(block, rows)?;
        }
        let read = blocks.iter().map(StepBlock::len).max().unwrap_or(0);
        self.next.0 += read as u32;
        self.left -= read;
        Ok(read)
    }

    /// As many rows as make up a block, at least one while any is left.
    fn rows_to_read(&self, readers: usize) -> usize {
        let mut room = TARGET_WEIGHTS / readers.max(1);
        let mut rows = 0;
        while rows < self.left {
            let row = self.kind.row_len(Position(self.next.0 + rows as u32));
            if rows > 0 && row > room {
                break;
            }
            room = room.saturating_sub(row);
            rows += 1;
        }
        rows
    }
}

/// Finds the facts of a block's rows and deals with rows that are no attention.
pub(super) struct Inspector<'a> {
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

impl<'a> Inspector<'a> {
    pub(super) fn new(
        source: &'a dyn Source,
        cache: &'a CachePlan,
        heavy_hitters: usize,
        bad_rows: BadRows,
    ) -> Inspector<'a> {
        let finders = cache.streams.iter().map(|_| FactFinder::new(heavy_hitters)).collect();
        let excess = cache.streams.iter().map(|stream| ExcessMass::of(source, *stream)).collect();
        Inspector { source, streams: &cache.streams, finders, bad_rows, excess }
    }

    /// The streams in which rows hold more attention than there is.
    pub(super) fn excess(&self) -> impl Iterator<Item = &ExcessMass> {
        self.excess.iter().filter(|excess| excess.rows > 0)
    }

    /// Finds the facts of every row of the block.
    pub(super) fn inspect(&mut self, block: &mut StepBlock) -> Result<()> {
        for (index, head) in block.heads.iter_mut().enumerate() {
            for row in 0..head.rows.len() {
                let facts = self.inspect_row(&mut head.rows, row, index)?;
                head.facts.push(facts);
            }
        }
        Ok(())
    }

    fn inspect_row(&mut self, rows: &mut RowBlock, index: usize, head: usize) -> Result<Option<RowFacts>> {
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
