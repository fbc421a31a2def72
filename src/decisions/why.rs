//! Why two lanes part: read from what the slots were judged by at the first step at which they do.
//!
//! Until then both hold the same positions. A lane with scores is asked how it ranks the other's victim; names
//! such as a flipped sign or a window that is off by one are what the ranks look like, and each is said with the
//! numbers behind it.

use crate::policy::parameter::{RECENT_WINDOW, SINKS, Value};
use crate::policy::rounding::Rounding;
use crate::position::Position;
use crate::replay::LanePlan;
use crate::word::Word;
use std::fmt;

/// Scores that differ by no more than this share of themselves are the same but for arithmetic.
const DRIFT: f64 = 0.05;

/// What keeps a position out of a policy's reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// Newest positions that are never evicted, where the policy says so.
    pub window: Option<usize>,
    /// First positions that are never evicted, where the policy says so.
    pub sinks: Option<usize>,
}

impl Protection {
    /// What a lane protects.
    pub fn of(lane: &LanePlan) -> Protection {
        let count = |value| if let Some(Value::Count(count)) = value { Some(count) } else { None };
        Protection { window: count(lane.values.get(&RECENT_WINDOW)), sinks: count(lane.values.get(&SINKS)) }
    }
}

/// The first victims that the lanes do not share, and how a lane scores both.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pair {
    /// What the lane asked evicts, and its score of it.
    pub own: (Position, f64),
    /// What the other lane evicts, and the asked lane's score of it.
    pub other: (Position, f64),
}

/// Why two lanes part. `by` is the lane whose scores or parameters tell: 0 or 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Why {
    /// They evict different numbers of positions: budgets or times differ.
    Numbers([usize; 2]),
    /// The other evicts one of the newest positions, which this one's window protects.
    Window {
        /// The lane whose window it is.
        by: usize,
        /// Its window.
        window: usize,
        /// The victim counts so many from the newest, which is 1.
        from_newest: usize,
    },
    /// The other leaves the newest position that this one's window leaves open, and evicts the next lowest.
    WiderWindow {
        /// The lane whose window it is.
        by: usize,
        /// Its window.
        window: usize,
    },
    /// The other evicts one of the first positions, which this one protects.
    Sink {
        /// The lane whose sinks they are.
        by: usize,
        /// How many it protects.
        sinks: usize,
    },
    /// Both victims score the same, and the lanes break the tie otherwise.
    Tie(usize, Pair),
    /// The other evicts what this one ranks highest; `exact` where the scores of all slots are each other's
    /// negatives.
    Sign {
        /// The lane whose scores tell.
        by: usize,
        /// The victims.
        pair: Pair,
        /// Whether both lanes' scores say so.
        exact: bool,
    },
    /// The scores differ by no more than a type of number tells apart.
    Rounding(usize, Pair, Rounding),
    /// Both lanes score the victims nearly alike; the numbers are the other lane's.
    Drift(usize, Pair, [f64; 2]),
    /// The scores differ; the numbers are the other lane's, where it has any.
    Scores(usize, Pair, Option<[f64; 2]>),
    /// Neither lane holds scores.
    Unknown,
}

/// What one lane tells of the step.
pub(super) struct Told<'a> {
    /// Every position held before the eviction, with its score; empty where the lane has none.
    pub judged: &'a [(Position, Option<f64>)],
    /// What it evicts and the other does not, ascending.
    pub only: &'a [Position],
    /// How many it evicts in all.
    pub evicted: usize,
    pub protection: Protection,
}

