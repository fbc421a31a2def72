//! Mistakes planted in a copy of h2o are found and named at the first step at which they show.

use crate::common::lanes::{lane, trace};
use crate::rows;
use kvsim::decisions::diff::{Parting, of_files, of_lanes};
use kvsim::decisions::{Decisions, Header, LaneHeader, Recorder, Why};
use kvsim::policy::table::{Make, PolicyEntry};
use kvsim::policy::{Admission, Observation, Overflow, Policy};
use kvsim::position::{Position, Slot};
use kvsim::replay::{LanePlan, Options, caches_of, replay};
use kvsim::slots::SlotVec;
use kvsim::trace::SelfAttention::Included;
use kvsim::trace::Source;
use kvsim::trace::memory::{MemoryTrace, Rows};

const BUDGET: usize = 12;
const WINDOW: usize = 4;

/// A copy of h2o, slow and obvious, with its mistake.
struct Copied {
    sign: f64,
    window: usize,
    ties_to_higher: bool,
    sums: SlotVec<f64>,
}

impl Policy for Copied {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.sums.push(0.0);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        let signed = seen.weights.iter().map(|weight| self.sign * f64::from(*weight));
        self.sums.iter_mut().zip(signed).for_each(|(sum, weight)| *sum += weight);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        assert_eq!(overflow.excess, 1);
        let open = overflow.kept.len() - self.window;
        let least = self.sums[..open].iter().copied().fold(f64::INFINITY, f64::min);
        let mut ties = (0..open).filter(|slot| self.sums[*slot] == least);
        let victim = if self.ties_to_higher { ties.next_back() } else { ties.next() };
        victims.push(Slot(victim.expect("one is the least")));
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.sums.remove(slots);
    }

    fn probe(&self, slot: Slot) -> Option<f64> {
        Some(self.sums[slot.0])
    }
}

const fn copied(sign: f64, window: usize, ties_to_higher: bool) -> Copied {
    Copied { sign, window, ties_to_higher, sums: SlotVec::new() }
}

const fn entry(make: Make) -> PolicyEntry {
    PolicyEntry::new("copy", "h2o with a planted mistake", make)
}

static SOUND: PolicyEntry = entry(Make::Policy(|_| Box::new(copied(1.0, WINDOW, false))));
static FLIPPED: PolicyEntry = entry(Make::Policy(|_| Box::new(copied(-1.0, WINDOW, false))));
static OTHER_TIE: PolicyEntry = entry(Make::Policy(|_| Box::new(copied(1.0, WINDOW, true))));
static NARROWER: PolicyEntry = entry(Make::Policy(|_| Box::new(copied(1.0, WINDOW - 1, false))));
static WIDER: PolicyEntry = entry(Make::Policy(|_| Box::new(copied(1.0, WINDOW + 1, false))));

fn h2o() -> LanePlan {
    lane("h2o", BUDGET, &[("recent-window", WINDOW)])
}

/// Where h2o and a lane part.
fn parting(rows: &Rows, other: LanePlan) -> Option<Parting> {
    let source = trace(Included, rows);
    let caches = caches_of(source.info()).expect("sound");
    let diff = of_lanes(&source, &caches, [h2o(), other], &Options::default()).expect("a sound replay");
    diff.caches[0].parting.clone()
}

/// Where h2o and the decisions that a copy left in a file part.
fn parting_from_file(rows: &Rows, entry: &'static PolicyEntry) -> Option<Parting> {
    parting(rows, LanePlan::played(decisions(&trace(Included, rows), entry).playback(0)))
}

fn decisions(source: &MemoryTrace, entry: &'static PolicyEntry) -> Decisions {
    let (lanes, caches) = ([LanePlan::new(entry, BUDGET)], caches_of(source.info()).expect("sound"));
    let header = Header::of(source.info(), &caches, source.info().positions, vec![LaneHeader::of(&lanes[0], &[])]);
    let recorder = Recorder::new(Vec::new(), &header, &[source.info().positions]).expect("memory takes all");
    replay(source, &caches, &lanes, &Options::default(), &recorder).expect("a sound replay");
    Decisions::read_from("copy", &recorder.finish().expect("memory takes all")[..]).expect("sound")
}

/// The first step after which two copies hold different positions, the slow way.
fn first_difference(rows: &Rows, entry: &'static PolicyEntry) -> Option<Position> {
    let source = trace(Included, rows);
    let [one, other] = [&SOUND, entry].map(|entry| decisions(&source, entry).left.remove(0).remove(0));
    let at = one.iter().zip(&other).position(|(one, other)| one != other)?;
    Some(one[at].1.min(other[at].1))
}

