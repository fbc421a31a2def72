//! Caches kept as engines keep them: rows combined, cuts that come late or once, whole blocks, one set for a
//! layer; everything together, against the slow replay.

use crate::agree::{
    assert_agree, assert_same_counts, assert_same_steps, keeping_of, kept, replayed_on, replayed_slowly,
};
use crate::as_meters;
use crate::made::{Dice, trace};
use crate::slow::Situation;
use kvsim::keeping::{Keeping, Scope};
use kvsim::policy::table::Make;
use kvsim::replay::{CachePlan, LanePlan, NoObserver, Options, Outcome, caches_of, replay, shared_caches_of};
use kvsim::trace::Source;
use kvsim::trace::memory::MemoryTrace;

/// Lanes that are possible in a situation.
fn possible(dice: &mut Dice, situation: &Situation) -> Vec<LanePlan> {
    // Most budgets are a whole number of blocks.
    let page = situation.keep.page;
    let budget = if page > 1 { page * (2 + dice.below(5)) } else { 1 + dice.below(12) };
    let mut lanes = kept(situation, &dice.lanes(budget));
    lanes.retain(|lane| lane.check().is_ok());
    lanes
}

/// A prompt is cut once where its last row is there.
fn sound(mut situation: Situation) -> Situation {
    situation.keep.once &= situation.prompt > situation.first;
    situation
}

#[test]
fn every_policy_is_kept_in_every_way_as_the_slow_replay_has_it() {
    let mut agreed = 0;
    for seed in 0..600 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(3, 60);
        let situation = sound(Situation { keep: dice.keep(), ..situation });
        let lanes = possible(&mut dice, &situation);
        agreed += lanes.iter().filter(|lane| matches!(lane.entry.make, Make::Policy(_))).count();
        assert_agree(&situation, &lanes, &format!("seed {seed}: {:?}", situation.keep));
    }
    assert!(agreed > 3000, "{agreed} lanes are possible");
}

/// Two layers of four heads, two caches in each.
struct Layers {
    situations: [Situation; 2],
    trace: MemoryTrace,
}

impl Layers {
    fn draw(dice: &mut Dice) -> Layers {
        let situation = Situation { keep: dice.keep(), window: None, ..dice.situation(1, 40) };
        let situation = sound(situation);
        let rows = situation.heads[0].len();
        let situations = [0, 1].map(|_| {
            let heads = (0..4).map(|_| dice.rows(situation.kind, situation.first, rows, None)).collect();
            Situation { heads, ..situation.clone() }
        });
        let names = ["0", "1", "2", "3"];
        let streams: Vec<_> = [0_u32, 1]
            .iter()
            .flat_map(|layer| names.iter().zip(&situations[*layer as usize].heads).map(move |(n, r)| (*layer, *n, r)))
            .collect();
        let trace = trace(situation.kind, situation.first, &streams);
        Layers { situations, trace }
    }

    fn caches(&self) -> Vec<CachePlan> {
        shared_caches_of(self.trace.info(), 2).expect("four heads share two caches")
    }

    fn options(&self) -> Options {
        crate::agree::options_of(&self.situations[0])
    }
}

fn of_layers(lane: &LanePlan) -> LanePlan {
    lane.clone().kept(Keeping { scope: Scope::Layer, ..lane.keeping })
}

#[test]
fn a_set_for_a_layer_is_a_cache_of_all_its_heads() {
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let layers = Layers::draw(&mut dice);
        let mut lanes = possible(&mut dice, &layers.situations[0]);
        lanes.retain(|lane| matches!(lane.entry.make, Make::Policy(_)) && lane.entry.deals.is_none());
        // Side by side with the same lanes on each cache.
        let both: Vec<LanePlan> = lanes.iter().flat_map(|lane| [of_layers(lane), lane.clone()]).collect();
        let found = replayed_on(&layers.trace, &layers.caches(), &both, &layers.options());
        let of_layers: &[_] =
            if both.iter().any(|lane| lane.keeping.scope == Scope::Layer) { &found[4..] } else { &[] };
        for (situation, found) in layers.situations.iter().zip(of_layers) {
            for (lane, (tally, records)) in
                both.iter().zip(found).filter(|(lane, _)| lane.keeping.scope == Scope::Layer)
            {
                let what = format!("seed {seed}: {} at {:?}, {:?}", lane.entry.name, lane.budget, lane.keeping);
                let steps = replayed_slowly(situation, lane);
                assert_same_steps(records, &steps, &what);
                assert_same_counts(tally, &steps, &what);
            }
        }
        assert_eq!(keeping_of(&layers.situations[0]).scope, Scope::Head);
    }
}

fn outcomes(layers: &Layers, lanes: &[LanePlan], threads: usize) -> Vec<Outcome> {
    let options = Options { threads, ..layers.options() };
    replay(&layers.trace, &layers.caches(), lanes, &options, &NoObserver).expect("a sound replay")
}