/// Why the lanes part; `held` is what both hold before they evict, ascending.
pub(super) fn why(held: &[Position], told: [Told<'_>; 2]) -> Why {
    if told[0].evicted != told[1].evicted {
        return Why::Numbers([told[0].evicted, told[1].evicted]);
    }
    let both = [(0, &told[0], &told[1]), (1, &told[1], &told[0])];
    let protected = both.iter().find_map(|(by, own, other)| protected(*by, held, own, other));
    let found = protected.or_else(|| both.iter().find_map(|(by, own, other)| by_scores(*by, own, other)));
    found.unwrap_or(Why::Unknown)
}

/// Whether the other evicts what this lane protects.
fn protected(by: usize, held: &[Position], own: &Told<'_>, other: &Told<'_>) -> Option<Why> {
    let victim = other.only.last()?;
    let from_newest = held.len() - held.binary_search(victim).ok()?;
    if let Some(window) = own.protection.window.filter(|window| from_newest <= *window) {
        return Some(Why::Window { by, window, from_newest });
    }
    let first = other.only.first()?;
    let sinks = own.protection.sinks.filter(|sinks| first.index() < *sinks)?;
    Some(Why::Sink { by, sinks })
}

/// What this lane's scores say of the other's victim.
fn by_scores(by: usize, own: &Told<'_>, other: &Told<'_>) -> Option<Why> {
    let pair = pair(own, other)?;
    let ((_, own_score), (_, other_score)) = (pair.own, pair.other);
    if own_score == other_score {
        // A tie of this lane alone is decided by the other's scores.
        let other_ties =
            other.judged.is_empty() || self::pair(other, own).is_none_or(|pair| pair.own.1 == pair.other.1);
        return other_ties.then_some(Why::Tie(by, pair));
    }
    let exact = are_negatives(own.judged, other.judged);
    if exact || is_highest(own, pair) {
        return Some(Why::Sign { by, pair, exact });
    }
    let others = others(pair, other);
    if let Some(others) = others.filter(|others| rank_otherwise_by_little(pair, *others)) {
        return Some(Why::Drift(by, pair, others));
    }
    if let Some(window) = own.protection.window.filter(|_| is_wider_window(own, pair)) {
        return Some(Why::WiderWindow { by, window });
    }
    let same_in = |to: &Rounding| to.round(own_score) == to.round(other_score);
    let blurred = [Rounding::F32, Rounding::F16, Rounding::Bf16].into_iter().find(same_in);
    Some(blurred.map_or(Why::Scores(by, pair, others), |to| Why::Rounding(by, pair, to)))
}

fn pair(own: &Told<'_>, other: &Told<'_>) -> Option<Pair> {
    let scored = |position: &Position| Some((*position, score(own, *position)?));
    Some(Pair { own: scored(own.only.first()?)?, other: scored(other.only.first()?)? })
}

/// What a lane scores a position, if it holds one.
fn score(told: &Told<'_>, position: Position) -> Option<f64> {
    let at = told.judged.binary_search_by_key(&position, |(position, _)| *position).ok()?;
    told.judged[at].1
}

/// The scored positions that a lane may evict.
fn candidates<'a>(told: &'a Told<'_>) -> impl DoubleEndedIterator<Item = (Position, f64)> + 'a {
    let end = told.judged.len().saturating_sub(told.protection.window.unwrap_or(0));
    let sinks = told.protection.sinks.unwrap_or(0);
    let open = told.judged[..end].iter().filter(move |(position, _)| position.index() >= sinks);
    open.filter_map(|(position, score)| Some((*position, (*score)?)))
}

/// Whether the other's victim is what this lane would keep longest.
fn is_highest(own: &Told<'_>, pair: Pair) -> bool {
    let scores = || candidates(own).map(|(_, score)| score);
    scores().count() > 2 && scores().all(|score| score <= pair.other.1)
}

/// What the other lane scores the victims of a pair, in its order.
fn others(pair: Pair, other: &Told<'_>) -> Option<[f64; 2]> {
    Some([score(other, pair.own.0)?, score(other, pair.other.0)?])
}

/// Whether both lanes' scores of the victims differ by no more than arithmetic makes them, and yet rank otherwise.
fn rank_otherwise_by_little(pair: Pair, others: [f64; 2]) -> bool {
    let alike = |one: f64, other: f64| (one - other).abs() <= DRIFT * one.abs().max(other.abs());
    alike(pair.own.1, others[0]) && alike(pair.other.1, others[1]) && others[1] <= others[0]
}

fn are_negatives(one: &[(Position, Option<f64>)], other: &[(Position, Option<f64>)]) -> bool {
    let mut some = false;
    let all = one.iter().zip(other).all(|((_, one), (_, other))| {
        some |= one.is_some_and(|score| score != 0.0);
        *one == other.map(|score| -score)
    });
    all && some && one.len() == other.len()
}

/// Whether a window of one more would explain it.
fn is_wider_window(own: &Told<'_>, pair: Pair) -> bool {
    let is_newest_open = candidates(own).next_back().is_some_and(|(position, _)| position == pair.own.0);
    let others = || candidates(own).filter(|(position, _)| *position != pair.own.0);
    let next_lowest = others().reduce(|least, other| if other.1 < least.1 { other } else { least });
    is_newest_open && next_lowest == Some(pair.other)
}

impl Why {
    /// The kind of reason, in a word or two: reports count by it.
    pub fn kind(&self) -> &'static str {
        match self {
            Why::Numbers(_) => "number of evictions",
            Why::Window { .. } | Why::WiderWindow { .. } => "window",
            Why::Sink { .. } => "sinks",
            Why::Tie(..) => "tie",
            Why::Sign { .. } => "sign",
            Why::Rounding(..) | Why::Drift(..) => "rounding",
            Why::Scores(..) => "scores",
            Why::Unknown => "unknown",
        }
    }
}

