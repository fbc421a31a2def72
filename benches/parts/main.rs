//! `cargo bench --bench parts`: the parts of a replay, each on its own: what a row costs, what a lane
//! does with it, where rows come from, and one lane of every policy.
//!
//! `cargo bench --bench parts -- gather` runs those with `gather` in their name.

#[path = "../common/mod.rs"]
mod common;

mod lanes;
mod rows;
mod scores;
mod sources;

use criterion::Criterion;
use std::time::Duration;

fn main() {
    let criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    let mut criterion = criterion.configure_from_args();
    rows::bench(&mut criterion);
    scores::bench(&mut criterion);
    sources::bench(&mut criterion);
    lanes::bench(&mut criterion);
    criterion.final_summary();
}
