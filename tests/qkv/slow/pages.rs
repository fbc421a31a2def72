//! Blocks of positions that kept sets occupy, after eviction.

use super::replay::Step;
use std::collections::BTreeSet;

/// Mean over steps and caches, most, and mean after the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pages {
    pub mean: f64,
    pub peak: usize,
    pub last: f64,
}

/// From one count for each step (outer) and cache (inner).
fn pages(counts: &[Vec<usize>]) -> Pages {
    let all: Vec<usize> = counts.concat();
    let mean = |counts: &[usize]| counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    Pages {
        mean: mean(&all),
        peak: all.iter().copied().max().unwrap_or(0),
        last: mean(counts.last().expect("there is a step")),
    }
}

fn in_place<'a>(kept: impl Iterator<Item = &'a usize>, block: usize) -> usize {
    kept.map(|position| position / block).collect::<BTreeSet<_>>().len()
}

/// The steps of every layer, the same lane on each.
pub struct Lane<'a>(pub &'a [Vec<Step>]);

impl Lane<'_> {
    fn by_step(&self, of_step: impl Fn(&[&Step]) -> Vec<usize>) -> Pages {
        let step = |t: usize| of_step(&self.0.iter().map(|layer| &layer[t]).collect::<Vec<_>>());
        pages(&(0..self.0[0].len()).map(step).collect::<Vec<_>>())
    }

    /// What is kept, moved together.
    pub fn compacted(&self, block: usize) -> Pages {
        self.by_step(|layers| {
            layers.iter().flat_map(|step| step.kept.iter().map(|kept| kept.len().div_ceil(block))).collect()
        })
    }

    /// Where it stands, each cache by itself.
    pub fn in_place(&self, block: usize) -> Pages {
        self.by_step(|layers| {
            layers.iter().flat_map(|step| step.kept.iter().map(|kept| in_place(kept.iter(), block))).collect()
        })
    }

    /// Where it stands, pages shared by the caches of a layer.
    pub fn of_layers(&self, block: usize) -> Pages {
        self.by_step(|layers| layers.iter().map(|step| in_place(step.kept.iter().flatten(), block)).collect())
    }

    /// Where it stands, pages shared by all caches.
    pub fn of_trace(&self, block: usize) -> Pages {
        self.by_step(|layers| vec![in_place(layers.iter().flat_map(|step| step.kept.iter().flatten()), block)])
    }
}
