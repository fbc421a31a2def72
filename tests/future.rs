//! The bounds that know the future, against everything that could have been done.

use kvsim::error::Error;
use kvsim::keeping::{Keeping, PromptPlan};
use kvsim::policy::table::find;
use kvsim::position::Position;
use kvsim::replay::{CachePlan, LanePlan, NoObserver, Options, Tally, caches_of, planning_bytes, replay};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::{SelfAttention, Source};

/// One cache on one trace, small enough to try everything.
#[derive(Clone)]
struct Tiny {
    kind: SelfAttention,
    /// Step of the first row.
    first: usize,
    /// Rows of each query head that shares the cache.
    heads: Vec<Rows>,
    /// Positions that the layer attends to.
    window: Option<usize>,
    /// Length of a prompt that is cut down at once.
    prompt: usize,
}

impl Tiny {
    /// A cache of all rows, with neither window nor prompt.
    fn new(kind: SelfAttention, heads: Vec<Rows>) -> Tiny {
        Tiny { kind, first: kind.first_step().index(), heads, window: None, prompt: 0 }
    }

    /// Few values make for ties and zeros; some steps carry no information.
    fn random(random: &mut Xoshiro128, kind: SelfAttention, first: usize, rows: usize, heads: usize) -> Tiny {
        let first = first.max(kind.first_step().index());
        let mut head = || -> Rows {
            let row = |step| {
                let row = (0..kind.row_len(Position(step))).map(|_| random.below(9) as f32 / 16.0).collect();
                (random.below(8) > 0).then_some(row)
            };
            (first as u32..).take(rows).map(row).collect()
        };
        let heads = (0..heads).map(|_| head()).collect();
        Tiny { first, ..Tiny::new(kind, heads) }
    }

    fn replayed(&self, bound: &str, budget: usize) -> Tally {
        let mut trace = MemoryTrace::new("tiny", self.kind).with_first_position(Position(self.first as u32));
        for (head, rows) in self.heads.iter().enumerate() {
            trace = trace.with_stream(0, &head.to_string(), rows.clone()).expect("rows have their lengths");
        }
        let streams = (0..self.heads.len()).collect();
        let first = caches_of(trace.info()).expect("no metadata").remove(0);
        let caches = [CachePlan { streams, window: self.window, ..first }];
        let keeping = Keeping { prompt: PromptPlan::block(self.prompt), ..Keeping::default() };
        let lanes = [LanePlan::new(find(bound).expect("in the table"), budget).kept(keeping)];
        let outcomes = replay(&trace, &caches, &lanes, &Options::default(), &NoObserver).expect("a sound replay");
        outcomes.into_iter().next().expect("one cache").tallies.remove(0)
    }

    /// The most that can be retained from the row with this index on; `kept` holds what is kept
    /// before it. Every subset that fits is tried, those that waste room too.
    fn best_from(&self, index: usize, kept: &[usize], budget: usize) -> f64 {
        if index == self.heads[0].len() {
            return 0.0;
        }
        let step = self.first + index;
        let admitted: Vec<usize> = kept.iter().copied().chain([step]).collect();
        let seen = if self.kind == SelfAttention::Included { &admitted[..] } else { kept };
        let left: Vec<usize> =
            admitted.iter().copied().filter(|held| self.window.is_none_or(|window| held + window > step + 1)).collect();
        let rest = subsets(&left).into_iter().filter(|rest| rest.len() <= budget || step + 1 < self.prompt);
        let best = rest.map(|rest| self.best_from(index + 1, &rest, budget)).fold(f64::NEG_INFINITY, f64::max);
        self.retained(index, seen) + best
    }

    /// What a set retains of a row; nothing where the row is not counted.
    fn retained(&self, index: usize, seen: &[usize]) -> f64 {
        let rows: Option<Vec<&Vec<f32>>> = self.heads.iter().map(|head| head[index].as_ref()).collect();
        let rows = rows.filter(|_| self.first + index >= self.prompt).unwrap_or_default();
        rows.iter().flat_map(|row| seen.iter().map(|position| f64::from(row[*position]))).sum()
    }

    fn best(&self, budget: usize) -> f64 {
        self.best_from(0, &(0..self.first).collect::<Vec<_>>(), budget)
    }
}

fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    let subset = |bits: u32| (0..).zip(of).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, held)| *held).collect();
    (0..1 << of.len()).map(subset).collect()
}

/// Checks the optimum against everything, and greed against the optimum.
fn assert_optimal(tiny: &Tiny, what: &str) {
    for budget in 1..=3 {
        let optimal = tiny.replayed("optimal", budget);
        // Sixteenths add up without rounding.
        assert_eq!(optimal.real("retained_mass_sum"), tiny.best(budget), "{what}, budget {budget}");
        let greedy = tiny.replayed("future-greedy", budget);
        assert!(greedy.real("retained_mass_sum") <= optimal.real("retained_mass_sum"), "{what}, budget {budget}");
    }
}

