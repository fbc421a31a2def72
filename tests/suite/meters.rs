//! Meters: the reference has a twin of each, what was not asked for cannot be read, and two figures on
//! record; one that is joint over the caches of a lane, and one from outside the crate.

use crate::as_meters::{WITHOUT_TWIN, all_meters};
use crate::common::assert_near;
use crate::common::binary::{Csv, kvsim};
use crate::common::lanes::{canonical, lane, logged, open, rows_of, tallies, tallies_of_one, trace};
use crate::reference::meters::{METERS as TWINS, Seen};
use kvsim::meter::{
    Counted, Figure, JointRows, KeptRow, LaneEnd, METERS, Meter, MeterEntry, MeterPlan, Number, Reading, RowCounts,
    Sum, chosen,
};
use kvsim::needs::Needs;
use kvsim::replay::{Options, Tally};
use kvsim::trace::SelfAttention::{Excluded, Included};
use kvsim::trace::memory::MemoryTrace;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn with_meters(list: &str) -> Options {
    Options { meters: chosen(list).expect("a sound list"), ..Options::default() }
}

#[test]
fn every_meter_has_a_twin_that_counts_all_its_sums() {
    // What looks at values has its twin in the slow replay of tests/qkv.
    let of_rows = || METERS.iter().filter(|entry| !entry.needs.has_any(Needs::OF_TRACES));
    let names: Vec<&str> = of_rows().map(|entry| entry.name).collect();
    let twins: Vec<&str> = TWINS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, twins, "each meter needs a twin in tests/reference/meters.rs");
    for (entry, (_, twin)) in of_rows().zip(TWINS) {
        let counted: Vec<&str> = twin(&Seen::default()).into_iter().map(|(sum, _)| sum).collect();
        let sums: Vec<&str> = entry.sums.iter().map(|sum| sum.name).filter(|sum| !WITHOUT_TWIN.contains(sum)).collect();
        assert_eq!(counted, sums, "{}: its twin counts other sums", entry.name);
    }
}

#[test]
fn every_figure_is_read_from_sums_that_there_are() {
    let sums: Vec<&str> = METERS.iter().flat_map(|entry| entry.sums).map(|sum| sum.name).collect();
    for figure in METERS.iter().flat_map(|entry| entry.figures) {
        let needed: Vec<&str> = match figure.reading {
            Reading::Value(sum) => vec![sum],
            Reading::Ratio(part, whole) => [&[part], whole].concat(),
        };
        assert!(needed.iter().all(|sum| sums.contains(sum)), "{}: {needed:?}", figure.name);
    }
    let mut names: Vec<&str> = METERS.iter().flat_map(|entry| entry.figures).map(|figure| figure.name).collect();
    names.extend(&sums);
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "no two sums or figures share a name");
}

#[test]
fn kept_entropy_is_the_one_on_record() {
    let lanes = [lane("scissorhands", 256, &[]), lane("streaming-llm", 256, &[])];
    let found = tallies(&canonical(), &lanes, &with_meters("kept_entropy")).remove(0);
    for (tally, wanted) in found.iter().zip([3.646297, 3.992706]) {
        assert_near(tally.figure("kept_entropy").expect("it was chosen"), wanted, "kept entropy");
    }
}

#[test]
fn sink_mass_counts_what_is_kept_of_the_first_positions() {
    let rows = rows_of(&[&[1.0], &[0.5, 0.5], &[0.25, 0.5, 0.25], &[0.125, 0.25, 0.125, 0.5]]);
    let lanes = [lane("full", 0, &[]), lane("sliding-window", 2, &[])];
    let sinks = |list: &str| -> Vec<f64> {
        let found = tallies(&trace(Excluded, &rows), &lanes, &with_meters(list)).remove(0);
        found.iter().map(|tally| tally.figure("sink_mass").expect("it was chosen")).collect()
    };
    // full: 1, 1, 0.75, 0.375 of two sinks; the window of two has lost 0 in row 3 and both in row 4.
    assert_eq!(sinks("sink_mass:sinks=2"), [(1.0 + 1.0 + 0.75 + 0.375) / 4.0, (1.0 + 1.0 + 0.5) / 4.0]);
    assert_eq!(sinks("sink_mass")[0], (1.0 + 1.0 + 1.0 + 1.0) / 4.0, "four sinks are all of these rows");
}

