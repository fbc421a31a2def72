//! Answers that can be told without a program.

use crate::made::{answer, line, trace};
use kvsim::experiment::Budget;
use kvsim::recommend::{Figure, Goal};
use serde_json::json;

const EIGHT: Goal = Goal::Budget(Budget::Count(8));

/// Rows that want the first position.
fn sink() -> String {
    trace(80, 1, json!({}), |_, _| 0)
}

/// Rows that want the position ten before them.
fn ten_back(steps: usize) -> String {
    trace(steps, 1, json!({}), |_, step| step.saturating_sub(10))
}

#[test]
fn who_keeps_the_wanted_position_loses_nothing_and_who_does_not_loses_half() {
    let answer = answer(&[sink()], "sliding-window,streaming-llm,h2o", EIGHT);
    let ranks: Vec<_> = answer.lines.iter().map(|line| (line.candidate.entry.name, line.rank)).collect();
    assert_eq!(ranks, [("streaming-llm", Some(1)), ("h2o", Some(1)), ("sliding-window", Some(3))]);
    let lost = |policy| {
        let kept = line(&answer, policy).kept.as_ref().expect("it keeps something");
        (kept.lost_mass.value, kept.peak_misses.value)
    };
    assert_eq!(lost("streaming-llm"), (0.0, 0.0));
    assert_eq!(lost("sliding-window"), (0.5, 1.0));
    assert_eq!(line(&answer, "streaming-llm").candidate.spelled(), "streaming-llm:sinks=4");
    assert!(answer.sentence().contains("streaming-llm (sinks 4) serves best"), "{}", answer.sentence());
}

#[test]
fn a_window_of_ten_is_needed_to_look_ten_back() {
    for figure in [Figure::LostMass, Figure::PeakMisses] {
        let answer = answer(&[ten_back(80)], "sliding-window", Goal::Promise(figure, 0.01));
        let kept = line(&answer, "sliding-window").kept.as_ref().expect("it keeps the promise");
        let interval = kept.budget_interval.expect("of promises");
        assert_eq!((kept.budget, interval.low, interval.high), (10, 10.0, 10.0));
        assert_eq!(kept.lost_mass.value, 0.0);
    }
}

#[test]
fn a_promise_that_nobody_keeps_is_none_up_to_three_quarters() {
    let answer = answer(&[sink()], "sliding-window,streaming-llm:sinks=0", Goal::Promise(Figure::LostMass, 0.1));
    assert!(answer.lines.iter().all(|line| line.rank.is_none() && line.kept.is_none()));
    let wanted = "To lose at most 10% of the attention, no policy will do: none up to 60 of 80 positions (75.0%).";
    assert_eq!(answer.sentence(), wanted);
}

#[test]
fn with_several_traces_each_is_reported_with_what_was_chosen_on_the_others() {
    // A window of 12 without sinks serves the one, sinks serve the other: chosen on each other, both lose half of
    // each row, but for the one of 134 that looks ten back to a sink.
    let twelve = Goal::Budget(Budget::Count(12));
    let crossed = answer(&[sink(), ten_back(80)], "streaming-llm", twelve);
    let lost = line(&crossed, "streaming-llm").kept.as_ref().expect("it keeps something").lost_mass.value;
    assert!((lost - 0.5 * 133.0 / 134.0).abs() < 1e-12, "{lost}");
    let same = answer(&[sink(), sink(), sink()], "streaming-llm", twelve);
    assert_eq!(line(&same, "streaming-llm").kept.as_ref().expect("it keeps something").lost_mass.value, 0.0);
    assert!(crossed.notes().iter().any(|note| note.contains("chosen on the others")));
}

#[test]
fn a_prompt_that_is_known_is_cut_at_its_end() {
    // Only the prompt wants its first position; decode rows want what is near.
    let wanted = |_, step: usize| if step < 60 { 0 } else { step };
    let served = answer(&[trace(80, 1, json!({ "prompt_len": "60" }), wanted)], "sliding-window", EIGHT);
    let lost = |answer: &kvsim::recommend::Answer| {
        line(answer, "sliding-window").kept.as_ref().expect("it keeps something").lost_mass.value
    };
    assert_eq!((lost(&served), &served.basis.prompts[..]), (0.0, &[Some(60)][..]));
    let streamed = answer(&[trace(80, 1, json!({}), wanted)], "sliding-window", EIGHT);
    assert!(lost(&streamed) > 0.3);
}

#[test]
fn a_sequence_takes_what_its_layers_hold_sliding_ones_no_more_than_their_window() {
    let facts = json!({ "num_layers": "3", "kv_heads": "2", "head_dim": "4", "sliding_window.1": "16" });
    let answer = answer(&[trace(80, 1, facts, |_, step| step)], "sliding-window", Goal::Budget(Budget::Count(20)));
    let cost = line(&answer, "sliding-window").kept.as_ref().and_then(|kept| kept.cost).expect("it is known");
    // Keys and values of two heads, four numbers of two bytes each: 32 bytes a position and layer.
    assert_eq!(cost.bytes, Some(32 * (20 + 16 + 20)));
    assert!((cost.share - 56.0 / (80.0 + 16.0 + 80.0)).abs() < 1e-12);
}

#[test]
fn the_worst_layer_is_named() {
    let wanted = |layer, step: usize| if layer == 1 { 0 } else { step };
    let answer = answer(&[trace(80, 2, json!({}), wanted)], "sliding-window", EIGHT);
    let kept = line(&answer, "sliding-window").kept.as_ref().expect("it keeps something");
    assert_eq!(kept.worst_layer, Some((1, 0.5)));
    assert_eq!(kept.lost_mass.value, 0.25);
}
