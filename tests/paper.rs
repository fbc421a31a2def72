//! The figures of the paper's algorithm, of what lies between the policies, and of the bounds, on
//! recorded attention and on the canonical trace.
//!
//! The recording is not part of the repository: tests of it run where `KVSIM_SHARED` names the
//! folder that holds `traces/smollm2-prose-2048.safetensors`.

use kvsim::meter::METERS;
use kvsim::policy::parameter::PARAMETERS;
use kvsim::policy::table::find;
use kvsim::replay::{CachePlan, LanePlan, NoObserver, Options, Tally, caches_of, replay};
use kvsim::trace::options::ReadOptions;
use kvsim::trace::{Source, formats};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The recording of 2048 rows, or `None` where it is not at hand.
fn recording() -> Option<Box<dyn Source>> {
    let Some(shared) = std::env::var_os("KVSIM_SHARED") else {
        eprintln!("skipped: KVSIM_SHARED does not name the folder of the recorded traces");
        return None;
    };
    let path = PathBuf::from(shared).join("traces/smollm2-prose-2048.safetensors");
    Some(formats::open(path.as_os_str(), &ReadOptions::default()).expect("the recording opens"))
}

/// A lane by name, with parameters as they are written on the command line.
fn lane(policy: &str, budget: usize, parameters: &[(&str, &str)]) -> LanePlan {
    let mut plan = LanePlan::new(find(policy).expect("a policy of the table"), budget);
    for (name, text) in parameters {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == *name).expect("a parameter");
        assert!(plan.entry.takes(parameter), "{policy} takes {name}");
        plan.values.set(parameter, parameter.parse(text).expect("a sound value"));
    }
    plan
}

fn caches(source: &dyn Source, labels: &[&str]) -> Vec<CachePlan> {
    let mut caches = caches_of(source.info()).expect("sound metadata");
    caches.retain(|cache| labels.contains(&cache.label.to_string().as_str()));
    assert_eq!(caches.len(), labels.len(), "every stream is there");
    caches
}

fn tallies(source: &dyn Source, stream: &str, lanes: &[LanePlan]) -> Vec<Tally> {
    let caches = caches(source, &[stream]);
    let outcomes = replay(source, &caches, lanes, &Options::default(), &NoObserver).expect("a sound replay");
    outcomes.into_iter().next().expect("one cache").tallies
}

fn mass(tally: &Tally) -> f64 {
    tally.real("retained_mass_sum") / tally.count("rows_measured") as f64
}

#[track_caller]
fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-6, "{what}: {found:.6} instead of {expected:.6}");
}