#[test]
fn a_meter_that_was_not_chosen_has_no_figure() {
    let lanes = [lane("tova", 256, &[]), lane("oracle", 256, &[])];
    let default = tallies_of_one(&canonical(), &lanes);
    assert_eq!(default[0].figure("kept_entropy"), None);
    assert_eq!(default[0].number("sink_mass_sum"), None);
    assert!(default[1].figure("retained_mass").is_some());
    assert_eq!((default[1].figure("heavy_recall"), default[1].number("kept_sum")), (None, None), "no kept set");
    let some = tallies(&canonical(), &lanes, &with_meters("peaks")).remove(0);
    assert_eq!(some[0].figure("retained_mass"), None);
    assert_eq!(some[0].figure("peak_miss_rate"), default[0].figure("peak_miss_rate"));
}

#[test]
fn meters_on_weights_agree_for_policies_that_look_at_none() {
    // streaming-llm at 100 % holds what full and h2o hold; neither of the first two gathers weights.
    let lanes = [lane("full", 0, &[]), lane("streaming-llm", 4096, &[]), lane("h2o", 4096, &[])];
    let found = tallies(&canonical(), &lanes, &with_meters("all")).remove(0);
    for tally in &found[1..] {
        for figure in ["kept_entropy", "sink_mass", "retained_mass"] {
            assert_eq!(tally.figure(figure), found[0].figure(figure), "{figure}");
        }
    }
}

/// Asks for weights or does not, and notes what it finds.
struct Curious;

static WEIGHTS_SEEN: AtomicUsize = AtomicUsize::new(0);

impl Meter for Curious {
    fn row(&mut self, row: &KeptRow<'_>) {
        assert_eq!(row.row.map(<[f32]>::len), Some(row.counts.step.index()), "the whole row was asked for");
        WEIGHTS_SEEN.fetch_add(row.weights.map_or(0, <[f32]>::len), Relaxed);
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::Sums(Vec::new())
    }
}

#[test]
fn what_a_meter_did_not_ask_for_is_not_there_though_others_asked_for_it() {
    static CURIOUS: MeterEntry =
        MeterEntry::new("curious", "looks around", &[], &[], |_| Box::new(Curious)).needs(Needs::WHOLE_ROWS);
    let meters = [all_meters(), vec![MeterPlan::new(&CURIOUS)]].concat();
    let options = Options { meters, steps: Some(300), ..Options::default() };
    tallies(&canonical(), &[lane("h2o", 64, &[])], &options);
    assert_eq!(WEIGHTS_SEEN.load(Relaxed), 0);
}

/// Lost mass, added over all caches of a lane before it is squared.
#[derive(Default)]
struct LostJointly {
    lost: JointRows,
}

impl Meter for LostJointly {
    fn rows(&mut self, rows: &[RowCounts]) {
        for row in rows {
            self.lost.add(row.step, 0, row.total - row.retained);
            if row.after_eviction {
                self.lost.count_from(row.step);
            }
        }
    }

    fn finish(self: Box<Self>, _end: &LaneEnd) -> Counted {
        Counted::Joint(self.lost)
    }
}

static LOST_JOINTLY: MeterEntry = MeterEntry::new(
    "lost_jointly",
    "the square of the mass that all caches lose of a row",
    &[
        Sum::real("lost_jointly_sum", "mass squared", "sum behind lost_jointly"),
        Sum::count("lost_jointly_rows", "rows", "rows behind lost_jointly"),
    ],
    &[Figure::new(
        "lost_jointly",
        "mass squared",
        Reading::Ratio("lost_jointly_sum", &["lost_jointly_rows"]),
        "mean over rows of the square of what all caches lose",
    )],
    |_| Box::new(LostJointly { lost: JointRows::new(1) }),
)
.joint(|rows| {
    let squares: f64 = rows.counted().map(|row| row[0] * row[0]).sum();
    vec![Some(Number::Real(squares)), Some(Number::Count(rows.counted().count() as u64))]
});