#[test]
fn a_sound_copy_never_parts() {
    for seed in 1..20 {
        assert_eq!(parting(&rows(seed, 60), LanePlan::new(&SOUND, BUDGET)), None);
        assert_eq!(parting_from_file(&rows(seed, 60), &SOUND), None);
    }
}

/// Each mistake is found at its first step in every trace, and named, with the copy's scores and without.
#[track_caller]
fn finds(entry: &'static PolicyEntry, is_it: impl Fn(Why, bool) -> bool) {
    for seed in 1..20 {
        let rows = rows(seed, 60);
        let wanted = first_difference(&rows, entry).expect("it shows");
        for (found, with_scores) in
            [(parting(&rows, LanePlan::new(entry, BUDGET)), true), (parting_from_file(&rows, entry), false)]
        {
            let found = found.expect("they part");
            assert_eq!(found.step, wanted, "seed {seed}");
            assert!(is_it(found.why, with_scores), "seed {seed}, scores {with_scores}: {}", found.why);
        }
    }
}

#[test]
fn a_flipped_sign_is_named() {
    finds(&FLIPPED, |why, with_scores| matches!(why, Why::Sign { by: 0, exact, .. } if exact == with_scores));
}

#[test]
fn a_wrong_tie_is_named() {
    // Every token attends to itself alone for a while, so that all sums are 1.
    let rows: Rows = rows(4, 60).into_iter().enumerate().map(|(at, row)| row.map(|row| alone(at, row))).collect();
    let wanted = first_difference(&rows, &OTHER_TIE).expect("it shows");
    assert_eq!(wanted, Position(BUDGET as u32));
    for found in [parting(&rows, LanePlan::new(&OTHER_TIE, BUDGET)), parting_from_file(&rows, &OTHER_TIE)] {
        let found = found.expect("they part");
        assert_eq!(found.step, wanted);
        assert!(matches!(found.why, Why::Tie(0, pair) if pair.own.0 < pair.other.0), "{}", found.why);
        assert_eq!(found.why.to_string(), "a tie at 1: A evicts the lower position, B the higher");
    }
}

/// A row of the first 30 with all its weight on its own token.
fn alone(at: usize, row: Vec<f32>) -> Vec<f32> {
    let own = |column: usize| if column == at { 1.0 } else { 0.0 };
    if at < 30 { (0..row.len()).map(own).collect() } else { row }
}

#[test]
fn a_window_that_is_one_too_small_is_named() {
    finds(&NARROWER, |why, _| why == Why::Window { by: 0, window: WINDOW, from_newest: WINDOW });
}

#[test]
fn a_window_that_is_one_too_large_is_named() {
    finds(&WIDER, |why, _| why == Why::WiderWindow { by: 0, window: WINDOW });
}

#[test]
fn other_settings_are_told_by_their_own_numbers() {
    let rows = rows(3, 60);
    let wider = parting(&rows, lane("h2o", BUDGET, &[("recent-window", WINDOW + 1)])).expect("they part");
    assert_eq!(wider.why, Why::Window { by: 1, window: WINDOW + 1, from_newest: WINDOW + 1 });
    let larger = parting(&rows, lane("h2o", BUDGET + 2, &[("recent-window", WINDOW)])).expect("they part");
    assert_eq!((larger.step, larger.why), (Position(BUDGET as u32), Why::Numbers([1, 0])));
}

#[test]
fn two_files_part_where_the_lanes_do() {
    let source = trace(Included, &rows(5, 60));
    let [one, other] = [&SOUND, &NARROWER].map(|entry| decisions(&source, entry));
    let diff = of_files([(&one, 0), (&other, 0)]).expect("about the same caches");
    let found = diff.caches[0].parting.clone().expect("they part");
    assert_eq!(Some(found.step), first_difference(&rows(5, 60), &NARROWER));
    assert_eq!(found.why, Why::Unknown);
    let caches = caches_of(source.info()).expect("sound");
    let lanes = [LanePlan::new(&SOUND, BUDGET), LanePlan::new(&NARROWER, BUDGET)];
    let on_trace = of_lanes(&source, &caches, lanes, &Options::default()).expect("a sound replay");
    assert_eq!(diff.caches[0].overlap, on_trace.caches[0].overlap);
    assert_eq!(diff.curve, on_trace.curve);
}
