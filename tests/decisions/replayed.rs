//! Decisions that are replayed measure like the policy that made them.

use crate::common::lanes::lane;
use crate::rows;
use kvsim::decisions::{Decisions, Header, LaneHeader, Recorder};
use kvsim::keeping::{Keeping, PromptPlan};
use kvsim::replay::{CachePlan, LanePlan, NoObserver, Options, Outcome, replay};
use kvsim::trace::SelfAttention::Included;
use kvsim::trace::Source;
use kvsim::trace::memory::MemoryTrace;

const POLICIES: [&str; 6] = ["h2o", "tova", "snapkv", "streaming-llm", "random", "optimal"];
const FIGURES: [&str; 5] = ["retained_mass", "retained_mass_full", "peak_miss_rate", "heavy_recall", "evicted"];

fn trace() -> MemoryTrace {
    let trace = MemoryTrace::new("made by a test", Included);
    let trace = trace.with_stream(0, "0", rows(1, 70)).expect("sound").with_stream(0, "1", rows(2, 70)).expect("sound");
    trace.with_stream(1, "0", rows(3, 70)).expect("sound").with_metadata("sliding_window.1", "40")
}

fn figures(outcomes: &[Outcome], lane: usize) -> Vec<Option<f64>> {
    let of = |outcome: &Outcome| {
        let tally = outcome.tallies[lane].clone();
        FIGURES.map(|name| tally.figure(name).or(tally.number(name).map(|number| number.as_f64())))
    };
    outcomes.iter().flat_map(of).collect()
}

fn recorded(trace: &MemoryTrace, caches: &[CachePlan], lanes: &[LanePlan], options: &Options) -> Decisions {
    let headers = lanes.iter().map(|lane| LaneHeader::of(lane, &[])).collect();
    let header = Header::of(trace.info(), caches, 70, headers);
    let recorder = Recorder::new(Vec::new(), &header, &vec![70; caches.len()]).expect("memory takes all");
    replay(trace, caches, lanes, options, &recorder).expect("a sound replay");
    let text = recorder.finish().expect("memory takes all");
    Decisions::read_from("recorded", &text[..]).expect("what is written is read")
}

#[test]
fn every_figure_of_a_policy_is_that_of_its_decisions() {
    let trace = trace();
    let caches = kvsim::replay::caches_of(trace.info()).expect("sound");
    let lanes = POLICIES.map(|policy| {
        lane(policy, 9, if ["h2o", "snapkv", "random"].contains(&policy) { &[("recent-window", 3)] } else { &[] })
    });
    for prompt_end in [0, 30] {
        let keeping = Keeping { prompt: PromptPlan::block(prompt_end), ..Keeping::default() };
        let (lanes, options) = (lanes.clone().map(|lane| lane.kept(keeping)), Options::default());
        let file = recorded(&trace, &caches, &lanes, &options);
        let played = |lane: usize| LanePlan { keeping, ..LanePlan::played(file.playback(lane)) };
        let played: Vec<LanePlan> = (0..lanes.len()).map(played).collect();
        let own = replay(&trace, &caches, &lanes, &options, &NoObserver).expect("a sound replay");
        let again = replay(&trace, &caches, &played, &options, &NoObserver).expect("a sound replay");
        for (at, policy) in POLICIES.iter().enumerate() {
            assert_eq!(figures(&own, at), figures(&again, at), "{policy}, prompt of {prompt_end}");
        }
    }
}

#[test]
fn decisions_about_other_caches_are_refused() {
    let trace = trace();
    let caches = kvsim::replay::caches_of(trace.info()).expect("sound");
    let file = recorded(&trace, &caches[..2], &[lane("tova", 9, &[])], &Options::default());
    let lanes = [LanePlan::played(file.playback(0))];
    let refused = replay(&trace, &caches, &lanes, &Options::default(), &NoObserver).expect_err("a cache is missing");
    let wanted = "policy played: recorded says nothing of cache 1.0; it has 0.0, 0.1 (";
    assert!(refused.to_string().starts_with(wanted), "{refused}");
}
