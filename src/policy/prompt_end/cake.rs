//! `cake`: the layers of a model share what they may keep of a prompt, by how spread and how changing
//! their attention is; cut once.
//!
//! *Idea.* A layer whose attention is spread over many positions, and moves between them, needs more slots
//! than one that looks at the same few; within a layer, what varies between rows counts beside the mean.
//! *Paper.* Qin et al.: CAKE: Cascading and Adaptive KV Cache Eviction with Layer Preferences, ICLR 2025,
//! arXiv 2503.12491.
//! *How this differs from the paper.* One allocation at the prompt's end, not the cascade of the layers as
//! they are computed; both exponents are 1 unless said otherwise, where the code sets them by model. What
//! a layer is dealt beyond its prefix passes evenly to the others, from the first. A layer's part is that
//! of each of its KV heads. Rows as recorded. At a tie the higher position stays.
//! *Parameters.* `obs-window` (32), `variance-weight` (200, the paper's gamma), `tau1` and `tau2` (1): the
//! preference is `H^(1/tau1) V^(1/tau2)`, H the entropy and V the variance over the layer's heads, rows and
//! prefix. Scores are pooled by an average of 5.
//! *Cost.* The rows of all heads in the window are held while it looks; nothing afterwards.

use super::deal::each_its_own;
use super::pool::Pool;
use super::{Look, PromptCut, PromptRows, PromptSetting, by_layer, check};
use crate::budgets::CacheBudgets;
use crate::keeping::{PromptMode, Scope};
use crate::needs::Needs;
use crate::policy::entry::{Make, OwnKeeping, PolicyEntry};
use crate::policy::parameter::{OBS_WINDOW, TAU_1, TAU_2, VARIANCE_WEIGHT, Value};

pub(in crate::policy) const ENTRY: PolicyEntry = PolicyEntry::new(
    "cake",
    "keeps of a prompt what its last rows attend to or vary in, with more for restless layers; cut once",
    Make::PromptEnd(|setting| Box::new(Cake { window: setting.values.count(&OBS_WINDOW), setting: setting.clone() })),
)
.paper("Qin et al.: CAKE, ICLR 2025, arXiv 2503.12491")
.parameters(&[
    (&OBS_WINDOW, Value::Count(32)),
    (&VARIANCE_WEIGHT, Value::Real(200.0)),
    (&TAU_1, Value::Real(1.0)),
    (&TAU_2, Value::Real(1.0)),
])
.needs(Needs::PROMPT_END.and(Needs::HEAD_ROWS))
.keeps(OwnKeeping { scope: Some(Scope::Head), prompt: Some(PromptMode::Once), ..OwnKeeping::NOTHING })
// The cut itself deals out: no other shape may come before it.
.deals(|_| CacheBudgets::uniform())
.check(check);

/// Columns that scores are pooled over.
const KERNEL: usize = 5;

struct Cake {
    window: usize,
    setting: PromptSetting,
}

/// Mean and variance over rows, for each column of a head's prefix.
fn moments(rows: &[Vec<f64>], prefix: usize) -> Vec<(f64, f64)> {
    let count = rows.len() as f64;
    let of_column = |column: usize| {
        let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
        let spread: f64 = rows.iter().map(|row| (row[column] - mean).powi(2)).sum();
        (mean, if rows.len() > 1 { spread / (count - 1.0) } else { 0.0 })
    };
    if rows.is_empty() { vec![(0.0, 0.0); prefix] } else { (0..prefix).map(of_column).collect() }
}

/// Minus the sum of `a ln a`.
fn entropy(rows: &[Vec<f64>]) -> f64 {
    -rows.iter().flatten().map(|weight| weight * (weight + 1e-10).ln()).sum::<f64>()
}

impl PromptCut for Cake {
    fn rows(&self) -> usize {
        self.window
    }

    fn look(&self, rows: &PromptRows) -> Look {
        let prefix = rows.columns.saturating_sub(self.window);
        let weight_of_variance = self.setting.values.real(&VARIANCE_WEIGHT);
        let (mut scores, mut sums) = (vec![0.0; prefix], [0.0; 2]);
        for head in 0..rows.heads {
            let wide = |row: &[f32]| row.iter().take(prefix).map(|weight| f64::from(*weight)).collect();
            let of_head: Vec<Vec<f64>> = rows.rows.iter().filter_map(|row| row.heads().nth(head).map(wide)).collect();
            let moments = moments(&of_head, prefix);
            sums[0] += entropy(&of_head);
            sums[1] += moments.iter().map(|(_, variance)| variance).sum::<f64>();
            let plain: Vec<f64> = moments.iter().map(|(mean, variance)| mean + weight_of_variance * variance).collect();
            let pooled = Pool::Mean.pooled(&plain, KERNEL);
            scores.iter_mut().zip(pooled).for_each(|(score, pooled)| *score += pooled);
        }
        scores.iter_mut().for_each(|score| *score /= rows.heads.max(1) as f64);
        Look::of(rows, scores, sums)
    }

