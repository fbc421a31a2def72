//! The parts of a mixture, as every generator of its rows needs them: who the heavy hitters are, and
//! what sinks, local band and heavy hitters get. Knows nothing of noise or of how rows are put
//! together.

use super::rng::Xoshiro128;
use super::spec::MixtureSpec;

/// The heavy hitters present at a step, drawn anew from time to time.
pub(super) struct HeavyHitters {
    random: Xoshiro128,
    drawn: Vec<u32>,
}

impl HeavyHitters {
    pub(super) fn new(seed: u32) -> HeavyHitters {
        HeavyHitters { random: Xoshiro128::new(seed), drawn: Vec::new() }
    }

    /// Draws anew where the row of step `t` asks for it; steps come in ascending order.
    pub(super) fn draw_for(&mut self, spec: &MixtureSpec, t: usize) {
        let heavy = &spec.heavy_hitters;
        if heavy.count == 0 || t < heavy.from || (t != heavy.from && !t.is_multiple_of(heavy.redraw_every)) {
            return;
        }
        let sinks = spec.sinks.weights.len();
        let span = (t - spec.local.width - sinks) as u32;
        self.drawn.clear();
        while self.drawn.len() < heavy.count {
            let position = self.random.below(span) + sinks as u32;
            if !self.drawn.contains(&position) {
                self.drawn.push(position);
            }
        }
    }

    /// The positions in the order drawn; none before the first draw.
    pub(super) fn positions(&self) -> &[u32] {
        &self.drawn
    }
}

/// What distances 1, 2, ... of a band of which `reach` are in view get of `mass`.
pub(super) fn local_shares(spec: &MixtureSpec, reach: usize, mass: f64) -> Vec<f64> {
    let weight = |distance: usize| (spec.local.width + 1 - distance) as f64;
    let total: f64 = (1..=reach).map(weight).sum();
    (1..=reach).map(|distance| weight(distance) * mass / total).collect()
}

/// What the heavy hitters get in the order drawn.
pub(super) fn heavy_shares(spec: &MixtureSpec) -> Vec<f64> {
    let heavy = &spec.heavy_hitters;
    // What is drawn after the last row needs no shares, however much of it there would be.
    let count = if heavy.from < spec.positions { heavy.count } else { 0 };
    let weight = |rank: usize| (rank + 1) as f64;
    let total: f64 = (0..count).map(|rank| 1.0 / weight(rank)).sum();
    (0..count).map(|rank| heavy.mass / weight(rank) / total).collect()
}

/// The sinks that a row sees.
pub(super) struct SinksInView<'a> {
    pub weights: &'a [f64],
    pub total: f64,
}

impl SinksInView<'_> {
    pub(super) fn at(spec: &MixtureSpec, t: usize) -> SinksInView<'_> {
        let weights = &spec.sinks.weights[..spec.sinks.weights.len().min(t)];
        SinksInView { weights, total: weights.iter().sum() }
    }
}
