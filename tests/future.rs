//! The bounds that know the future, against everything that could have been done.

use kvsim::error::Error;
use kvsim::policy::table::find;
use kvsim::replay::{CachePlan, LanePlan, NoObserver, Options, Tally, caches_of, planning_bytes, replay};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::{SelfAttention, Source};

/// A trace of as many streams as query heads that share one cache.
struct Tiny {
    kind: SelfAttention,
    heads: Vec<Rows>,
}

impl Tiny {
    /// Few values make for ties and zeros; some steps carry no information.
    fn random(random: &mut Xoshiro128, kind: SelfAttention, rows: usize, heads: usize) -> Tiny {
        let lengths = (kind.first_step().0..).map(|step| kind.row_len(kvsim::position::Position(step)));
        let mut head = || -> Rows {
            let row = |len| {
                let row = (0..len).map(|_| random.below(9) as f32 / 16.0).collect();
                (random.below(8) > 0).then_some(row)
            };
            lengths.clone().take(rows).map(row).collect()
        };
        Tiny { kind, heads: (0..heads).map(|_| head()).collect() }
    }

    fn replayed(&self, bound: &str, budget: usize) -> Tally {
        let mut trace = MemoryTrace::new("tiny", self.kind);
        for (head, rows) in self.heads.iter().enumerate() {
            trace = trace.with_stream(0, &head.to_string(), rows.clone()).expect("rows have their lengths");
        }
        let streams = (0..self.heads.len()).collect();
        let first = caches_of(trace.info()).expect("no metadata").remove(0);
        let caches = [CachePlan { streams, ..first }];
        let lanes = [LanePlan::new(find(bound).expect("in the table"), budget)];
        let outcomes = replay(&trace, &caches, &lanes, &Options::default(), &NoObserver).expect("a sound replay");
        outcomes.into_iter().next().expect("one cache").tallies.remove(0)
    }

    /// The most that can be retained from the row with this index on; `kept` holds what is kept
    /// before it. Every subset that fits is tried, those that waste room too.
    fn best_from(&self, index: usize, kept: &[usize], budget: usize) -> f64 {
        let Some(step) = (index < self.heads[0].len()).then_some(index + self.kind.first_step().index()) else {
            return 0.0;
        };
        let admitted: Vec<usize> = kept.iter().copied().chain([step]).collect();
        let seen = if self.kind == SelfAttention::Included { &admitted[..] } else { kept };
        let rows: Option<Vec<&Vec<f32>>> = self.heads.iter().map(|head| head[index].as_ref()).collect();
        let rows = rows.unwrap_or_default();
        let retained: f64 = rows.iter().flat_map(|row| seen.iter().map(|position| f64::from(row[*position]))).sum();
        let subsets = (0_u32..1 << admitted.len()).filter(|subset| subset.count_ones() as usize <= budget);
        let rest = subsets.map(|subset| {
            let kept: Vec<usize> =
                admitted.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1).map(|(_, held)| *held).collect();
            self.best_from(index + 1, &kept, budget)
        });
        retained + rest.fold(f64::NEG_INFINITY, f64::max)
    }

    fn best(&self, budget: usize) -> f64 {
        let start: &[usize] = if self.kind == SelfAttention::Excluded { &[0] } else { &[] };
        self.best_from(0, start, budget)
    }
}

#[test]
fn no_way_to_evict_retains_more_than_the_optimum_and_the_optimum_is_one_of_them() {
    let mut random = Xoshiro128::new(21);
    for round in 0..400 {
        let kind = if round % 2 == 0 { SelfAttention::Included } else { SelfAttention::Excluded };
        let (rows, heads) = (1 + random.below(6) as usize, 1 + round / 2 % 2);
        let tiny = Tiny::random(&mut random, kind, rows, heads);
        for budget in 1..=3 {
            let optimal = tiny.replayed("optimal", budget);
            // Sixteenths add up without rounding.
            assert_eq!(optimal.retained, tiny.best(budget), "round {round}, budget {budget}");
            let greedy = tiny.replayed("future-greedy", budget);
            assert!(greedy.retained <= optimal.retained, "round {round}, budget {budget}");
        }
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
    let tiny = Tiny { kind: SelfAttention::Included, heads: vec![rows] };
    assert_eq!(tiny.replayed("optimal", 2).retained, 0.625);
    assert_eq!(tiny.replayed("future-greedy", 2).retained, 0.5);
}

#[test]
fn a_budget_that_nothing_exceeds_retains_everything() {
    let tiny = Tiny::random(&mut Xoshiro128::new(3), SelfAttention::Included, 6, 1);
    for bound in ["optimal", "future-greedy"] {
        for budget in [6, 100] {
            let tally = tiny.replayed(bound, budget);
            assert_eq!((tally.retained, tally.evicted), (tally.row_mass, 0), "{bound} at {budget}");
        }
    }
}

#[test]
fn a_plan_is_measured_as_any_kept_set() {
    let tiny = Tiny::random(&mut Xoshiro128::new(4), SelfAttention::Excluded, 6, 1);
    let tally = tiny.replayed("optimal", 2);
    assert_eq!((tally.evicted, tally.eviction_calls, tally.peak_kept), (5, 5, 2));
    assert!(tally.heavy_possible > 0 && tally.heavy_hits <= tally.heavy_possible);
    assert!(tally.min_step_mass.is_some());
}

#[test]
fn too_long_a_stream_is_refused_with_the_numbers_and_the_way_out() {
    let rows: Rows = (0..400_usize).map(|step| Some(vec![0.0; step + 1])).collect();
    let trace = MemoryTrace::new("long", SelfAttention::Included).with_stream(0, "0", rows).expect("sound");
    let caches = caches_of(trace.info()).expect("no metadata");
    let options = Options { max_memory: 1 << 20, ..Options::default() };
    let [optimal, greedy] = ["optimal", "future-greedy"].map(|name| LanePlan::new(find(name).expect("there"), 8));
    let needed = planning_bytes(&trace, &caches[0], &optimal, &options);
    assert!(needed > 400 * 400 * 4, "{needed}");
    let refused = replay(&trace, &caches, &[optimal], &options, &NoObserver);
    let Err(Error::Usage(problem)) = refused else { panic!("{refused:?}") };
    assert!(problem.starts_with("policy optimal: planning 400 positions needs 3 MiB of memory"), "{problem}");
    assert!(problem.contains("the limit is 1 MiB") && problem.ends_with("future-greedy"), "{problem}");
    replay(&trace, &caches, &[greedy], &options, &NoObserver).expect("little memory is needed");
}
