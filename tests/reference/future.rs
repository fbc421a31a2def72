//! The bounds that know the future: the optimum as an assignment, the same by brute force, and a
//! greedy heuristic.

use super::cache::Policy;
use super::policies::lowest;
use super::{Rows, SelfKind};

/// Gives up positions by what it knows of the rows to come.
pub enum Knowing {
    /// One position for each eviction, in the order they go.
    Script(Vec<u32>),
    /// At each eviction the position with the least attention still to come, from the table of it.
    Greedy(Vec<Vec<f64>>, SelfKind),
}

impl Policy for Knowing {
    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32> {
        let excess = kept.len() - budget;
        match self {
            Knowing::Script(script) => script.drain(..excess).collect(),
            Knowing::Greedy(to_come, kind) => {
                // Eviction comes right after the step's own position has joined.
                let newest = *kept.last().expect("more than the budget is kept");
                let line = &to_come[kind.index_of(newest as usize)];
                lowest(kept, excess, |position| line[position as usize])
            }
        }
    }
}

/// The heuristic that evicts the smallest remaining sum.
pub fn greedy(rows: &Rows, kind: SelfKind) -> Knowing {
    Knowing::Greedy(attention_to_come(rows), kind)
}

/// The best that any policy which never takes a position back could do.
pub fn optimal(rows: &Rows, kind: SelfKind, budget: usize) -> Knowing {
    Knowing::Script(cheapest_assignment(&eviction_costs(rows, kind, budget)))
}

/// For each row index the attention that every position gets in all later rows.
fn attention_to_come(rows: &Rows) -> Vec<Vec<f64>> {
    let positions = rows.len() + 1;
    let mut to_come = vec![vec![0.0; positions]; rows.len()];
    for index in (1..rows.len()).rev() {
        to_come[index - 1] = to_come[index].clone();
        for (position, &weight) in rows[index].iter().flatten().enumerate() {
            to_come[index - 1][position] += f64::from(weight);
        }
    }
    to_come
}

/// One line for each eviction; infinite where the position does not exist yet.
fn eviction_costs(rows: &Rows, kind: SelfKind, budget: usize) -> Vec<Vec<f64>> {
    let mut costs = attention_to_come(rows);
    for (index, line) in costs.iter_mut().enumerate() {
        let newest = kind.step_at(index);
        line.iter_mut().skip(newest + 1).for_each(|cost| *cost = f64::INFINITY);
    }
    // A position is admitted at every step, so from the first step with more than `budget` of them
    // one goes each time.
    costs.into_iter().enumerate().filter(|(index, _)| kind.step_at(*index) + 1 > budget).map(|(_, line)| line).collect()
}

/// The column of each line in the assignment of the least total cost (the Hungarian method, line by
/// line).
fn cheapest_assignment(costs: &[Vec<f64>]) -> Vec<u32> {
    let columns = costs.first().map_or(0, Vec::len);
    let mut matching =
        Matching { line_price: vec![0.0; costs.len()], column_price: vec![0.0; columns], line_of: vec![None; columns] };
    (0..costs.len()).for_each(|line| matching.add(costs, line));
    let mut column_of = vec![0; costs.len()];
    for (column, line) in matching.line_of.iter().enumerate() {
        if let Some(line) = line {
            column_of[*line] = column as u32;
        }
    }
    column_of
}

/// A cheapest matching of the lines so far, with prices that prove it: `cost - line price - column
/// price` is nowhere negative, and zero on every matched pair.
struct Matching {
    line_price: Vec<f64>,
    column_price: Vec<f64>,
    line_of: Vec<Option<usize>>,
}

impl Matching {
    /// Matches one more line along the shortest augmenting path (Dijkstra over reduced costs).
    fn add(&mut self, costs: &[Vec<f64>], new_line: usize) {
        let mut search = Search::over(self.line_of.len());
        let (mut line, mut travelled, mut last) = (new_line, 0.0, None);
        let free = loop {
            self.relax(&mut search, costs, line, travelled, last);
            let nearest = search.nearest();
            search.done[nearest] = true;
            travelled = search.distance[nearest];
            last = Some(nearest);
            match self.line_of[nearest] {
                None => break nearest,
                Some(matched) => line = matched,
            }
        };
        self.reprice(new_line, &search, travelled);
        self.flip(new_line, &search, free);
    }