    fn keep(&self, looks: &[Look]) -> Vec<Option<Vec<usize>>> {
        let teams = by_layer(&self.setting.layers);
        let mut counts = vec![None; looks.len()];
        for (team, part) in teams.iter().zip(self.parts(&teams, looks)) {
            for cache in team {
                let fits = looks[*cache].columns <= self.setting.budgets[*cache];
                counts[*cache] = (!fits).then_some(part);
            }
        }
        each_its_own(looks, &counts)
    }
}

impl Cake {
    /// What each layer may keep of its prefix.
    fn parts(&self, teams: &[Vec<usize>], looks: &[Look]) -> Vec<usize> {
        let preference = |team: &Vec<usize>| {
            let sum = |at: usize| team.iter().map(|cache| looks[*cache].sums[at]).sum::<f64>();
            let power = |sum: f64, tau| sum.max(0.0).powf(1.0 / self.setting.values.real(tau));
            power(sum(0), &TAU_1) * power(sum(1), &TAU_2)
        };
        let preferences: Vec<f64> = teams.iter().map(preference).collect();
        let own = |team: &Vec<usize>| self.setting.budgets[team[0]] - self.window;
        let prefixes: Vec<usize> = teams.iter().map(|team| looks[team[0]].scores.len()).collect();
        dealt(&preferences, teams.iter().map(own).sum(), &prefixes)
    }
}

/// Deals `total` out in proportion to preferences, rounded down, the remainder one each from the first; what
/// exceeds a layer's prefix passes evenly to the others.
fn dealt(preferences: &[f64], total: usize, prefixes: &[usize]) -> Vec<usize> {
    let all: f64 = preferences.iter().sum();
    let even = total as f64 / preferences.len() as f64;
    let exact = |preference: &f64| if all > 0.0 { total as f64 * preference / all } else { even };
    let mut parts: Vec<usize> = preferences.iter().map(|preference| exact(preference).floor() as usize).collect();
    let all_layers: Vec<usize> = (0..parts.len()).collect();
    let left = total.saturating_sub(parts.iter().sum());
    pass_on(&mut parts, &all_layers, left);
    loop {
        let excess: usize = parts.iter().zip(prefixes).map(|(part, prefix)| part.saturating_sub(*prefix)).sum();
        parts.iter_mut().zip(prefixes).for_each(|(part, prefix)| *part = (*part).min(*prefix));
        let open: Vec<usize> = (0..parts.len()).filter(|layer| parts[*layer] < prefixes[*layer]).collect();
        if excess == 0 || open.is_empty() {
            return parts;
        }
        pass_on(&mut parts, &open, excess);
    }
}

/// Gives each of these layers the same, and the remainder one each from the first.
fn pass_on(parts: &mut [usize], layers: &[usize], count: usize) {
    for (at, layer) in layers.iter().enumerate() {
        parts[*layer] += count / layers.len() + usize::from(at < count % layers.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_proportion_and_make_up_the_total() {
        assert_eq!(dealt(&[1.0, 1.0, 2.0], 40, &[100; 3]), [10, 10, 20]);
        assert_eq!(dealt(&[1.0, 1.0, 1.0], 8, &[100; 3]), [3, 3, 2], "the remainder from the first");
        assert_eq!(dealt(&[0.0, 0.0], 5, &[100; 2]), [3, 2], "no preference is an even one");
    }

    #[test]
    fn what_exceeds_a_prefix_passes_to_the_others() {
        assert_eq!(dealt(&[8.0, 1.0, 1.0], 40, &[20; 3]), [20, 10, 10]);
        assert_eq!(dealt(&[7.0, 2.0, 1.0], 40, &[15, 12, 100]), [15, 12, 13], "and on from there");
        assert_eq!(dealt(&[1.0, 1.0], 40, &[10; 2]), [10, 10], "there is no more to keep");
    }
}
