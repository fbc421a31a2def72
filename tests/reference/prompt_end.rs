//! Policies that cut a prompt once, at its end, straight from their definitions.
//!
//! Rows are those of the prompt, each a list of f64; scores are kept in maps from position to number.

use std::collections::BTreeSet;

/// The rows of one cache: by query head, then step, all from the first row of the prompt.
pub type Heads = Vec<Vec<Vec<f32>>>;

/// What is cut, and by what rule.
#[derive(Clone, Debug)]
pub struct Cut {
    pub policy: &'static str,
    pub budget: usize,
    pub window: usize,
    pub kernel: usize,
    pub max_pool: bool,
    /// Part of its own that a head is sure of.
    pub alpha: f64,
    /// Whether a layer's heads share (defensive-kv).
    pub layer: bool,
    pub variance_weight: f64,
    pub sinks: usize,
    pub recent: usize,
    pub lazy_above: f64,
}

impl Cut {
    /// A policy with its defaults.
    pub fn new(policy: &'static str, budget: usize) -> Cut {
        Cut {
            policy,
            budget,
            window: 32,
            kernel: 5,
            max_pool: false,
            alpha: 0.2,
            layer: false,
            variance_weight: 200.0,
            sinks: 4,
            recent: 1024,
            lazy_above: 0.9,
        }
    }

    /// The positions of a prompt of `prompt` positions that each cache keeps; `layers` names the layer of each.
    pub fn kept(&self, caches: &[Heads], layers: &[u32], prompt: usize) -> Vec<BTreeSet<usize>> {
        let everything = vec![(0..prompt).collect::<BTreeSet<usize>>(); caches.len()];
        if self.policy == "simlayer-kv" {
            return self.lazy(caches, layers, prompt, everything);
        }
        if prompt <= self.budget {
            return everything;
        }
        let prefix = prompt - self.window;
        let own = self.budget - self.window;
        let scores: Vec<Vec<f64>> = caches.iter().map(|heads| self.scores(heads, prompt)).collect();
        let chosen = match self.policy {
            "ada-kv" => self.shared(&scores, layers, own),
            "defensive-kv" if self.layer => self.shared(&scores, layers, own),
            "cake" => {
                let parts = self.cake_parts(caches, layers, prompt);
                let part = |cache: usize| parts.iter().find(|part| part.0 == layers[cache]).expect("a layer").1;
                (0..caches.len()).map(|cache| best(&scores[cache], part(cache))).collect()
            }
            _ => scores.iter().map(|scores| best(scores, own)).collect::<Vec<_>>(),
        };
        let with_window = |kept: BTreeSet<usize>| kept.into_iter().chain(prefix..prompt).collect();
        chosen.into_iter().map(with_window).collect()
    }

    /// The rows of a head in the window, the prefix alone.
    fn window_rows(&self, head: &[Vec<f32>], prompt: usize) -> Vec<Vec<f64>> {
        let prefix = prompt - self.window;
        let rows = &head[head.len() - self.window..];
        rows.iter().map(|row| row[..prefix].iter().map(|&weight| f64::from(weight)).collect()).collect()
    }