#[test]
fn lanes_together_are_lanes_alone_on_any_number_of_threads() {
    for seed in 300..340 {
        let mut dice = Dice::new(seed);
        let layers = Layers::draw(&mut dice);
        let mut lanes = possible(&mut dice, &layers.situations[0]);
        lanes.retain(|lane| lane.entry.deals.is_none());
        let lanes: Vec<LanePlan> = lanes.iter().flat_map(|lane| [of_layers(lane), lane.clone()]).collect();
        let together = outcomes(&layers, &lanes, 1);
        for threads in [2, 3, 8] {
            let again = outcomes(&layers, &lanes, threads);
            assert!(together.iter().zip(&again).all(|(a, b)| a.tallies == b.tallies), "seed {seed}: {threads} threads");
        }
        for (at, lane) in lanes.iter().enumerate() {
            let alone = outcomes(&layers, std::slice::from_ref(lane), 1);
            for outcome in &alone {
                let same = together.iter().find(|other| other.cache.label == outcome.cache.label);
                let same = same.unwrap_or_else(|| panic!("{} is there", outcome.cache.label));
                assert_eq!(outcome.tallies[0], same.tallies[at], "seed {seed}: {} {:?}", lane.entry.name, lane.keeping);
            }
        }
    }
}

/// Whether a lane holds no more than its budget and schedule say; blocks of a policy's own are cut a row later.
fn comparable(lane: &LanePlan) -> bool {
    lane.entry.budgeted && lane.entry.deals.is_none() && lane.entry.own.cuts.is_none()
}

#[test]
fn no_policy_retains_more_than_the_oracle_of_its_schedule() {
    for seed in 600..700 {
        let mut dice = Dice::new(seed);
        let situation = dice.situation(3, 60);
        let situation = sound(Situation { keep: dice.keep(), ..situation });
        let lanes = possible(&mut dice, &situation);
        let tallies = crate::agree::tallies(&situation, &lanes);
        let retained = |at: usize| tallies[at].real("retained_mass_sum");
        let oracle = lanes.iter().position(|lane| lane.entry.name == "oracle").expect("it is always possible");
        for (at, lane) in lanes.iter().enumerate().filter(|(_, lane)| comparable(lane)) {
            let what = format!("seed {seed}: {} {:?}", lane.entry.name, situation.keep);
            assert!(retained(at) <= retained(oracle) * (1.0 + 1e-12), "{what}");
        }
    }
}

#[test]
fn what_is_kept_of_a_prompt_that_is_cut_once_is_what_later_rows_attend_to_most() {
    for seed in 700..760 {
        let mut dice = Dice::new(seed);
        let mut situation = Situation { window: None, renormalized: false, ..dice.situation(2, 24) };
        let rows = situation.heads[0].len();
        situation.prompt = situation.first + 1 + dice.below(rows);
        situation.keep.once = true;
        let budget = 1 + dice.below(8);
        let optimal = LanePlan::new(kvsim::policy::table::find("optimal").expect("in the table"), budget);
        let found = crate::agree::tallies(&situation, &[optimal]).remove(0).real("retained_mass_sum");
        let best = best_of_once(&situation, budget);
        assert!((found - best).abs() <= 1e-9 * best.max(1.0), "seed {seed}: {found}, not {best}");
    }
}

/// Every later position is there; of the prompt, the positions of the largest sums.
fn best_of_once(situation: &Situation, budget: usize) -> f64 {
    let Situation { first, prompt, kind, .. } = *situation;
    let mut sums = vec![0.0; prompt];
    let mut of_later = 0.0;
    for index in 0..situation.heads[0].len() {
        let step = first + index;
        let rows: Option<Vec<&Vec<f32>>> = situation.heads.iter().map(|rows| rows[index].as_ref()).collect();
        for row in rows.into_iter().flatten().filter(|_| step >= prompt) {
            for (position, weight) in row.iter().enumerate().take(kind.row_length(step)) {
                match sums.get_mut(position) {
                    Some(sum) => *sum += f64::from(*weight),
                    None => of_later += f64::from(*weight),
                }
            }
        }
    }
    sums.sort_by(|a, b| f64::total_cmp(b, a));
    of_later + sums.iter().take(budget).sum::<f64>()
}

#[test]
fn heads_of_one_cache_are_one_layer() {
    let mut dice = Dice::new(1);
    let situation = Situation { window: None, ..dice.situation(1, 30) };
    let trace = trace(situation.kind, situation.first, &[(0, "mean", &situation.heads[0])]);
    let caches = caches_of(trace.info()).expect("one stream");
    let lane = crate::common::lanes::lane("h2o", 8, &[("recent-window", 2)]);
    let options = Options { meters: as_meters::all_meters(), ..Options::default() };
    let outcomes = replay(&trace, &caches, &[lane.clone(), of_layers(&lane)], &options, &NoObserver).expect("sound");
    assert_eq!(outcomes[0].tallies[0], outcomes[1].tallies[1]);
    assert_eq!(outcomes[1].cache.label.to_string(), "0.layer");
    assert!(outcomes[0].tallies[1].is_empty() && outcomes[1].tallies[0].is_empty(), "each has its own place");
}
