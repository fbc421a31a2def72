//! The rows of a mixture one at a time, as the definition reads: for specs whose noise differs from
//! position to position, where no two weights of a row are alike and there is nothing to be fast
//! about, and for specs without a local band. Generates only; the spec was checked before.

use super::mixture::{HeavyHitters, SinksInView, heavy_shares, local_shares};
use super::rng::Xoshiro128;
use super::spec::MixtureSpec;
use super::{RowBlock, RowReader};
use crate::error::Result;
use crate::position::Position;
use std::sync::Arc;

/// Seeds the generator of the noise, together with the spec's seed.
const NOISE_SEED: u32 = 0x9e37_79b9;

pub(super) struct SpreadRows {
    heavy: HeavyHitters,
    heavy_shares: Vec<f64>,
    noise: Xoshiro128,
    next: usize,
    /// The undivided weights of the present row.
    weights: Vec<f64>,
    spec: Arc<MixtureSpec>,
}

impl RowReader for SpreadRows {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let end = self.spec.positions.min(self.next.saturating_add(rows));
        let start = self.next.min(end);
        for t in start..end {
            self.fill(t);
            self.push(block, t);
        }
        self.next = self.next.max(end);
        Ok(end - start)
    }
}

impl SpreadRows {
    pub(super) fn new(spec: Arc<MixtureSpec>) -> SpreadRows {
        SpreadRows {
            heavy: HeavyHitters::new(spec.seed),
            heavy_shares: heavy_shares(&spec),
            noise: Xoshiro128::new(spec.seed ^ NOISE_SEED),
            next: 1,
            weights: Vec::new(),
            spec,
        }
    }

    /// Adds up the weights of row `t`, part by part in the defined order.
    fn fill(&mut self, t: usize) {
        self.heavy.draw_for(&self.spec, t);
        self.weights.clear();
        self.weights.resize(t, 0.0);
        self.add_sinks(t);
        self.add_local(t);
        self.add_heavy(t);
        self.add_noise(t);
    }

    fn add_sinks(&mut self, t: usize) {
        let SinksInView { weights, total } = SinksInView::at(&self.spec, t);
        for (sum, weight) in self.weights.iter_mut().zip(weights) {
            *sum += weight * self.spec.sinks.mass / total;
        }
    }

    fn add_local(&mut self, t: usize) {
        let heavy = &self.spec.heavy_hitters;
        let mass = self.spec.local.mass + if t < heavy.from { heavy.mass } else { 0.0 };
        let shares = local_shares(&self.spec, self.spec.local.width.min(t), mass);
        for (sum, share) in self.weights.iter_mut().rev().zip(shares) {
            *sum += share;
        }
    }

    fn add_heavy(&mut self, t: usize) {
        if t < self.spec.heavy_hitters.from {
            return;
        }
        for (position, share) in self.heavy.positions().iter().zip(&self.heavy_shares) {
            self.weights[*position as usize] += share;
        }
    }

    fn add_noise(&mut self, t: usize) {
        let even = self.spec.noise.mass / t as f64;
        for sum in &mut self.weights {
            let u = f64::from(self.noise.next_u32()) / 4_294_967_296.0;
            *sum += even * (1.0 + self.spec.noise.spread * (2.0 * u - 1.0));
        }
    }

    fn push(&self, block: &mut RowBlock, t: usize) {
        let total: f64 = self.weights.iter().sum();
        let row = block.push_rows(Position(t as u32), 1, |_| t);
        for (weight, sum) in row.iter_mut().zip(&self.weights) {
            *weight = (sum / total) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::spec::DEFAULT_TRACE;
    use crate::trace::synthetic::SyntheticTrace;
    use crate::trace::{Source, spec::built_in_names};

    #[test]
    fn without_spread_the_rows_are_those_of_the_fast_generator() {
        let spec = MixtureSpec { positions: 1100, ..MixtureSpec::built_in(DEFAULT_TRACE).expect("built in") };
        let (mut plain, mut fast) = (RowBlock::default(), RowBlock::default());
        let mut reader = SyntheticTrace::new(spec.clone()).open(0).expect("specs always open");
        SpreadRows::new(Arc::new(spec)).read(&mut plain, 2000).expect("nothing to fail");
        reader.read(&mut fast, 2000).expect("nothing to fail");
        assert_eq!(plain.len(), 1099);
        assert!(plain.rows().zip(fast.rows()).all(|(a, b)| a.weights == b.weights));
    }

    #[test]
    fn rows_do_not_depend_on_how_many_are_read_at_a_time() {
        assert!(built_in_names().any(|name| name == "control-2048"));
        let spec = MixtureSpec { positions: 40, ..MixtureSpec::built_in("control-2048").expect("built in") };
        let trace = SyntheticTrace::new(spec);
        let read = |rows| {
            let (mut block, mut reader) = (RowBlock::default(), trace.open(0).expect("specs always open"));
            while reader.read(&mut block, rows).expect("nothing to fail") > 0 {}
            block.rows().flat_map(|row| row.weights.to_vec()).collect::<Vec<f32>>()
        };
        assert_eq!(read(1), read(39));
        assert_eq!(read(7).len(), 39 * 40 / 2);
    }
}
