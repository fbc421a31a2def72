//! What a replay reports: every step, and the figures that sum it up.

use super::meters::{Seen, StepSeen};

/// One row against the positions that were kept when it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The row's weight on kept positions.
    pub mass: f64,
    /// The row's whole weight.
    pub row_total: f64,
    /// How many of the heaviest positions are kept.
    pub heavy_hits: usize,
    /// How many heaviest positions there are.
    pub heavy_possible: usize,
    /// How many positions above one over the row length are kept.
    pub pivotal_hits: usize,
    /// How many positions are above one over the row length.
    pub pivotal_possible: usize,
    /// A position with more than a tenth of attention is not kept.
    pub peak_missed: bool,
    /// Less than a tenth of the row's total is kept.
    pub broken: bool,
    /// Something had been evicted before this row.
    pub after_first_eviction: bool,
    /// The row itself.
    pub row: Vec<f32>,
    /// The positions that were kept.
    pub kept: Vec<u32>,
}

impl Measured {
    /// Measures `row` against the positions in `kept`.
    pub fn of(row: &[f32], kept: &[u32], k: usize, after_first_eviction: bool) -> Measured {
        let weights: Vec<f64> = row.iter().map(|&weight| f64::from(weight)).collect();
        let mut is_kept = vec![false; row.len()];
        kept.iter().for_each(|&position| is_kept[position as usize] = true);
        let hits = |positions: &[usize]| positions.iter().filter(|&&position| is_kept[position]).count();
        let heavy = heaviest(row, k);
        let pivotal = above(&weights, 1.0 / row.len() as f64);
        let peaks = above(&weights, 0.1);
        let mass = sum(kept.iter().map(|&position| weights[position as usize]));
        let row_total = sum(weights.iter().copied());
        Measured {
            mass,
            row_total,
            heavy_hits: hits(&heavy),
            heavy_possible: heavy.len(),
            pivotal_hits: hits(&pivotal),
            pivotal_possible: pivotal.len(),
            peak_missed: hits(&peaks) < peaks.len(),
            broken: mass < row_total * 0.1,
            after_first_eviction,
            row: row.to_vec(),
            kept: kept.to_vec(),
        }
    }
}

/// The `count` heaviest positions of a row; of equal ones the lower position counts as heavier.
pub fn heaviest(row: &[f32], count: usize) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..row.len()).collect();
    // The sort is stable, so equal weights stay in ascending order of position.
    positions.sort_by(|&left, &right| row[right].partial_cmp(&row[left]).expect("no weight is NaN"));
    positions.truncate(count);
    positions
}

fn above(weights: &[f64], limit: f64) -> Vec<usize> {
    (0..weights.len()).filter(|&position| weights[position] > limit).collect()
}

fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut total = 0.0;
    for number in numbers {
        total += number;
    }
    total
}

/// One step of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutcome {
    /// Positions held after the step, ascending.
    pub kept: Vec<u32>,
    /// Positions given up in the step, ascending.
    pub victims: Vec<u32>,
    /// `None` where the step has no attention.
    pub measured: Option<Measured>,
}

/// A whole replay of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One entry for each row, those without attention included.
    pub steps: Vec<StepOutcome>,
    /// Positions held at the end, ascending.
    pub kept: Vec<u32>,
    /// The retained mass of each measured row.
    pub masses: Vec<f64>,
}

impl Outcome {
    /// Sums up the steps.
    pub fn new(steps: Vec<StepOutcome>) -> Outcome {
        let kept = steps.last().map_or(Vec::new(), |step| step.kept.clone());
        let masses = steps.iter().filter_map(|step| step.measured.as_ref()).map(|row| row.mass).collect();
        Outcome { steps, kept, masses }
    }

    /// What the meters have to count of the replay.
    pub fn seen(&self, budget: Option<usize>) -> Seen {
        let step = |step: &StepOutcome| StepSeen {
            kept: step.kept.len(),
            positions: step.kept.clone(),
            evicted: step.victims.len(),
            expired: 0,
            measured: step.measured.is_some(),
            in_prompt: false,
        };
        Seen {
            rows: self.rows().into_iter().cloned().collect(),
            steps: self.steps.iter().map(step).collect(),
            budget,
            sinks: 4,
            ..Seen::default()
        }
    }

    fn rows(&self) -> Vec<&Measured> {
        self.steps.iter().filter_map(|step| step.measured.as_ref()).collect()
    }

    fn mean_over_rows(&self, figure: impl Fn(&Measured) -> f64) -> Option<f64> {
        mean(&self.rows().into_iter().map(figure).collect::<Vec<f64>>())
    }

    fn share_of_rows(&self, holds: impl Fn(&Measured) -> bool) -> Option<f64> {
        let rows = self.rows();
        ratio(rows.iter().filter(|row| holds(row)).count(), rows.len())
    }

    /// The mean of the kept sum over measured rows.
    pub fn retained_mass(&self) -> Option<f64> {
        mean(&self.masses)
    }

    /// The same over the rows that came after the first eviction.
    pub fn retained_mass_full(&self) -> Option<f64> {
        let late = self.rows().into_iter().filter(|row| row.after_first_eviction);
        mean(&late.map(|row| row.mass).collect::<Vec<f64>>())
    }

    /// Kept heaviest positions over all heaviest positions.
    pub fn heavy_recall(&self) -> Option<f64> {
        let rows = self.rows();
        ratio(rows.iter().map(|row| row.heavy_hits).sum(), rows.iter().map(|row| row.heavy_possible).sum())
    }

    /// Kept pivotal positions over all pivotal positions.
    pub fn pivotal_hit_rate(&self) -> Option<f64> {
        let rows = self.rows();
        ratio(rows.iter().map(|row| row.pivotal_hits).sum(), rows.iter().map(|row| row.pivotal_possible).sum())
    }

    /// The share of rows in which a position with more than a tenth is not kept.
    pub fn peak_miss_rate(&self) -> Option<f64> {
        self.share_of_rows(|row| row.peak_missed)
    }

    /// The share of rows that keep less than a tenth of their total.
    pub fn broken_row_rate(&self) -> Option<f64> {
        self.share_of_rows(|row| row.broken)
    }

    /// The mean of the whole sum over measured rows.
    pub fn row_mass(&self) -> Option<f64> {
        self.mean_over_rows(|row| row.row_total)
    }

    /// The smallest kept sum of a measured row.
    pub fn min_step_mass(&self) -> Option<f64> {
        self.masses.iter().copied().reduce(f64::min)
    }

    /// The mean number of positions held after a step.
    pub fn mean_kept(&self) -> Option<f64> {
        mean(&self.steps.iter().map(|step| step.kept.len() as f64).collect::<Vec<f64>>())
    }

    /// The largest number of positions held after a step.
    pub fn peak_kept(&self) -> usize {
        self.steps.iter().map(|step| step.kept.len()).max().unwrap_or(0)
    }

    /// Steps in which something was evicted.
    pub fn eviction_calls(&self) -> usize {
        self.steps.iter().filter(|step| !step.victims.is_empty()).count()
    }

    /// Positions evicted in all.
    pub fn evicted(&self) -> usize {
        self.steps.iter().map(|step| step.victims.len()).sum()
    }
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| sum(numbers.iter().copied()) / numbers.len() as f64)
}

fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
