//! What policies that look at keys, values and queries rank their slots by.

use super::attention::{dot, softmax};
use super::cache::{Cache, Sight, lowest};

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|number| f64::from(*number)).collect()
}

fn norm1(numbers: &[f32]) -> f64 {
    numbers.iter().map(|number| f64::from(*number).abs()).sum()
}

fn norm2(numbers: &[f64]) -> f64 {
    numbers.iter().map(|number| number * number).sum::<f64>().sqrt()
}

/// The rank of each kept slot.
pub fn of(cache: &Cache, sight: &Sight<'_>) -> Vec<f64> {
    let key = |position: &usize| sight.keys.row(*position, sight.t);
    match cache.spec.policy {
        "knorm" => cache.kept.iter().map(|position| -dot(key(position), key(position))).collect(),
        "keydiff" => key_diff(&cache.kept.iter().map(|position| wide(key(position))).collect::<Vec<_>>()),
        "vatp" => vatp(cache, sight),
        "caote" => caote(cache, sight),
        "expected-attention" => expected_attention(cache, sight),
        policy => cache.scores(policy),
    }
}

fn key_diff(keys: &[Vec<f64>]) -> Vec<f64> {
    let unit = |key: &Vec<f64>| {
        let norm = norm2(key);
        key.iter().map(|number| if norm == 0.0 { 0.0 } else { number / norm }).collect::<Vec<f64>>()
    };
    let units: Vec<Vec<f64>> = keys.iter().map(unit).collect();
    let mut sum = vec![0.0; keys[0].len()];
    for unit in &units {
        sum.iter_mut().zip(unit).for_each(|(sum, number)| *sum += number);
    }
    units.iter().map(|unit| -unit.iter().zip(&sum).map(|(a, b)| a * b).sum::<f64>()).collect()
}

fn vatp(cache: &Cache, sight: &Sight<'_>) -> Vec<f64> {
    let rank = |(position, score): (&usize, f64)| {
        if score.is_infinite() { score } else { score * norm1(sight.values.row(*position)) }
    };
    cache.kept.iter().zip(cache.scores(cache.spec.host)).map(rank).collect()
}

fn caote(cache: &Cache, sight: &Sight<'_>) -> Vec<f64> {
    let scores = cache.scores(cache.spec.host);
    let total: f64 = scores.iter().filter(|score| score.is_finite()).sum();
    if total == 0.0 {
        return scores;
    }
    let values: Vec<Vec<f64>> = cache.kept.iter().map(|position| wide(sight.values.row(*position))).collect();
    let mut output = vec![0.0; sight.values.width];
    for (value, score) in values.iter().zip(&scores).filter(|(_, score)| score.is_finite()) {
        output.iter_mut().zip(value).for_each(|(sum, number)| *sum += score / total * number);
    }
    let rank = |(value, score): (&Vec<f64>, &f64)| {
        let weight = score / total;
        if score.is_infinite() || weight == 1.0 {
            return f64::INFINITY;
        }
        let away: Vec<f64> = output.iter().zip(value).map(|(output, number)| output - number).collect();
        weight / (1.0 - weight) * norm2(&away)
    };
    values.iter().zip(&scores).map(rank).collect()
}

fn expected_attention(cache: &Cache, sight: &Sight<'_>) -> Vec<f64> {
    let Sight { layer, t, .. } = *sight;
    let spec = cache.spec;
    let first = (t + 1).saturating_sub(spec.query_window).max(spec.sinks);
    let others: Vec<usize> = cache.kept.iter().copied().filter(|position| *position >= spec.sinks).collect();
    let mut mean = vec![0.0; others.len()];
    for head in layer.readers(sight.cache) {
        let expected = |position: &usize| {
            let logit = |i| layer.scale * dot(layer.queries[head].row(i), sight.keys.row(*position, t));
            let logits: Vec<f64> = (first..=t).map(logit).collect();
            let count = logits.len() as f64;
            let middle = logits.iter().sum::<f64>() / count;
            let variance = logits.iter().map(|logit| (logit - middle) * (logit - middle)).sum::<f64>() / count;
            middle + variance / 2.0
        };
        let weights = softmax(&others.iter().map(expected).collect::<Vec<_>>(), None);
        let heads = layer.heads_of_a_cache() as f64;
        mean.iter_mut().zip(weights).for_each(|(mean, weight)| *mean += weight / heads);
    }
    let rank = |position: &usize| match others.iter().position(|other| other == position) {
        Some(at) => norm2(&wide(sight.values.row(*position))) * mean[at],
        None => f64::INFINITY,
    };
    cache.kept.iter().map(rank).collect()
}

/// The victims of criticalkv.
pub fn critical_kv(cache: &Cache, free: &[usize], count: usize, sight: &Sight<'_>) -> Vec<usize> {
    let scores = cache.scores(cache.spec.host);
    let safe = (free.len() - count) / 2;
    // Of equal scores the higher position stays, so that the lowest are those that are left.
    let others = lowest(&scores, free, free.len() - safe);
    let ranks: Vec<f64> =
        scores.iter().enumerate().map(|(slot, score)| (score + 1e-4) * handed_on(cache.kept[slot], sight)).collect();
    let mut others = others;
    others.sort_unstable();
    lowest(&ranks, &others, count)
}

/// The mean over the cache's query heads of how much a value weighs behind the output projection.
fn handed_on(position: usize, sight: &Sight<'_>) -> f64 {
    let layer = sight.layer;
    let output = layer.output.as_ref().expect("criticalkv needs the output projection");
    let value = sight.values.row(position);
    let of_head = |head: usize| {
        let columns = head * value.len()..(head + 1) * value.len();
        (0..output.rows()).map(|row| dot(&output.row(row)[columns.clone()], value).abs()).sum::<f64>()
    };
    layer.readers(sight.cache).map(of_head).sum::<f64>() / layer.heads_of_a_cache() as f64
}
