//! The analyses a second time, slow and obvious: whole rows in memory, sets and sorts, one question at
//! a time. Shares no code with the crate.

use std::collections::BTreeSet;

/// The rows of a stream whose rows include the token itself: row `t` has `t + 1` weights.
pub type Rows = Vec<Vec<f64>>;

/// Ratio, |S0| / n and |S1| / n of the three readings.
pub fn persistence(rows: &Rows) -> [[f64; 3]; 3] {
    let t = rows.len() / 2;
    let union = |rows: &[Vec<f64>], limit: &dyn Fn(&[f64]) -> f64| -> BTreeSet<usize> {
        let pivotal = |row: &Vec<f64>| (0..t.min(row.len())).filter(|p| row[*p] > limit(row)).collect::<Vec<_>>();
        rows.iter().flat_map(pivotal).collect()
    };
    let per_row = |rows: &[Vec<f64>]| union(rows, &|row| 1.0 / row.len() as f64);
    let fixed = |rows: &[Vec<f64>]| union(rows, &|_| 1.0 / t as f64);
    let equal = |rows: &[Vec<f64>]| -> BTreeSet<usize> {
        let mean = |p: &usize| rows.iter().map(|row| row[*p] * row.len() as f64).sum::<f64>() / rows.len() as f64;
        (0..t / 2).filter(|p| mean(p) > 1.0).collect()
    };
    [
        overlap(&per_row(&rows[..t]), &per_row(&rows[t..2 * t]), t),
        overlap(&fixed(&rows[..t]), &fixed(&rows[t..2 * t]), t),
        overlap(&equal(&rows[t / 2..t]), &equal(&rows[t..2 * t]), t / 2),
    ]
}

fn overlap(first: &BTreeSet<usize>, second: &BTreeSet<usize>, n: usize) -> [f64; 3] {
    let both = first.intersection(second).count() as f64;
    [both / second.len() as f64, first.len() as f64 / n as f64, second.len() as f64 / n as f64]
}

/// What positions below T/2 get from the rows from T/2 on.
pub fn late_attention(rows: &Rows) -> Vec<f64> {
    let t = rows.len() / 2;
    (0..t).map(|p| rows[t..].iter().map(|row| row[p]).sum()).collect()
}

/// The correlation of ranks; a value's rank is the number of values below it and half of those that tie.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let rank = |values: &[f64], value: f64| {
        let below = values.iter().filter(|other| **other < value).count() as f64;
        let equal = values.iter().filter(|other| **other == value).count() as f64;
        below + equal / 2.0
    };
    let ranks = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| rank(values, *value)).collect() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (ranks(a), ranks(b));
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let covariance: f64 = a.iter().zip(&b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    let variance = |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    covariance / (variance(&a, mean_a) * variance(&b, mean_b)).sqrt()
}

/// Share on the first four, share on the token itself, median local width, mean effective size.
pub fn locality(rows: &Rows) -> [f64; 4] {
    let total: f64 = rows.iter().flatten().sum();
    let first: f64 = rows.iter().map(|row| row.iter().take(4).sum::<f64>()).sum();
    let own: f64 = rows.iter().map(|row| row[row.len() - 1]).sum();
    let sizes: f64 = rows.iter().map(|row| effective_size(row)).sum();
    [first / total, own / total, median_width(rows), sizes / rows.len() as f64]
}

fn effective_size(row: &[f64]) -> f64 {
    let sum: f64 = row.iter().sum();
    let shares = row.iter().map(|weight| weight / sum).filter(|share| *share > 0.0);
    (-shares.map(|share| share * share.ln()).sum::<f64>()).exp()
}

fn median_width(rows: &Rows) -> f64 {
    let mut widths: Vec<f64> =
        rows.iter().filter(|row| row.iter().skip(4).sum::<f64>() > 0.0).map(|row| width(row)).collect();
    widths.sort_by(f64::total_cmp);
    let middle = widths.len() / 2;
    if widths.len() % 2 == 1 { widths[middle] } else { (widths[middle - 1] + widths[middle]) / 2.0 }
}

fn width(row: &[f64]) -> f64 {
    let rest = &row[4..];
    let held = |width: usize| rest[rest.len() - width..].iter().sum::<f64>();
    let needed = 0.9 * held(rest.len());
    (1..=rest.len()).find(|width| held(*width) >= needed).expect("all of it is enough") as f64
}

/// Positions with more than a twentieth of all mass.
pub fn heavy(rows: &Rows) -> Vec<usize> {
    let total: f64 = rows.iter().flatten().sum();
    let column = |p: usize| rows.iter().filter_map(|row| row.get(p)).sum::<f64>();
    (0..rows.len()).filter(|p| column(*p) > 0.05 * total).collect()
}