#[test]
fn no_way_to_evict_retains_more_than_the_optimum_and_the_optimum_is_one_of_them() {
    let mut random = Xoshiro128::new(21);
    for round in 0..400 {
        let kind = if round % 2 == 0 { SelfAttention::Included } else { SelfAttention::Excluded };
        let (rows, heads) = (1 + random.below(6) as usize, 1 + round / 2 % 2);
        assert_optimal(&Tiny::random(&mut random, kind, 0, rows, heads), &format!("round {round}"));
    }
}

#[test]
fn the_optimum_holds_where_a_prompt_is_cut_down_positions_expire_or_rows_begin_late() {
    let mut random = Xoshiro128::new(22);
    for round in 0..300 {
        let kind = if round % 2 == 0 { SelfAttention::Included } else { SelfAttention::Excluded };
        let rows = 2 + random.below(5) as usize;
        let prompted = Tiny { prompt: 1 + random.below(7) as usize, ..Tiny::random(&mut random, kind, 0, rows, 1) };
        assert_optimal(&prompted, &format!("prompt, round {round}"));
        let window = Some(1 + random.below(5) as usize);
        assert_optimal(&Tiny { window, ..prompted.clone() }, &format!("prompt and window, round {round}"));
        assert_optimal(&Tiny { window, prompt: 0, ..prompted }, &format!("window, round {round}"));
        let late = Tiny::random(&mut random, kind, 1 + round % 4, 3, 2);
        assert_optimal(&late, &format!("late, round {round}"));
    }
}

#[test]
fn greed_is_not_the_optimum() {
    let row = |weights: &[f32]| Some(weights.to_vec());
    // After row 2 position 0 has the least to come, but it comes at once: whoever waits for it can
    // let it go for nothing one row later, where greed has to part with position 1 as well.
    let rows = vec![
        row(&[0.0]),
        row(&[0.0, 0.0]),
        row(&[0.0, 0.0, 0.0]),
        row(&[0.125, 0.0, 0.0, 0.0]),
        row(&[0.0, 0.1875, 0.25, 0.25, 0.0]),
    ];
    let tiny = Tiny::new(SelfAttention::Included, vec![rows]);
    assert_eq!(tiny.replayed("optimal", 2).real("retained_mass_sum"), 0.625);
    assert_eq!(tiny.replayed("future-greedy", 2).real("retained_mass_sum"), 0.5);
}

#[test]
fn a_budget_that_nothing_exceeds_retains_everything() {
    let tiny = Tiny::random(&mut Xoshiro128::new(3), SelfAttention::Included, 0, 6, 1);
    for bound in ["optimal", "future-greedy"] {
        for budget in [6, 100] {
            let tally = tiny.replayed(bound, budget);
            assert_eq!(
                (tally.real("retained_mass_sum"), tally.count("evicted")),
                (tally.real("row_mass_sum"), 0),
                "{bound} at {budget}"
            );
        }
    }
}

#[test]
fn a_plan_is_measured_as_any_kept_set() {
    let tiny = Tiny::random(&mut Xoshiro128::new(4), SelfAttention::Excluded, 0, 6, 1);
    let tally = tiny.replayed("optimal", 2);
    assert_eq!((tally.count("evicted"), tally.count("eviction_calls"), tally.count("peak_kept")), (5, 5, 2));
    assert!(tally.count("heavy_possible") > 0 && tally.count("heavy_hits") <= tally.count("heavy_possible"));
    assert!(tally.number("min_step_mass").is_some());
}

#[test]
fn too_long_a_stream_is_refused_with_the_numbers_and_the_way_out() {
    let rows: Rows = (0..400_usize).map(|step| Some(vec![0.0; step + 1])).collect();
    let trace = MemoryTrace::new("long", SelfAttention::Included).with_stream(0, "0", rows).expect("sound");
    let caches = caches_of(trace.info()).expect("no metadata");
    let options = Options { max_memory: 1 << 20, ..Options::default() };
    let [optimal, greedy] = ["optimal", "future-greedy"].map(|name| LanePlan::new(find(name).expect("there"), 8));
    let needed = planning_bytes(&trace, &caches[0], &optimal, 8, &options);
    assert!(needed > 400 * 400 * 4, "{needed}");
    let refused = replay(&trace, &caches, &[optimal], &options, &NoObserver);
    let Err(Error::Usage(problem)) = refused else { panic!("{refused:?}") };
    assert!(problem.starts_with("policy optimal: planning 400 positions needs 3 MiB of memory"), "{problem}");
    assert!(problem.contains("the limit is 1 MiB") && problem.ends_with("future-greedy"), "{problem}");
    replay(&trace, &caches, &[greedy], &options, &NoObserver).expect("little memory is needed");
}
