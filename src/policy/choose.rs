//! How victims are picked by their scores: the lowest, ties to the lower position.

use super::Overflow;
use crate::kernels::{self, Score};
use crate::position::{Position, Slot};

/// Appends the `excess` slots with the lowest scores among the first `candidates`, ascending.
///
/// `scores` has one value per slot, none of them NaN. With too few candidates it appends what
/// there is, which the engine refuses.
pub fn choose_lowest<T: Score>(scores: &[T], candidates: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
    let scores = &scores[..candidates];
    if overflow.excess == 1 {
        victims.extend(kernels::lowest(scores).map(Slot));
        return;
    }
    let mut order: Vec<usize> = (0..candidates).collect();
    if overflow.excess < candidates {
        let by_score = |a: &usize, b: &usize| scores[*a].partial_cmp(&scores[*b]).expect("no score is NaN");
        order.select_nth_unstable_by(overflow.excess, |a, b| by_score(a, b).then(a.cmp(b)));
        order.truncate(overflow.excess);
    }
    order.sort_unstable();
    victims.extend(order.into_iter().map(Slot));
}

/// As [`choose_lowest`], of the slots from `first` on.
pub(super) fn choose_lowest_from(
    first: usize,
    ranks: &[f64],
    candidates: usize,
    overflow: Overflow<'_>,
    victims: &mut Vec<Slot>,
) {
    let before = victims.len();
    choose_lowest(&ranks[first..], candidates.saturating_sub(first), overflow, victims);
    victims[before..].iter_mut().for_each(|slot| slot.0 += first);
}

/// Appends the `excess` oldest slots from `first` on.
pub fn choose_oldest(first: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
    let end = overflow.kept.len().min(first + overflow.excess);
    victims.extend((first..end).map(Slot));
}

/// Ranks every slot by its score, the newest `recent_window` out of reach.
pub(super) fn rank_outside_window<T: Score>(
    scores: &[T],
    kept: &[Position],
    recent_window: usize,
    ranks: &mut Vec<Option<f64>>,
) {
    let candidates = kept.len().saturating_sub(recent_window);
    ranks.extend(scores.iter().enumerate().map(|(slot, score)| (slot < candidates).then(|| score.as_f64())));
}

/// Ranks every slot by its position, those below `first` out of reach.
pub(super) fn rank_by_age(first: usize, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
    ranks.extend(kept.iter().map(|position| (position.index() >= first).then(|| f64::from(position.0))));
}