#[test]
fn a_joint_meter_adds_over_caches_before_it_squares() {
    let source = open("traces/smollm2-prose-384.safetensors");
    let lanes = [lane("h2o", 64, &[])];
    let options = Options { meters: vec![MeterPlan::new(&LOST_JOINTLY)], ..Options::default() };
    let of_caches = tallies(&*source, &lanes, &options);
    let mut joint = Tally::default();
    of_caches.iter().for_each(|tallies| joint.merge(&tallies[0]));
    // The same from the records of single steps, stream by stream.
    let mut lost = vec![0.0; 384];
    for stream in 0..of_caches.len() {
        for (step, mass) in lost_by_step(&*source, stream, &lanes) {
            lost[step] += mass;
        }
    }
    // Row 64 is measured before the first eviction.
    let wanted: f64 = lost[65..].iter().map(|lost| lost * lost).sum();
    assert_eq!(joint.count("lost_jointly_rows"), 384 - 65);
    assert!((joint.real("lost_jointly_sum") - wanted).abs() < 1e-6, "{} {wanted}", joint.real("lost_jointly_sum"));
    assert_eq!(joint.figure("lost_jointly"), Some(joint.real("lost_jointly_sum") / 319.0));
    let apart: f64 = of_caches.iter().map(|tallies| tallies[0].real("lost_jointly_sum")).sum();
    assert!(joint.real("lost_jointly_sum") > 10.0 * apart, "squares of parts say something else: {apart}");
    let on = |threads| format!("{:?}", tallies(&*source, &lanes, &Options { threads, ..options.clone() }));
    assert_eq!(on(1), on(3));
}

fn lost_by_step(
    source: &dyn kvsim::trace::Source,
    stream: usize,
    lanes: &[kvsim::replay::LanePlan],
) -> Vec<(usize, f64)> {
    let cache = kvsim::replay::caches_of(source.info()).expect("sound metadata").swap_remove(stream);
    let log = crate::common::lanes::StepLog::default();
    kvsim::replay::replay(source, &[cache], lanes, &Options::default(), &log).expect("a sound replay");
    let records = log.records().remove(0);
    let lost = |tally: &Tally| tally.real("row_mass_sum") - tally.real("retained_mass_sum");
    records.iter().map(|record| (record.step.index(), lost(record.measured.as_ref().expect("measured")))).collect()
}

#[test]
fn steps_are_recorded_by_the_meters_that_run() {
    let rows = rows_of(&[&[1.0], &[0.5, 0.5], &[0.25, 0.5, 0.25]]);
    let (_, records) = logged(&trace(Included, &rows), &[lane("full", 0, &[])], &with_meters("sink_mass")).remove(0);
    let first = records[1].measured.as_ref().expect("measured");
    assert_eq!((first.real("sink_mass_sum"), first.number("retained_mass_sum")), (1.0, None));
    assert_eq!((first.count("rows_measured"), first.number("budget_sum")), (1, None), "of lanes, not of steps");
}

#[test]
fn the_command_line_counts_what_it_is_asked_for() {
    let args = ["replay", "--policy", "h2o,oracle", "--budget", "64", "--steps", "300", "--format", "csv"];
    let csv = |meters: &[&str]| Csv::parse(&kvsim(&[&args[..], meters].concat()).report());
    let default = csv(&[]);
    assert_eq!(default.column("kept_entropy"), " ");
    let chosen = csv(&["--meters", "default,kept_entropy"]);
    assert_eq!(chosen.column("retained_mass"), default.column("retained_mass"));
    assert!(chosen.number(0, "kept_entropy") > 0.0 && chosen.text(1, "kept_entropy").is_empty());
    assert_eq!(csv(&["--meters", "sink_mass"]).column("retained_mass"), " ");
    kvsim(&[&args[..], &["--meters", "entropy"]].concat())
        .refuses(2, &["--meters: unknown meter \"entropy\"", "kept_entropy"]);
}

#[test]
fn caches_of_unequal_length_merge_as_one() {
    let trace = MemoryTrace::new("unequal", Included)
        .with_stream(0, "0", rows_of(&[&[1.0], &[0.5, 0.5]]))
        .and_then(|trace| trace.with_stream(1, "0", rows_of(&[&[1.0]])))
        .expect("rows of the right length");
    let all = tallies(&trace, &[lane("full", 0, &[])], &with_meters("all"));
    let mut sum = all[0][0].clone();
    sum.merge(&all[1][0]);
    assert_eq!((sum.count("rows_measured"), sum.count("peak_kept"), sum.figure("retained_mass")), (3, 2, Some(1.0)));
    assert_eq!(sum.number("min_step_mass"), Some(Number::Real(1.0)));
}
