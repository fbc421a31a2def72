//! What a further lane costs that keeps its cache in another way, beside the same lane cut one position a step.

use crate::Rows;
use crate::common::lanes::{Cost, lane_with_window, on_threads, replay_cost};
use crate::common::rounds::{interleave, rounds};
use crate::sheet::Sheet;
use kvsim::keeping::{Combine, Keeping, Scope};
use kvsim::replay::LanePlan;

/// Ways to keep a cache.
fn ways() -> [(&'static str, Keeping); 4] {
    let plain = Keeping::default();
    [
        ("cut every 16", Keeping { evict_every: 16, ..plain }),
        ("pages of 16", Keeping { page: 16, ..plain }),
        ("one set for the layer", Keeping { scope: Scope::Layer, ..plain }),
        ("the largest weight of any head", Keeping { combine: Combine::Max, ..plain }),
    ]
}

pub fn measure(rows: &Rows, sheet: &mut Sheet) {
    for (name, keeping) in ways() {
        let cost = |lanes: &[LanePlan]| replay_cost(&rows.memory, lanes, &on_threads(1));
        let inside = |cost: Cost| cost.select + cost.lanes;
        let (plain, kept) = (nine_lanes(Keeping::default()), nine_lanes(keeping));
        let [one, nine, one_kept, nine_kept] = interleave(
            rounds(21),
            [
                &mut || inside(cost(&plain[..1])),
                &mut || inside(cost(&plain)),
                &mut || inside(cost(&kept[..1])),
                &mut || inside(cost(&kept)),
            ],
        );
        let per_slot = |seconds: f64, lanes: &[LanePlan]| {
            let slot_steps: u64 = cost(lanes).slot_steps[1..].iter().sum();
            seconds / slot_steps as f64
        };
        let ratio =
            per_slot(nine_kept.least() - one_kept.least(), &kept) / per_slot(nine.least() - one.least(), &plain);
        let further = (kept.len() - 1) as f64;
        let each = (nine_kept.least() - one_kept.least()) / further;
        sheet.figure(
            &format!("h2o, {name}: a further lane"),
            [each, each],
            format!("{ratio:.2} x plain"),
            "1.3 x plain",
        );
    }
    sheet.remark(
        "A further lane kept in another way: per kept slot and step, beside h2o cut one position a step, in the same \
         rounds. The trace has one query head: a set for the layer serves it alone."
            .to_owned(),
    );
}

/// Nine lanes that differ, since equal ones would teach the branch predictor.
fn nine_lanes(keeping: Keeping) -> Vec<LanePlan> {
    [32, 16, 24, 48, 64, 80, 96, 128, 192].map(|window| lane_with_window("h2o", 512, window).kept(keeping)).to_vec()
}
