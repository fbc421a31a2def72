//! A policy that breaks its contract stops the run with its name, the step and the counts.

use crate::common::lanes::trace;
use kvsim::error::Error;
use kvsim::policy::table::{Make, PolicyEntry, Setting, anything_goes, as_given};
use kvsim::policy::{Overflow, Policy};
use kvsim::position::Slot;
use kvsim::replay::{LanePlan, NoObserver, Options, caches_of, replay};
use kvsim::trace::SelfAttention::Excluded;
use kvsim::trace::memory::Rows;

/// Names its slots whatever it is asked.
struct Stubborn(&'static [usize]);

impl Policy for Stubborn {
    fn choose(&mut self, _overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        victims.extend(self.0.iter().copied().map(Slot));
    }
}

const fn stubborn(name: &'static str, make: fn(&Setting) -> Box<dyn Policy>) -> PolicyEntry {
    PolicyEntry {
        name,
        summary: "does as it likes",
        paper: None,
        parameters: &[],
        budgeted: true,
        check: anything_goes,
        cache_budget: as_given,
        figure: None,
        make: Make::Policy(make),
    }
}

static SILENT: PolicyEntry = stubborn("silent", |_| Box::new(Stubborn(&[])));
static SHORT: PolicyEntry = stubborn("short", |_| Box::new(Stubborn(&[0])));
static REPEATING: PolicyEntry = stubborn("repeating", |_| Box::new(Stubborn(&[1, 1])));
static STRAYING: PolicyEntry = stubborn("straying", |_| Box::new(Stubborn(&[0, 9])));
static UNORDERED: PolicyEntry = stubborn("unordered", |_| Box::new(Stubborn(&[1, 0])));
static GENEROUS: PolicyEntry = stubborn("generous", |_| Box::new(Stubborn(&[0, 1])));

/// A budget that shrinks by two in the eyes of the policy's cache, so that two must go at once.
static HASTY: PolicyEntry = PolicyEntry { cache_budget: |_| 0, ..stubborn("hasty", |_| Box::new(Stubborn(&[0]))) };

fn rows() -> Rows {
    (1..=6).map(|len| Some(vec![1.0 / len as f32; len])).collect()
}

fn run(entry: &'static PolicyEntry, threads: usize) -> Result<u64, Error> {
    let trace = trace(Excluded, &rows());
    let caches = caches_of(kvsim::trace::Source::info(&trace))?;
    let options = Options { threads, ..Options::default() };
    let sound = LanePlan::new(kvsim::policy::table::find("tova").expect("in the table"), 3);
    let outcomes = replay(&trace, &caches, &[sound, LanePlan::new(entry, 3)], &options, &NoObserver)?;
    Ok(outcomes[0].tallies[1].evicted)
}

#[test]
fn every_broken_contract_names_policy_step_and_counts() {
    let broken = [
        (&SILENT, 3, "named 0 victims of 4 held, 1 must go"),
        (&REPEATING, 3, "named 2 victims of 4 held out of order or twice"),
        (&STRAYING, 3, "named slot 9 as one of 2 victims, 4 are held"),
        (&UNORDERED, 3, "named 2 victims of 4 held out of order or twice"),
        (&HASTY, 1, "named 1 victims of 2 held, 2 must go"),
    ];
    for (entry, at, wanted) in broken {
        match run(entry, 1) {
            Err(Error::Contract { policy, step, problem }) => {
                assert_eq!((policy.as_str(), step, problem.as_str()), (entry.name, at, wanted));
            }
            other => panic!("{}: {other:?}", entry.name),
        }
    }
}

#[test]
fn the_message_is_one_line_that_blames_the_policy() {
    let error = run(&SILENT, 1).expect_err("it names nothing");
    let wanted = "policy \"silent\" broke its contract at step 3: named 0 victims of 4 held, 1 must go";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn the_same_contract_is_broken_on_any_number_of_threads() {
    for threads in [1, 2, 3] {
        let error = run(&STRAYING, threads).expect_err("it names a slot that is not held");
        assert!(matches!(error, Error::Contract { step: 3, .. }), "{error}");
    }
}

#[test]
fn a_policy_may_give_up_more_than_it_must() {
    assert_eq!(run(&SHORT, 1).expect("one at a time"), 4, "steps 3, 4, 5 and 6");
    assert_eq!(run(&GENEROUS, 1).expect("two at a time"), 4, "steps 3 and 5");
}
