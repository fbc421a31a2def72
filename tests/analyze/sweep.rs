//! The advice: on traces on which the right window and budget are known, and against replays.

use crate::common::lanes::{lane, tallies_of_one, trace};
use kvsim::analyze::advice::{Advice, Choice, Sweep, advise};
use kvsim::replay::{NoObserver, Options, caches_of};
use kvsim::trace::memory::Rows;
use kvsim::trace::spec::MixtureSpec;
use kvsim::trace::synthetic::SyntheticTrace;
use kvsim::trace::{SelfAttention, Source};

fn advised(source: &dyn Source, sweep: &Sweep) -> Advice {
    let caches = caches_of(source.info()).expect("sound metadata");
    advise(source, &caches, &Options::default(), sweep, &NoObserver).expect("a sound trace")
}

#[track_caller]
fn of<'a>(choices: &'a [Choice], policy: &str, budget: usize) -> &'a Choice {
    choices.iter().find(|choice| choice.policy == policy && choice.budget == budget).expect("it was swept")
}

/// All weight on the position ten back, self excluded: it was never attended to before.
fn ten_back() -> Rows {
    let row = |t: usize| Some((0..t).map(|position| f32::from(u8::from(position == t.saturating_sub(10)))).collect());
    (1..64).map(row).collect()
}

#[test]
fn the_smallest_window_is_the_one_that_reaches_as_far_back_as_attention_does() {
    let sweep = Sweep { budgets: vec![8, 16, 32], windows: vec![0, 8, 16], tolerance: 0.01 };
    let advice = advised(&trace(SelfAttention::Excluded, &ten_back()), &sweep);
    for policy in ["h2o", "scissorhands"] {
        let [choice] = &advice.recommended.iter().filter(|choice| choice.policy == policy).collect::<Vec<_>>()[..]
        else {
            panic!("one recommendation for each policy")
        };
        assert_eq!((choice.budget, choice.recent_window), (32, Some(16)), "{policy}: 16 is too small for window 16");
        assert_eq!((choice.retained_mass, choice.headroom), (1.0, Some(1.0)));
        assert_eq!((choice.best_budget, choice.best_recent_window), (32, Some(16)));
    }
    for policy in ["tova", "streaming-llm"] {
        let choice = of(&advice.recommended, policy, 16);
        assert_eq!((choice.recent_window, choice.retained_mass), (None, 1.0), "{policy}");
    }
}

#[test]
fn every_figure_is_that_of_a_replay() {
    let spec = MixtureSpec { positions: 600, ..MixtureSpec::built_in("decode-4096").expect("it is built in") };
    let source = SyntheticTrace::new(spec);
    let sweep = Sweep { budgets: vec![64, 128], windows: vec![0, 32, 96], tolerance: 0.02 };
    let advice = advised(&source, &sweep);
    let windows = |budget| sweep.windows.iter().filter(move |window| **window < budget);
    for budget in [64, 128] {
        let lanes: Vec<_> = windows(budget).map(|window| lane("h2o", budget, &[("recent-window", *window)])).collect();
        let retained = tallies_of_one(&source, &lanes)
            .into_iter()
            .map(|tally| tally.real("retained_mass_sum") / tally.count("rows_measured") as f64);
        let retained: Vec<f64> = retained.collect();
        let best = retained.iter().copied().fold(0.0, f64::max);
        let least = retained.iter().position(|mass| *mass >= best - 0.02).expect("the best is enough");
        let choice = of(&advice.at_budgets, "h2o", budget);
        assert_eq!((choice.retained_mass, choice.best_retained_mass), (retained[least], best));
        assert_eq!(choice.recent_window, windows(budget).nth(least).copied());
        let bound = &tallies_of_one(&source, &[lane(advice.bound, budget, &[])])[0];
        assert_eq!(choice.bound, bound.real("retained_mass_sum") / bound.count("rows_measured") as f64);
        assert_eq!(choice.headroom, Some(choice.retained_mass / choice.bound));
    }
}

#[test]
fn it_says_what_it_swept_and_the_closest_bound_that_time_and_memory_allow() {
    let source = trace(SelfAttention::Excluded, &ten_back());
    let sweep = Sweep { budgets: vec![16, 32], windows: vec![0, 8, 16], tolerance: 0.01 };
    let advice = advised(&source, &sweep);
    assert_eq!(advice.policies, ["h2o", "scissorhands", "tova", "snapkv", "streaming-llm"]);
    assert_eq!((advice.budgets, advice.windows, advice.caches), (vec![16, 32], vec![0, 8, 16], 1));
    // Three policies with a window: 2 + 3 windows below the budgets; two without, and two bounds.
    assert_eq!((advice.lanes, advice.bound), (3 * 5 + 4 * 2, "optimal"));
    let caches = caches_of(source.info()).expect("sound metadata");
    let poor = Options { max_memory: 1000, ..Options::default() };
    let advice = advise(&source, &caches, &poor, &sweep, &NoObserver).expect("the oracle needs no memory");
    assert_eq!(advice.bound, "oracle");
}

#[test]
fn the_sweep_follows_the_length_of_the_trace() {
    let sweep = Sweep::of(2048, 0.01);
    assert_eq!(sweep.budgets, [64, 128, 256, 512, 1024]);
    assert_eq!(sweep.windows, [0, 8, 16, 32, 64, 128, 256]);
    let sweep = Sweep::of(5, 0.01);
    assert_eq!((sweep.budgets, sweep.windows), (vec![1, 2], vec![0]));
    assert_eq!(Sweep::of(0, 0.01).budgets, [1]);
}

#[test]
fn a_trace_of_nothing_gets_no_advice() {
    let advice = advised(&trace(SelfAttention::Included, &Rows::new()), &Sweep::of(0, 0.01));
    assert!(advice.recommended.is_empty() && advice.at_budgets.is_empty());
}
