//! A policy that breaks its contract stops the run with its name, the step and the counts.

use crate::common::lanes::trace;
use kvsim::error::Error;
use kvsim::keeping::{Keeping, PromptPlan};
use kvsim::policy::table::{Make, PolicyEntry, Setting};
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
    PolicyEntry::new(name, "does as it likes", Make::Policy(make))
}

static SILENT: PolicyEntry = stubborn("silent", |_| Box::new(Stubborn(&[])));
static SHORT: PolicyEntry = stubborn("short", |_| Box::new(Stubborn(&[0])));
static REPEATING: PolicyEntry = stubborn("repeating", |_| Box::new(Stubborn(&[1, 1])));
static STRAYING: PolicyEntry = stubborn("straying", |_| Box::new(Stubborn(&[0, 9])));
static UNORDERED: PolicyEntry = stubborn("unordered", |_| Box::new(Stubborn(&[1, 0])));
static GENEROUS: PolicyEntry = stubborn("generous", |_| Box::new(Stubborn(&[0, 1])));

fn rows() -> Rows {
    (1..=6).map(|len| Some(vec![1.0 / len as f32; len])).collect()
}

fn run(entry: &'static PolicyEntry, threads: usize) -> Result<u64, Error> {
    run_with(LanePlan::new(entry, 3), Options { threads, ..Options::default() })
}

fn run_with(lane: LanePlan, options: Options) -> Result<u64, Error> {
    let trace = trace(Excluded, &rows());
    let caches = caches_of(kvsim::trace::Source::info(&trace))?;
    let sound = LanePlan::new(kvsim::policy::table::find("tova").expect("in the table"), 3);
    let outcomes = replay(&trace, &caches, &[sound, lane], &options, &NoObserver)?;
    Ok(outcomes[0].tallies[1].count("evicted"))
}

#[test]
fn every_broken_contract_names_policy_step_and_counts() {
    let broken = [
        (&SILENT, 3, "named 0 victims of 4 held, 1 must go"),
        (&REPEATING, 3, "named 2 victims of 4 held out of order or twice"),
        (&STRAYING, 3, "named slot 9 as one of 2 victims, 4 are held"),
        (&UNORDERED, 3, "named 2 victims of 4 held out of order or twice"),
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
fn a_cut_of_several_at_once_asks_for_all_of_them() {
    let keeping = Keeping { prompt: PromptPlan::block(5), ..Keeping::default() };
    let error = run_with(LanePlan::new(&SHORT, 3).kept(keeping), Options::default()).expect_err("it names one of two");
    assert!(matches!(&error, Error::Contract { step: 4, .. }), "{error}");
    assert!(error.to_string().ends_with("named 1 victims of 5 held, 2 must go"), "{error}");
}

/// Forgets what it was told to hold.
struct Forgetful;

impl Policy for Forgetful {
    fn choose(&mut self, _overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        victims.push(Slot(0));
    }

    fn slots(&self) -> Option<usize> {
        Some(1)
    }
}

static FORGETFUL: PolicyEntry = stubborn("forgetful", |_| Box::new(Forgetful));

/// Release builds look at the end of a batch of rows, debug builds after each call.
#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "holds state for 1 slots, 2 are held"))]
fn state_for_other_slots_than_are_held_is_a_broken_contract() {
    let error = run(&FORGETFUL, 1).expect_err("it has lost count");
    let wanted = "policy \"forgetful\" broke its contract at step 6: holds state for 1 slots, 3 are held";
    assert_eq!(error.to_string(), wanted);
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