    fn pooled(&self, scores: &[f64], kernel: usize, max: bool) -> Vec<f64> {
        let reach = (kernel / 2) as isize;
        let at = |column: isize| usize::try_from(column).ok().and_then(|column| scores.get(column)).copied();
        let pool = |column: usize| {
            let near: Vec<Option<f64>> = (-reach..=reach).map(|step| at(column as isize + step)).collect();
            match max {
                true => near.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max),
                false => near.iter().map(|weight| weight.unwrap_or(0.0)).sum::<f64>() / kernel as f64,
            }
        };
        (0..scores.len()).map(pool).collect()
    }

    fn scores(&self, heads: &Heads, prompt: usize) -> Vec<f64> {
        let rows: Vec<Vec<Vec<f64>>> = heads.iter().map(|head| self.window_rows(head, prompt)).collect();
        let prefix = prompt - self.window;
        match self.policy {
            "defensive-kv" => self.worst_case(&rows, prefix),
            "cake" => self.mean_and_variance(&rows, prefix),
            _ => {
                let mut sums = vec![0.0; prefix];
                for step in 0..self.window {
                    for (column, sum) in sums.iter_mut().enumerate() {
                        let mut of_heads = 0.0;
                        for head in &rows {
                            of_heads += head[step][column];
                        }
                        *sum += f64::from((of_heads / heads.len() as f64) as f32);
                    }
                }
                self.pooled(&sums, self.kernel, self.max_pool)
            }
        }
    }

    fn worst_case(&self, heads: &[Vec<Vec<f64>>], prefix: usize) -> Vec<f64> {
        let mut worst = vec![0.0; prefix];
        for row in heads.iter().flatten() {
            let pooled = self.pooled(row, 5, false);
            let (before, after): (f64, f64) = (row.iter().sum(), pooled.iter().sum());
            for (column, weight) in pooled.iter().enumerate() {
                let scaled = if after > 0.0 { weight * (before / after) } else { *weight };
                worst[column] = f64::max(worst[column], scaled);
            }
        }
        let mean = worst.iter().sum::<f64>() / prefix as f64;
        let raised: Vec<f64> = worst.iter().map(|score| f64::max(*score, mean)).collect();
        let total: f64 = raised.iter().sum();
        raised.iter().map(|score| if total > 0.0 { score / total } else { *score }).collect()
    }

    fn mean_and_variance(&self, heads: &[Vec<Vec<f64>>], prefix: usize) -> Vec<f64> {
        let mut scores = vec![0.0; prefix];
        for head in heads {
            let plain: Vec<f64> = (0..prefix)
                .map(|column| {
                    let (mean, variance) = moments(head, column);
                    mean + self.variance_weight * variance
                })
                .collect();
            let pooled = self.pooled(&plain, 5, false);
            scores.iter_mut().zip(pooled).for_each(|(score, pooled)| *score += pooled);
        }
        scores.iter().map(|score| score / heads.len() as f64).collect()
    }

    fn shared(&self, scores: &[Vec<f64>], layers: &[u32], own: usize) -> Vec<BTreeSet<usize>> {
        let certain = (self.alpha * own as f64).floor() as usize;
        let mut kept: Vec<BTreeSet<usize>> = scores.iter().map(|scores| best(scores, certain)).collect();
        let mut of_layers = layers.to_vec();
        of_layers.dedup();
        for layer in of_layers {
            let team: Vec<usize> = (0..scores.len()).filter(|&cache| layers[cache] == layer).collect();
            for _ in 0..team.len() * (own - certain) {
                let others = team.iter().flat_map(|&cache| (0..scores[cache].len()).map(move |column| (cache, column)));
                let others = others.filter(|(cache, column)| !kept[*cache].contains(column));
                let ranked = others.map(|(cache, column)| (scores[cache][column], column, cache));
                if let Some((_, column, cache)) = ranked.max_by(|a, b| a.partial_cmp(b).expect("no score is NaN")) {
                    kept[cache].insert(column);
                }
            }
        }
        kept
    }

    /// What each layer may keep of the prefix.
    fn cake_parts(&self, caches: &[Heads], layers: &[u32], prompt: usize) -> Vec<(u32, usize)> {
        let (prefix, own) = (prompt - self.window, self.budget - self.window);
        let mut of_layers = layers.to_vec();
        of_layers.dedup();
        let preference = |layer: &u32| {
            let (mut entropy, mut variances) = (0.0, 0.0);
            for cache in (0..caches.len()).filter(|&cache| layers[cache] == *layer) {
                for head in &caches[cache] {
                    let rows = self.window_rows(head, prompt);
                    entropy -= rows.iter().flatten().map(|weight| weight * (weight + 1e-10).ln()).sum::<f64>();
                    variances += (0..prefix).map(|column| moments(&rows, column).1).sum::<f64>();
                }
            }
            entropy.max(0.0) * variances
        };
        let preferences: Vec<f64> = of_layers.iter().map(preference).collect();
        let (sum, total) = (preferences.iter().sum::<f64>(), of_layers.len() * own);
        let share = |preference: &f64| match sum > 0.0 {
            true => (total as f64 * preference / sum).floor() as usize,
            false => own,
        };
        let mut parts: Vec<usize> = preferences.iter().map(share).collect();
        let rest = total - parts.iter().sum::<usize>();
        (0..rest).for_each(|at| parts[at % of_layers.len()] += 1);
        while let Some(excess) = Some(parts.iter().map(|part| part.saturating_sub(prefix)).sum::<usize>()) {
            parts.iter_mut().for_each(|part| *part = (*part).min(prefix));
            let open: Vec<usize> = (0..parts.len()).filter(|&layer| parts[layer] < prefix).collect();
            if excess == 0 || open.is_empty() {
                break;
            }
            (0..excess).for_each(|at| parts[open[at % open.len()]] += 1);
        }
        of_layers.into_iter().zip(parts).collect()
    }

    fn lazy(
        &self,
        caches: &[Heads],
        layers: &[u32],
        prompt: usize,
        mut kept: Vec<BTreeSet<usize>>,
    ) -> Vec<BTreeSet<usize>> {
        let stays = |position: &usize| *position < self.sinks || position + self.recent >= prompt;
        for layer in layers {
            let of_layer: Vec<&Vec<f32>> = (0..caches.len())
                .filter(|&cache| layers[cache] == *layer)
                .flat_map(|cache| &caches[cache])
                .map(|head| head.last().expect("a row"))
                .collect();
            let mass: f64 = of_layer
                .iter()
                .map(|row| (0..row.len()).filter(stays).map(|position| f64::from(row[position])).sum::<f64>())
                .sum();
            if mass / of_layer.len() as f64 > self.lazy_above {
                for cache in (0..caches.len()).filter(|&cache| layers[cache] == *layer) {
                    kept[cache] = (0..prompt).filter(stays).collect();
                }
            }
        }
        kept
    }
}

/// Mean, and variance with one less in the divisor, of a column.
fn moments(rows: &[Vec<f64>], column: usize) -> (f64, f64) {
    let count = rows.len() as f64;
    let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
    let squares: f64 = rows.iter().map(|row| (row[column] - mean) * (row[column] - mean)).sum();
    (mean, if rows.len() > 1 { squares / (count - 1.0) } else { 0.0 })
}

/// The `count` best columns; at a tie the higher one.
fn best(scores: &[f64], count: usize) -> BTreeSet<usize> {
    let mut ranked: Vec<(f64, usize)> = scores.iter().copied().zip(0..).collect();
    ranked.sort_by(|a, b| b.partial_cmp(a).expect("no score is NaN"));
    ranked.into_iter().take(count).map(|(_, column)| column).collect()
}
