//! How victims are picked from figures: the lowest, ties to the lower position.

use super::Overflow;
use crate::kernels::{self, Figure};
use crate::position::Slot;

/// Appends the `excess` slots with the lowest figures among the first `candidates`, ascending.
///
/// `figures` has one value per slot, none of them NaN. With too few candidates it appends what
/// there is, which the engine refuses.
pub fn choose_lowest<T: Figure>(figures: &[T], candidates: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
    let figures = &figures[..candidates];
    if overflow.excess == 1 {
        victims.extend(kernels::lowest(figures).map(Slot));
        return;
    }
    let mut order: Vec<usize> = (0..candidates).collect();
    order.sort_by(|a, b| figures[*a].partial_cmp(&figures[*b]).expect("no figure is NaN"));
    order.truncate(overflow.excess);
    order.sort_unstable();
    victims.extend(order.into_iter().map(Slot));
}

/// Appends the `excess` oldest slots from `first` on.
pub fn choose_oldest(first: usize, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
    let end = overflow.kept.len().min(first + overflow.excess);
    victims.extend((first..end).map(Slot));
}