/// Stream and budget, then one figure for each of some lanes.
type Figures<const N: usize> = [(&'static str, usize, [f64; N]); 4];

fn assert_masses<const N: usize>(lanes: [(&str, &[(&str, &str)]); N], figures: Figures<N>) {
    let Some(source) = recording() else { return };
    for (stream, budget, expected) in figures {
        let plans = lanes.map(|(policy, parameters)| lane(policy, budget, parameters));
        let tallies = tallies(&*source, stream, &plans);
        for ((tally, expected), (policy, parameters)) in tallies.iter().zip(expected).zip(&lanes) {
            assert_close(mass(tally), expected, &format!("{policy} {parameters:?} on {stream} at {budget}"));
        }
    }
}

#[test]
fn the_papers_algorithm_and_its_readings_retain_what_they_should() {
    const PAPER: &str = "scissorhands-paper";
    assert_masses(
        [
            (PAPER, &[]),
            (PAPER, &[("drop", "1")]),
            (PAPER, &[("drop", "1"), ("history-window", "100")]),
            (PAPER, &[("count", "high")]),
            (PAPER, &[("count", "fraction")]),
            (PAPER, &[("threshold", "kept")]),
        ],
        [
            ("15.mean", 128, [0.834485, 0.864765, 0.870299, 0.781101, 0.840802, 0.822906]),
            ("15.mean", 256, [0.892671, 0.916614, 0.932628, 0.867282, 0.903112, 0.884495]),
            ("16.6", 128, [0.855157, 0.908060, 0.919262, 0.656298, 0.875424, 0.825682]),
            ("16.6", 256, [0.935852, 0.967625, 0.976951, 0.825038, 0.954719, 0.924143]),
        ],
    );
}

#[test]
fn dropping_half_saw_tooths_and_dropping_one_does_not() {
    let Some(source) = recording() else { return };
    for (budget, calls, evicted, by_half, by_one) in [(128, 30, 1920, 94.50, 124.03), (256, 14, 1792, 184.50, 240.06)] {
        let plans = [&[][..], &[("drop", "1")]].map(|parameters| lane("scissorhands-paper", budget, parameters));
        let found = tallies(&*source, "15.mean", &plans);
        assert_eq!((found[0].count("eviction_calls"), found[0].count("evicted")), (calls, evicted), "budget {budget}");
        for (tally, expected) in found.iter().zip([by_half, by_one]) {
            let mean_kept = tally.figure("mean_kept").expect("steps passed");
            assert!((mean_kept - expected).abs() <= 0.005, "{mean_kept:.4} instead of {expected:.2}");
            assert_eq!(tally.count("peak_kept"), budget as u64);
        }
    }
}

#[test]
fn decay_meets_h2o_scissorhands_and_tova_at_its_ends() {
    let source = formats::open(OsStr::new("decode-4096"), &ReadOptions::default()).expect("built in");
    let twins = [
        (lane("h2o", 512, &[]), lane("decay", 512, &[("gamma", "1")])),
        (lane("scissorhands", 512, &[]), lane("decay", 512, &[("gamma", "1"), ("signal", "vote")])),
        (lane("tova", 512, &[]), lane("decay", 512, &[("gamma", "0"), ("recent-window", "1")])),
    ];
    for (policy, decay) in twins {
        let found = tallies(&*source, "0.0", &[policy.clone(), decay]);
        let comparable = |tally: &Tally| -> Vec<_> {
            // Windows are parameters of the one and not of the other.
            let theirs = ["state_bytes", "window_sum", "windowed_caches"];
            let sums = METERS.iter().flat_map(|entry| entry.sums).filter(|sum| !theirs.contains(&sum.name));
            sums.map(|sum| (sum.name, tally.number(sum.name))).collect()
        };
        assert_eq!(comparable(&found[0]), comparable(&found[1]), "decay instead of {}", policy.entry.name);
    }
}

#[test]
fn the_bounds_that_know_the_future_retain_what_they_should() {
    assert_masses(
        [("optimal", &[]), ("future-greedy", &[]), ("oracle", &[])],
        [
            ("15.mean", 128, [0.888378, 0.849484, 0.910900]),
            ("15.mean", 256, [0.943390, 0.929417, 0.957143]),
            ("16.6", 128, [0.945471, 0.932953, 0.958937]),
            ("16.6", 256, [0.983653, 0.979916, 0.988163]),
        ],
    );
}

#[test]
fn the_optimum_of_the_canonical_trace_is_what_it_should_be() {
    let source = formats::open(OsStr::new("decode-4096"), &ReadOptions::default()).expect("built in");
    let expected = [(256, 0.961786), (512, 0.969244), (1024, 0.979828)];
    let lanes: Vec<LanePlan> =
        expected.iter().flat_map(|(budget, _)| ["optimal", "oracle"].map(|bound| lane(bound, *budget, &[]))).collect();
    let found = tallies(&*source, "0.0", &lanes);
    for (pair, (budget, expected)) in found.chunks(2).zip(expected) {
        assert_close(mass(&pair[0]), expected, &format!("optimal at {budget}"));
        assert_close(mass(&pair[1]), expected, &format!("oracle at {budget}"));
    }
}

#[test]
fn layers_that_share_importance_retain_what_they_should() {
    let Some(source) = recording() else { return };
    let caches = caches(&*source, &["3.mean", "15.mean"]);
    for (budget, alpha, expected) in [
        (128, "0", [0.909508, 0.876605]),
        (128, "0.5", [0.908951, 0.865322]),
        (128, "0.9", [0.907372, 0.863783]),
        (256, "0", [0.949005, 0.934217]),
        (256, "0.5", [0.948728, 0.928172]),
        (256, "0.9", [0.947481, 0.927560]),
    ] {
        let plan = lane("scissorhands-cross-layer", budget, &[("alpha", alpha)]);
        let outcomes = replay(&*source, &caches, &[plan], &Options::default(), &NoObserver).expect("sound");
        for (outcome, expected) in outcomes.iter().zip(expected) {
            let what = format!("alpha {alpha} at {budget} on {}", outcome.cache.label);
            assert_close(mass(&outcome.tallies[0]), expected, &what);
        }
    }
}
