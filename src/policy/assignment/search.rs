//! One search for the cheapest way to a free column: Dijkstra's algorithm over columns.

use super::NONE;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The state of a search, reused by the next.
pub(super) struct Search {
    /// The shortest way found so far to each column: infinite where there is none, minus infinity
    /// where the column is closed, so that no way improves on it.
    distance: Vec<f64>,
    /// The line before each column on that way.
    from: Vec<u32>,
    /// Columns that a way was found to.
    touched: Vec<usize>,
    /// Columns closed, with their distances.
    closed: Vec<(usize, f64)>,
    open: BinaryHeap<Reverse<Open>>,
    /// The shortest way found so far to a free column: longer ways are of no use.
    reach: f64,
}

/// A column with a way to it, which a shorter one may have replaced since.
#[derive(PartialEq)]
struct Open {
    way: f64,
    matched: bool,
    column: usize,
}

impl Search {
    pub(super) fn new(columns: usize) -> Search {
        Search {
            distance: vec![f64::INFINITY; columns],
            from: vec![NONE; columns],
            touched: Vec::new(),
            closed: Vec::new(),
            open: BinaryHeap::new(),
            reach: f64::INFINITY,
        }
    }

    /// Forgets all ways.
    pub(super) fn restart(&mut self) {
        self.touched.drain(..).for_each(|column| self.distance[column] = f64::INFINITY);
        self.closed.clear();
        self.open.clear();
        self.reach = f64::INFINITY;
    }

    /// Ways that are not shorter than this are of no use.
    #[inline]
    pub(super) fn reach(&self) -> f64 {
        self.reach
    }

    /// Takes note of a way to a column, from a line.
    #[inline]
    pub(super) fn offer(&mut self, column: usize, way: f64, line: u32, free: bool) {
        let before = self.distance[column];
        if way >= self.reach || way >= before {
            return;
        }
        if before == f64::INFINITY {
            self.touched.push(column);
        }
        self.distance[column] = way;
        self.from[column] = line;
        self.open.push(Reverse(Open { way, matched: !free, column }));
        if free {
            self.reach = way;
        }
    }

    /// The nearest open column; of those equally near a free one, then the lowest.
    pub(super) fn nearest(&mut self) -> usize {
        loop {
            let Reverse(open) = self.open.pop().expect("a line has more columns than there are lines before it");
            if open.way == self.distance[open.column] {
                return open.column;
            }
        }
    }

    /// The length of the shortest way to a column that is open.
    pub(super) fn distance(&self, column: usize) -> f64 {
        self.distance[column]
    }

    /// No shorter way to this column will be found.
    pub(super) fn close(&mut self, column: usize) {
        self.closed.push((column, self.distance[column]));
        self.distance[column] = f64::NEG_INFINITY;
    }

    /// Closed columns with their distances, in the order they were closed.
    pub(super) fn closed(&self) -> &[(usize, f64)] {
        &self.closed
    }

    /// The line before a column on the shortest way to it.
    pub(super) fn line_before(&self, column: usize) -> u32 {
        self.from[column]
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        let tie = (self.matched, self.column).cmp(&(other.matched, other.column));
        self.way.total_cmp(&other.way).then(tie)
    }
}
