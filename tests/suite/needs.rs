//! What a policy from outside the crate may ask for: rows of single query heads, and what a trace does
//! not hold.

use crate::common::lanes::{lane, rows_of};
use kvsim::error::Error;
use kvsim::needs::Needs;
use kvsim::policy::table::{Make, PolicyEntry};
use kvsim::policy::{Admission, Observation, Overflow, Policy, choose_lowest};
use kvsim::position::Slot;
use kvsim::replay::{LanePlan, NoObserver, Options, Tally, ViewKind, caches_of, replay, shared_caches_of};
use kvsim::slots::SlotVec;
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::{SelfAttention::Excluded, Source};

/// Evicts what the query head that needs it most needs least: the lowest of the heads' largest weights
/// in the last row.
#[derive(Default)]
struct Heads {
    largest: SlotVec<f32>,
}

impl Policy for Heads {
    fn admit(&mut self, admission: Admission<'_>) {
        assert!(admission.key.is_none() && admission.value.is_none(), "nobody asked for them");
        self.largest.push(f32::INFINITY);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        let heads = seen.heads.expect("declared in the entry's needs");
        self.largest.fill(0.0);
        for row in heads.rows() {
            assert_eq!(row.len(), seen.positions.len());
            self.largest.iter_mut().zip(row).for_each(|(largest, weight)| *largest = largest.max(*weight));
        }
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        choose_lowest(&self.largest, self.largest.len(), overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.largest.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.largest.len())
    }
}

static HEADS: PolicyEntry =
    PolicyEntry::new("heads", "keeps what any query head attends to", Make::Policy(|_| Box::<Heads>::default()))
        .needs(Needs::HEAD_ROWS);

/// Two heads: position 1 matters to the second alone, position 0 to both a little.
fn two_heads() -> MemoryTrace {
    let one = rows_of(&[&[1.0], &[0.5, 0.5], &[0.375, 0.0, 0.625], &[0.25, 0.25, 0.25, 0.25]]);
    let other = rows_of(&[&[1.0], &[0.5, 0.5], &[0.375, 0.5, 0.125], &[0.0, 1.0, 0.0, 0.0]]);
    let trace = MemoryTrace::new("two heads", Excluded).with_stream(0, "0", one).expect("sound");
    trace.with_stream(0, "1", other).expect("sound")
}

fn retained(options: &Options) -> Vec<f64> {
    let trace = two_heads();
    let caches = shared_caches_of(trace.info(), 1).expect("heads that can share a cache");
    let lanes = [LanePlan::new(&HEADS, 3), lane("tova", 3, &[])];
    let outcomes = replay(&trace, &caches, &lanes, options, &NoObserver).expect("a sound replay");
    outcomes[0].tallies.iter().map(|tally: &Tally| tally.real("retained_mass_sum")).collect()
}

#[test]
fn rows_of_single_heads_reach_a_policy_that_asks_for_them() {
    // After row 3 the mean of position 1 is the lowest, so that tova drops it; the largest weight of
    // position 0 is, and the policy drops that.
    assert_eq!(retained(&Options::default()), [7.75, 6.75]);
}

#[test]
fn a_renormalized_view_renormalizes_each_head() {
    assert_eq!(retained(&Options { view: ViewKind::Renormalized, ..Options::default() }), [7.75, 6.75]);
}

#[test]
fn heads_are_one_row_where_a_cache_has_one() {
    let trace = two_heads();
    let lanes = [LanePlan::new(&HEADS, 3), lane("tova", 3, &[])];
    let caches = caches_of(trace.info()).expect("sound");
    let outcomes = replay(&trace, &caches, &lanes, &Options::default(), &NoObserver).expect("a sound replay");
    for outcome in outcomes {
        let [heads, tova] = &outcome.tallies[..] else { panic!("two lanes") };
        assert_eq!(heads.figure("retained_mass"), tova.figure("retained_mass"));
    }
}

static KEYS: PolicyEntry = PolicyEntry::new("by-keys", "looks at keys", Make::Policy(|_| Box::<Heads>::default()))
    .needs(Needs::KEPT_WEIGHTS.and(Needs::KEYS).and(Needs::VALUES));

#[test]
fn what_a_trace_does_not_hold_is_refused_by_name() {
    let trace = two_heads();
    let caches = caches_of(trace.info()).expect("sound");
    let error = replay(&trace, &caches, &[LanePlan::new(&KEYS, 3)], &Options::default(), &NoObserver);
    let error = error.expect_err("there are rows only");
    assert!(matches!(error, Error::Usage(_)));
    assert_eq!(error.to_string(), "policy by-keys: it needs keys, values, which two heads does not hold");
}
