//! The assignment against trying everything, and against the textbook method where that is too much.

use super::assign;
use crate::trace::rng::Xoshiro128;

fn borrowed(lines: &[Vec<f64>]) -> Vec<&[f64]> {
    lines.iter().map(Vec::as_slice).collect()
}

fn total(lines: &[Vec<f64>]) -> f64 {
    let columns = assign(&borrowed(lines), &|_| ());
    let mut distinct = columns.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), lines.len(), "every line has a column of its own");
    lines.iter().zip(columns).map(|(line, column)| line[column]).sum()
}

fn best_of_all(lines: &[Vec<f64>], taken: &mut Vec<usize>) -> f64 {
    let Some(line) = lines.get(taken.len()) else { return 0.0 };
    let mut best = f64::INFINITY;
    for (column, cost) in line.iter().enumerate() {
        if !taken.contains(&column) {
            taken.push(column);
            best = best.min(cost + best_of_all(lines, taken));
            taken.pop();
        }
    }
    best
}

/// The Hungarian method as textbooks have it: all columns, every time.
fn textbook(lines: &[Vec<f64>]) -> f64 {
    let columns = lines.last().map_or(0, Vec::len);
    let (mut u, mut v, mut owner) = (vec![0.0; lines.len() + 1], vec![0.0; columns + 1], vec![0; columns + 1]);
    for line in 1..=lines.len() {
        let (mut least, mut before, mut used) =
            (vec![f64::INFINITY; columns + 1], vec![0; columns + 1], vec![false; columns + 1]);
        owner[0] = line;
        let mut column = 0;
        while owner[column] != 0 {
            used[column] = true;
            let here = owner[column];
            let (mut delta, mut next) = (f64::INFINITY, 0);
            for j in (1..=columns).filter(|j| !used[*j]) {
                let cost = lines[here - 1].get(j - 1).copied().unwrap_or(f64::INFINITY);
                let way = cost - u[here] - v[j];
                if way < least[j] {
                    (least[j], before[j]) = (way, column);
                }
                if least[j] < delta {
                    (delta, next) = (least[j], j);
                }
            }
            for j in 0..=columns {
                if used[j] {
                    u[owner[j]] += delta;
                    v[j] -= delta;
                } else {
                    least[j] -= delta;
                }
            }
            column = next;
        }
        while column != 0 {
            owner[column] = owner[before[column]];
            column = before[column];
        }
    }
    (1..=columns).filter(|j| owner[*j] != 0).map(|j| lines[owner[j] - 1][j - 1]).sum()
}

/// Lines that grow by up to two columns each; few values make for many ties.
fn staircase(random: &mut Xoshiro128, lines: u32, values: u32) -> Vec<Vec<f64>> {
    let mut length = random.below(3) as usize;
    let mut line = |at: usize| {
        length = (length + random.below(3) as usize).max(at + 1);
        (0..length).map(|_| f64::from(random.below(values))).collect()
    };
    (0..lines as usize).map(&mut line).collect()
}

#[test]
fn tiny_assignments_are_the_best_of_all() {
    let mut random = Xoshiro128::new(11);
    for round in 0..600 {
        let lines = 1 + random.below(6);
        let staircase = staircase(&mut random, lines, 2 + round % 9);
        assert_eq!(total(&staircase), best_of_all(&staircase, &mut Vec::new()), "round {round}: {staircase:?}");
    }
}

#[test]
fn large_assignments_cost_what_the_textbook_method_finds() {
    let mut random = Xoshiro128::new(12);
    for (lines, values) in [(250, 7), (300, 1 << 20), (350, 500)] {
        let staircase = staircase(&mut random, lines, values);
        assert_eq!(total(&staircase), textbook(&staircase), "{lines} lines of {values} values");
    }
}

#[test]
fn nothing_to_assign_is_no_trouble() {
    assert_eq!(assign(&[], &|_| ()), Vec::<usize>::new());
}