    /// Looks at every column not done from `line`, which was reached through the column `through`.
    fn relax(&self, search: &mut Search, costs: &[Vec<f64>], line: usize, travelled: f64, through: Option<usize>) {
        for column in search.open() {
            let reduced = costs[line][column] - self.line_price[line] - self.column_price[column];
            if travelled + reduced < search.distance[column] {
                search.distance[column] = travelled + reduced;
                search.came_from[column] = through;
            }
        }
    }

    /// Keeps every pair on the path tight and no reduced cost negative.
    fn reprice(&mut self, new_line: usize, search: &Search, travelled: f64) {
        self.line_price[new_line] += travelled;
        for column in (0..self.line_of.len()).filter(|&column| search.done[column]) {
            let gain = travelled - search.distance[column];
            self.column_price[column] -= gain;
            if let Some(line) = self.line_of[column] {
                self.line_price[line] += gain;
            }
        }
    }

    /// Walks the path back from the free column and moves each line one column on.
    fn flip(&mut self, new_line: usize, search: &Search, free: usize) {
        let mut column = free;
        while let Some(previous) = search.came_from[column] {
            self.line_of[column] = self.line_of[previous];
            column = previous;
        }
        self.line_of[column] = Some(new_line);
    }
}

/// One search for the cheapest way from a new line to a free column.
struct Search {
    /// The cheapest way found so far to each column.
    distance: Vec<f64>,
    /// The column before it on that way; `None` where the way starts at the new line.
    came_from: Vec<Option<usize>>,
    /// Whether no cheaper way can be found any more.
    done: Vec<bool>,
}

impl Search {
    fn over(columns: usize) -> Search {
        Search { distance: vec![f64::INFINITY; columns], came_from: vec![None; columns], done: vec![false; columns] }
    }

    fn open(&self) -> Vec<usize> {
        (0..self.done.len()).filter(|&column| !self.done[column]).collect()
    }

    fn nearest(&self) -> usize {
        self.open()
            .into_iter()
            .min_by(|&left, &right| self.distance[left].total_cmp(&self.distance[right]))
            .expect("there are more positions than evictions")
    }
}

/// The most mass that any sequence of evictions retains, found by trying all of them, those that
/// keep fewer positions than the budget included. For tiny traces only.
pub fn best_by_brute_force(rows: &Rows, kind: SelfKind, budget: usize) -> f64 {
    let kept = match kind {
        SelfKind::Excluded => vec![0],
        SelfKind::Included => vec![],
    };
    best_from(rows, kind, budget, 0, &kept)
}

fn best_from(rows: &Rows, kind: SelfKind, budget: usize, index: usize, kept: &[u32]) -> f64 {
    if index == rows.len() {
        return 0.0;
    }
    let admitted: Vec<u32> = kept.iter().copied().chain([kind.step_at(index) as u32]).collect();
    let measured_on = if kind == SelfKind::Included { &admitted } else { kept };
    let retained: f64 = rows[index]
        .as_ref()
        .map_or(0.0, |row| measured_on.iter().map(|&position| f64::from(row[position as usize])).sum());
    let best_rest = subsets(&admitted)
        .into_iter()
        .filter(|rest| rest.len() <= budget)
        .map(|rest| best_from(rows, kind, budget, index + 1, &rest))
        .fold(f64::NEG_INFINITY, f64::max);
    retained + best_rest
}

fn subsets(positions: &[u32]) -> Vec<Vec<u32>> {
    let Some((&last, others)) = positions.split_last() else {
        return vec![Vec::new()];
    };
    let without = subsets(others);
    let with = without.iter().map(|subset| subset.iter().copied().chain([last]).collect());
    without.iter().cloned().chain(with).collect()
}