/// What the lanes are called.
const NAMES: [&str; 2] = ["A", "B"];

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Numbers([one, other]) => write!(f, "A evicts {one}, B {other}: budgets or times differ"),
            Why::Window { by, window, from_newest } => {
                let [own, other] = names(*by);
                write!(f, "{other} evicts the newest but {}, as a window of {0} or less would; ", from_newest - 1)?;
                write!(f, "{own}'s window of {window} protects it")
            }
            Why::WiderWindow { by, window } => {
                let [own, other] = names(*by);
                write!(
                    f,
                    "{other} leaves the newest that {own}'s window of {window} leaves open, and evicts the next "
                )?;
                write!(f, "lowest: a window of {} would", window + 1)
            }
            Why::Sink { by, sinks } => {
                let [own, other] = names(*by);
                write!(f, "{other} evicts one of the {sinks} first positions, which {own} protects")
            }
            Why::Tie(by, pair) => {
                let [own, other] = names(*by);
                let end = if pair.own.0 < pair.other.0 { ["lower", "higher"] } else { ["higher", "lower"] };
                write!(f, "a tie at {}: {own} evicts the {} position, {other} the {}", pair.own.1, end[0], end[1])
            }
            Why::Sign { by, pair, exact } => {
                let [own, other] = names(*by);
                write!(f, "{other} evicts what {own} ranks highest ({}): ", Scored(*pair))?;
                f.write_str(if *exact { "the scores have opposite signs" } else { "a flipped sign would" })
            }
            Why::Rounding(by, pair, to) => {
                write!(f, "{} scores {}: the same in {}", names(*by)[0], Scored(*pair), to.word())
            }
            Why::Drift(by, pair, [one, two]) => {
                let [own, other] = names(*by);
                write!(f, "{own} scores {}; {other} nearly the same: {one}, {two}", Scored(*pair))
            }
            Why::Scores(by, pair, None) => write!(f, "{} scores {}", names(*by)[0], Scored(*pair)),
            Why::Scores(by, pair, Some([one, two])) => {
                let [own, other] = names(*by);
                write!(f, "{own} scores {}; {other} {one}, {two}", Scored(*pair))
            }
            Why::Unknown => f.write_str("neither says what it judges by"),
        }
    }
}

/// The lane that tells, and the other.
fn names(by: usize) -> [&'static str; 2] {
    [NAMES[by], NAMES[1 - by]]
}

/// Both victims with the scores that one lane has for them.
struct Scored(Pair);

impl fmt::Display for Scored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pair { own, other } = self.0;
        write!(f, "{} at {}, {} at {}", own.0, own.1, other.0, other.1)
    }
}
