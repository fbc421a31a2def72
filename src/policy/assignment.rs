//! Minimum-cost assignment of lines to columns, by shortest augmenting paths.
//!
//! Lines come in order of length and each takes a column of its own within its length; no line is
//! longer than a later one. The method is the Hungarian one in the form of Jonker and Volgenant
//! (1987): lines are added one by one, and each looks for the cheapest chain of lines that move on
//! to another column, by Dijkstra's algorithm over reduced costs.

/// The column of each line, at the least total cost. Line `i` may take columns below its length.
///
/// Lengths must not fall, and line `i` must be longer than `i`. Of equal assignments it always
/// finds the same.
pub(super) fn assign(lines: &[&[f64]]) -> Vec<usize> {
    let columns = lines.last().map_or(0, |line| line.len());
    let mut matching = Matching::new(lines, columns);
    (0..lines.len()).for_each(|line| matching.add(line));
    matching.column_of
}

/// No line.
const NONE: u32 = u32::MAX;

/// A cheapest matching of the lines so far, with prices that prove it: no reduced cost
/// `cost - line price - column price` is negative, and those of matched pairs are zero.
struct Matching<'a> {
    lines: &'a [&'a [f64]],
    line_price: Vec<f64>,
    column_price: Vec<f64>,
    column_of: Vec<usize>,
    line_of: Vec<u32>,
    search: Search,
}

/// The state of one search, over columns.
struct Search {
    /// The cheapest way found so far to each open column; infinite where the column is done.
    distance: Vec<f64>,
    /// The price of each open column; minus infinity where the column is done, so that no way leads there.
    price: Vec<f64>,
    /// The line before each column on that way.
    from: Vec<u32>,
    /// Columns done, with their distances, in order.
    done: Vec<(usize, f64)>,
}

impl<'a> Matching<'a> {
    fn new(lines: &'a [&'a [f64]], columns: usize) -> Matching<'a> {
        Matching {
            lines,
            line_price: vec![0.0; lines.len()],
            column_price: vec![0.0; columns],
            column_of: vec![usize::MAX; lines.len()],
            line_of: vec![NONE; columns],
            search: Search {
                distance: vec![f64::INFINITY; columns],
                price: vec![0.0; columns],
                from: vec![NONE; columns],
                done: Vec::new(),
            },
        }
    }

    /// Matches one more line along the cheapest chain.
    fn add(&mut self, new: usize) {
        let width = self.lines[new].len();
        self.search.reset(&self.column_price[..width]);
        let (mut line, mut travelled) = (new, 0.0);
        let free = loop {
            let offset = travelled - self.line_price[line];
            let nearest = self.search.relax(self.lines[line], offset, line as u32, &self.line_of[..width]);
            travelled = self.search.distance[nearest];
            if self.line_of[nearest] == NONE {
                break nearest;
            }
            self.search.close(nearest);
            line = self.line_of[nearest] as usize;
        };
        self.reprice(new, travelled);
        self.flip(new, free);
    }

    /// Keeps matched pairs tight and reduced costs from falling below zero.
    fn reprice(&mut self, new: usize, travelled: f64) {
        self.line_price[new] += travelled;
        for (column, distance) in &self.search.done {
            let gain = travelled - distance;
            self.column_price[*column] -= gain;
            self.line_price[self.line_of[*column] as usize] += gain;
        }
    }

    /// Walks the chain back from the free column; each line moves on by one.
    fn flip(&mut self, new: usize, free: usize) {
        let mut column = free;
        loop {
            let line = self.search.from[column] as usize;
            self.line_of[column] = line as u32;
            let left = std::mem::replace(&mut self.column_of[line], column);
            if line == new {
                return;
            }
            column = left;
        }
    }
}

impl Search {
    fn reset(&mut self, prices: &[f64]) {
        self.done.clear();
        self.distance[..prices.len()].fill(f64::INFINITY);
        self.price[..prices.len()].copy_from_slice(prices);
    }

    fn close(&mut self, column: usize) {
        self.done.push((column, self.distance[column]));
        self.distance[column] = f64::INFINITY;
        self.price[column] = f64::NEG_INFINITY;
    }

    /// Looks from a line at all columns, and returns the nearest open one, a free one where some are
    /// equally near.
    fn relax(&mut self, costs: &[f64], offset: f64, line: u32, line_of: &[u32]) -> usize {
        let columns = self.distance.iter_mut().zip(&mut self.from).zip(&self.price);
        for (((distance, from), price), cost) in columns.zip(costs) {
            let way = offset + (cost - price);
            if way < *distance {
                *distance = way;
                *from = line;
            }
        }
        let open = &self.distance[..line_of.len()];
        let least = open.iter().copied().fold(f64::INFINITY, f64::min);
        let near = |column: &usize| open[*column] == least;
        let mut nearest = (0..open.len()).filter(near);
        let first = nearest.next().expect("there are more columns than lines");
        if line_of[first] == NONE { first } else { nearest.find(|column| line_of[*column] == NONE).unwrap_or(first) }
    }
}
