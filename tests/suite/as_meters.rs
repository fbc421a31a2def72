//! Tallies held to the meters of the slow reference, sum by sum.

use crate::reference::meters::{METERS, Seen};
use kvsim::meter::{MeterPlan, Tally, chosen};

/// Sums that the reference cannot count: what an implementation takes up is its own affair.
pub const WITHOUT_TWIN: [&str; 1] = ["state_bytes"];

/// Every meter, with default parameters.
pub fn all_meters() -> Vec<MeterPlan> {
    chosen("all").expect("a word that stands for all")
}

/// Fails unless every sum of every meter that ran is what its twin counts.
#[track_caller]
pub fn assert_same_sums(what: &str, tally: &Tally, seen: &Seen) {
    assert_same_sums_of(what, tally, seen, |_| true);
}

/// The same for some meters, by their names.
#[track_caller]
pub fn assert_same_sums_of(what: &str, tally: &Tally, seen: &Seen, compared: impl Fn(&str) -> bool) {
    for entry in tally.meters().filter(|entry| compared(entry.name)) {
        let twin = METERS.iter().find(|(name, _)| *name == entry.name);
        let (_, twin) = twin.unwrap_or_else(|| panic!("meter {:?} has no twin in the reference", entry.name));
        for (sum, wanted) in twin(seen) {
            let found = tally.number(sum).map(|number| number.as_f64());
            let near = match (found, wanted) {
                (Some(found), Some(wanted)) => (found - wanted).abs() <= 1e-11 * wanted.abs().max(1.0),
                (found, wanted) => found == wanted,
            };
            assert!(near, "{what}: {sum} is {found:?}, the reference counts {wanted:?}");
        }
    }
}
