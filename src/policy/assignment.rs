//! Minimum-cost assignment of lines to columns, by shortest augmenting paths.
//!
//! Lines come in order of length and each takes a column of its own within its length. The method
//! is the Hungarian one in the form of Jonker and Volgenant (1987): lines are added one by one, and
//! each looks for the cheapest chain of lines that move on to another column, by Dijkstra's
//! algorithm over reduced costs. Most of a line's columns are far from any cheapest chain, and a
//! line remembers the [near](nearby) ones; that makes it fast and changes no result.

mod nearby;
mod search;
#[cfg(test)]
mod tests;

use nearby::Nearby;
use search::Search;

/// Bytes that a line takes, besides its costs.
pub(super) const LINE_BYTES: usize = nearby::BYTES + 64;

/// No line.
const NONE: u32 = u32::MAX;

/// The column of each line, at the least total cost. A line may take the columns that it has costs
/// for. `done` is told of lines as they are matched.
///
/// No line may be longer than a later one, and line `i` must be longer than `i`. Of equal
/// assignments it always finds the same.
pub(super) fn assign(lines: &[&[f64]], done: &dyn Fn(u64)) -> Vec<usize> {
    let columns = lines.last().map_or(0, |line| line.len());
    let mut matching = Matching::new(lines, columns);
    for line in 0..lines.len() {
        matching.add(line);
        done(1);
    }
    matching.column_of
}

/// A cheapest matching of the lines so far, with prices that prove it: no reduced cost
/// `cost - line price - column price` is negative, and those of matched pairs are zero. Prices of
/// columns only ever fall.
struct Matching<'a> {
    lines: &'a [&'a [f64]],
    line_price: Vec<f64>,
    column_price: Vec<f64>,
    column_of: Vec<usize>,
    line_of: Vec<u32>,
    nearby: Vec<Nearby>,
    search: Search,
    /// Reduced costs of one line.
    reduced: Vec<f64>,
}

impl<'a> Matching<'a> {
    fn new(lines: &'a [&'a [f64]], columns: usize) -> Matching<'a> {
        Matching {
            lines,
            line_price: vec![0.0; lines.len()],
            column_price: vec![0.0; columns],
            column_of: vec![usize::MAX; lines.len()],
            line_of: vec![NONE; columns],
            nearby: vec![Nearby::default(); lines.len()],
            search: Search::new(columns),
            reduced: Vec::with_capacity(columns),
        }
    }

    /// Matches one more line along the cheapest chain.
    fn add(&mut self, new: usize) {
        self.search.restart();
        let (mut line, mut travelled) = (new, 0.0);
        let free = loop {
            self.look_from(line, travelled);
            let nearest = self.search.nearest();
            travelled = self.search.distance(nearest);
            if self.line_of[nearest] == NONE {
                break nearest;
            }
            self.search.close(nearest);
            line = self.line_of[nearest] as usize;
        };
        self.reprice(new, travelled);
        self.flip(new, free);
    }

    /// Offers the search the columns of a line that lie within its reach.
    fn look_from(&mut self, line: usize, travelled: f64) {
        let reach = self.search.reach() - travelled;
        if self.nearby[line].holds_all_within(reach, self.line_price[line]) {
            self.look_near(line, travelled);
        } else {
            self.look_everywhere(line, travelled);
        }
    }

    fn look_near(&mut self, line: usize, travelled: f64) {
        let (offset, price) = (travelled - self.line_price[line], self.line_price[line]);
        for entry in &self.nearby[line].entries {
            if self.nearby[line].least_now(entry, price) >= self.search.reach() - travelled {
                break;
            }
            let column = entry.column as usize;
            let way = offset + (entry.cost - self.column_price[column]);
            self.search.offer(column, way, line as u32, self.line_of[column] == NONE);
        }
    }

    /// Looks at all columns of a line, and notes those that are near at present.
    fn look_everywhere(&mut self, line: usize, travelled: f64) {
        let (costs, price) = (self.lines[line], self.line_price[line]);
        self.reduced.clear();
        self.reduced
            .extend(costs.iter().zip(&self.column_price).map(|(cost, column_price)| cost - column_price - price));
        for (column, reduced) in self.reduced.iter().enumerate() {
            self.search.offer(column, travelled + reduced, line as u32, self.line_of[column] == NONE);
        }
        self.nearby[line].note(costs, &self.reduced, price);
    }

    /// Keeps matched pairs tight and reduced costs from falling below zero.
    fn reprice(&mut self, new: usize, travelled: f64) {
        self.line_price[new] += travelled;
        for (column, distance) in self.search.closed() {
            let gain = travelled - distance;
            self.column_price[*column] -= gain;
            self.line_price[self.line_of[*column] as usize] += gain;
        }
    }

    /// Walks the chain back from the free column; each line moves on by one.
    fn flip(&mut self, new: usize, free: usize) {
        let mut column = free;
        loop {
            let line = self.search.line_before(column);
            self.line_of[column] = line;
            let left = std::mem::replace(&mut self.column_of[line as usize], column);
            if line as usize == new {
                return;
            }
            column = left;
        }
    }
}
