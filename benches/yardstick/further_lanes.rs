//! What a further lane costs on one thread, for each kept slot and step.

use crate::Rows;
use crate::common::lanes::{Cost, lane, lane_with_window, on_threads, replay_cost};
use crate::common::rounds::{interleave, median, rounds};
use crate::common::table::ns;
use crate::sheet::Sheet;
use kvsim::policy::parameter::RECENT_WINDOW;
use kvsim::replay::LanePlan;

/// Policies, and the nanoseconds that a slot and step may take.
const POLICIES: [(&str, &str); 6] = [
    ("scissorhands", "0.5 ns"),
    ("h2o", "0.5 ns"),
    ("tova", "0.5 ns"),
    ("streaming-llm", "0.17 ns"),
    ("sliding-window", "0.17 ns"),
    ("snapkv", "1.5 ns"),
];

pub fn measure(rows: &Rows, sheet: &mut Sheet) {
    for (policy, aim) in POLICIES {
        measure_policy(rows, policy, aim, sheet);
    }
    sheet.remark(
        "A further lane: what 8 more lanes take, divided by their number (ms) and by their kept slots and steps \
         (ns): budget 512 and windows from 16 to 192, or budgets from 448 to 576 where there is no window."
            .to_owned(),
    );
}

/// Nine lanes of a policy that differ, since equal ones would teach the branch predictor.
fn nine_lanes(policy: &str) -> Vec<LanePlan> {
    if lane(policy, 512).entry.takes(&RECENT_WINDOW) {
        return [32, 16, 24, 48, 64, 80, 96, 128, 192].map(|window| lane_with_window(policy, 512, window)).to_vec();
    }
    [512, 448, 464, 480, 496, 528, 544, 560, 576].map(|budget| lane(policy, budget)).to_vec()
}

fn measure_policy(rows: &Rows, policy: &str, aim: &str, sheet: &mut Sheet) {
    let lanes = nine_lanes(policy);
    let cost = |lanes: &[LanePlan]| replay_cost(&rows.memory, lanes, &on_threads(1));
    let inside = |cost: Cost| cost.select + cost.lanes;
    let [one, nine] = interleave(rounds(21), [&mut || inside(cost(&lanes[..1])), &mut || inside(cost(&lanes))]);
    let further = (lanes.len() - 1) as f64;
    let least = (nine.least() - one.least()) / further;
    let each = nine.seconds().zip(one.seconds()).map(|(nine, one)| (nine - one) / further).collect();
    let slot_steps: u64 = cost(&lanes).slot_steps[1..].iter().sum();
    let per_slot = ns(least * further / slot_steps as f64);
    sheet.figure(&format!("{policy}: a further lane, one thread"), [least, median(each)], per_slot, aim);
}
