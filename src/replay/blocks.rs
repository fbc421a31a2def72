//! Whole blocks of consecutive positions go: which of them, by what a policy says of their slots.
//!
//! Block k of B positions holds kB .. kB + B - 1. A block is out of reach where one of its slots is, or where
//! it is being filled. Its worth is the sum of its slots' ranks; one that has lost slots by itself counts as
//! if the others were like those left. A policy that keeps slots here and there out of reach may leave no
//! block: then those with the fewest such slots go, by the worth of the others.

use crate::position::{Position, Slot};

/// Appends the slots of the blocks of least worth, ascending, until `excess` of them or more have gone; ties
/// go to the lower block. With too few in reach it appends what there is.
pub(super) fn choose_blocks(
    kept: &[Position],
    ranks: &[Option<f64>],
    page: usize,
    excess: usize,
    victims: &mut Vec<Slot>,
) {
    let mut blocks = blocks(kept, ranks, page);
    blocks.sort_by(|a, b| a.out_of_reach.cmp(&b.out_of_reach).then(a.worth.total_cmp(&b.worth)));
    let mut gone = 0;
    for block in blocks {
        if gone >= excess {
            break;
        }
        gone += block.slots.len();
        victims.extend(block.slots.map(Slot));
    }
    victims.sort_unstable();
}

/// A block that may go.
struct Block {
    slots: std::ops::Range<usize>,
    /// Slots that the policy would keep.
    out_of_reach: usize,
    worth: f64,
}

/// The blocks that are full, or were, ascending.
fn blocks(kept: &[Position], ranks: &[Option<f64>], page: usize) -> Vec<Block> {
    let mut start = 0;
    let block = |positions: &[Position]| {
        let slots = start..start + positions.len();
        start = slots.end;
        let newest = positions.last()?.index();
        let filling = slots.end == kept.len() && !(newest + 1).is_multiple_of(page);
        if filling {
            return None;
        }
        let sum = ranks[slots.clone()].iter().flatten().fold(0.0, |sum, rank| sum + rank);
        let out_of_reach = ranks[slots.clone()].iter().filter(|rank| rank.is_none()).count();
        let worth = if slots.len() == page { sum } else { sum / slots.len() as f64 * page as f64 };
        Some(Block { slots, out_of_reach, worth })
    };
    kept.chunk_by(|a, b| a.index() / page == b.index() / page).filter_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(kept: &[u32], ranks: &[Option<f64>], excess: usize) -> Vec<usize> {
        let kept: Vec<Position> = kept.iter().copied().map(Position).collect();
        let mut victims = Vec::new();
        choose_blocks(&kept, ranks, 2, excess, &mut victims);
        victims.into_iter().map(|slot| slot.0).collect()
    }

    #[test]
    fn the_least_sum_goes_and_of_equal_ones_the_lower() {
        let ranks = [3.0, 0.0, 1.0, 1.0, 0.0, 2.0, 9.0].map(Some);
        assert_eq!(chosen(&[0, 1, 2, 3, 6, 7, 8], &ranks, 1), [2, 3]);
        assert_eq!(chosen(&[0, 1, 2, 3, 6, 7, 8], &ranks, 3), [2, 3, 4, 5]);
    }

    #[test]
    fn protected_slots_and_the_block_being_filled_stay() {
        let ranks = [Some(0.0), None, Some(5.0), Some(5.0), Some(0.0)];
        assert_eq!(chosen(&[0, 1, 2, 3, 4], &ranks, 2), [2, 3]);
        let ranks = [None, None, None, Some(9.0), Some(0.0)];
        assert_eq!(chosen(&[0, 1, 2, 3, 4], &ranks, 1), [2, 3], "the fewest where every block has one");
    }

    #[test]
    fn a_block_that_lost_a_slot_counts_as_a_whole_one() {
        let ranks = [1.5, 1.0, 1.0].map(Some);
        assert_eq!(chosen(&[1, 2, 3], &ranks, 1), [1, 2], "1.5 of one slot is 3 of two");
    }
}
