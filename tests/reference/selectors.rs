//! Selectors: which positions of a row are read, by sorting it.

use super::outcome::{Measured, Outcome, StepOutcome, heaviest};
use super::{Rows, Setting};

/// How many positions are read of a row.
type Count = Box<dyn Fn(&[f32]) -> usize>;

/// Replays `rows` under the selector that `setting` names; none where it names none.
pub fn replay_selector(rows: &Rows, setting: &Setting, k: usize) -> Option<Outcome> {
    let read: Count = match setting.policy.as_str() {
        "top-k" => {
            let count = setting.count("topK", 32);
            Box::new(move |row: &[f32]| row.len().min(count))
        }
        "top-p" => {
            let share = setting.number("topP", 0.9);
            Box::new(move |row: &[f32]| fewest_with(row, share))
        }
        "fixed-threshold" => {
            let limit = setting.number("weightAbove", 0.01);
            Box::new(move |row: &[f32]| row.iter().filter(|&&weight| f64::from(weight) > limit).count())
        }
        _ => return None,
    };
    let step = |row: &Option<Vec<f32>>| {
        let measured = row.as_ref().map(|row| measure(row, read(row), k));
        StepOutcome { kept: Vec::new(), victims: Vec::new(), measured }
    };
    Some(Outcome::new(rows.iter().map(step).collect()))
}

/// A row of which the `count` heaviest positions are read.
pub fn measure(row: &[f32], count: usize, k: usize) -> Measured {
    let mut read: Vec<u32> = heaviest(row, count).into_iter().map(|position| position as u32).collect();
    read.sort();
    Measured::of(row, &read, k, row.len() > count)
}

/// The fewest positions that hold this share of the row.
fn fewest_with(row: &[f32], share: f64) -> usize {
    let total = row.iter().fold(0.0, |sum, &weight| sum + f64::from(weight));
    let mut held = 0.0;
    let mut count = 0;
    for position in heaviest(row, row.len()) {
        if held >= share * total || row[position] == 0.0 {
            break;
        }
        held += f64::from(row[position]);
        count += 1;
    }
    count
}
