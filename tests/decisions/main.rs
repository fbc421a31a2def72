//! Decisions: who left when, written, read back, replayed and compared.
//!
//! [`written`] holds files to the slow reference, [`replayed`] replays them, [`planted`] finds planted mistakes,
//! [`compared`] checks drift and reports, [`live`] decides over a pipe.

#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/as_reference.rs"]
mod as_reference;
#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/common/mod.rs"]
mod common;
mod compared;
mod live;
mod planted;
#[path = "../reference/mod.rs"]
mod reference;
mod replayed;
mod written;

use kvsim::trace::memory::Rows;
use kvsim::trace::rng::Xoshiro128;

/// Rows of included self, each a few heavy positions and noise that ties now and then.
fn rows(seed: u32, count: usize) -> Rows {
    let mut dice = Xoshiro128::new(seed);
    let mut row = |len: usize| {
        let weights: Vec<f32> = (0..len).map(|_| [1.0, 1.0, 2.0, 3.0, 40.0][dice.below(5) as usize]).collect();
        let total: f32 = weights.iter().sum();
        Some(weights.iter().map(|weight| weight / total).collect())
    };
    (1..=count).map(&mut row).collect()
}
