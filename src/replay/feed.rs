//! Reads the rows of sections, the same steps of each at a time.

use super::caches::CachePlan;
use super::step_batch::{HeadRows, StepBatch};
use crate::error::{Error, Result};
use crate::position::Position;
use crate::quantise::KvBits;
use crate::trace::{RowBlock, RowReader, SelfAttention, Source};

/// Weights in a batch: large enough to share out, small enough to stay in a core's cache.
const TARGET_WEIGHTS: usize = 64 * 1024;

/// Reads the rows of a cache's query heads side by side.
struct Feed<'a> {
    source: &'a dyn Source,
    readers: Vec<Box<dyn RowReader>>,
    /// Rows with keys in few bits, by stream, then way; `None` where keys are as stored.
    held: Vec<Vec<Option<Box<dyn RowReader>>>>,
}

impl<'a> Feed<'a> {
    fn open(source: &'a dyn Source, cache: &CachePlan, ways: &[KvBits]) -> Result<Feed<'a>> {
        let readers = cache.streams.iter().map(|stream| source.open(*stream)).collect::<Result<Vec<_>>>()?;
        let in_way = |stream: usize, bits: &KvBits| {
            if bits.keys == 16 { Ok(None) } else { source.open_held(stream, *bits) }
        };
        let held = |stream: &usize| ways.iter().map(|bits| in_way(*stream, bits)).collect::<Result<Vec<_>>>();
        let held = cache.streams.iter().map(held).collect::<Result<Vec<_>>>()?;
        Ok(Feed { source, readers, held })
    }

    /// Replaces the batch's steps by the next `rows`, or as many as are left.
    fn fill(&mut self, batch: &mut StepBatch, rows: usize) -> Result<()> {
        batch.heads.resize_with(self.readers.len(), HeadRows::default);
        for (reader, head) in self.readers.iter_mut().zip(&mut batch.heads) {
            head.rows.clear();
            head.facts.clear();
            reader.read(&mut head.rows, rows)?;
        }
        for (readers, head) in self.held.iter_mut().zip(&mut batch.heads) {
            head.held.resize_with(readers.len(), RowBlock::default);
            for (reader, held) in readers.iter_mut().zip(&mut head.held) {
                held.clear();
                reader.iter_mut().try_for_each(|reader| reader.read(held, rows).map(drop))?;
            }
        }
        if batch.heads.iter().all(|head| head.rows.len() == batch.len()) {
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
    /// Opens the streams of the caches; at most `steps` rows of each are read, and beside each as it is with keys in few
    /// bits, in each of these ways.
    pub(super) fn open(
        source: &'a dyn Source,
        caches: &[&CachePlan],
        steps: usize,
        ways: &[KvBits],
    ) -> Result<Feeds<'a>> {
        let feeds = caches.iter().map(|cache| Feed::open(source, cache, ways)).collect::<Result<Vec<_>>>()?;
        let info = source.info();
        Ok(Feeds { feeds, kind: info.self_attention, next: info.first_position, left: steps })
    }

    /// A batch for each cache, to be filled.
    pub(super) fn batches(&self) -> Vec<StepBatch> {
        self.feeds.iter().map(|_| StepBatch::default()).collect()
    }

    /// Replaces the steps of each cache's batch by the next ones, and returns the number of steps;
    /// 0 means that all have ended. A cache that ends before others has fewer.
    pub(super) fn fill(&mut self, batches: &mut [StepBatch]) -> Result<usize> {
        let readers: usize = self.feeds.iter().map(|feed| feed.readers.len()).sum();
        let rows = self.rows_to_read(readers);
        for (feed, batch) in self.feeds.iter_mut().zip(&mut *batches) {
            feed.fill(batch, rows)?;
        }
        let read = batches.iter().map(StepBatch::len).max().unwrap_or(0);
        self.next.0 += read as u32;
        self.left -= read;
        Ok(read)
    }

    /// As many rows as make up a batch, at least one while any is left.
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
