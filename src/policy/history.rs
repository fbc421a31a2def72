//! One bit per slot for each of the last rows: was the weight low?

use crate::position::Slot;
use crate::slots::SlotVec;

/// Bits in a word of the ring.
const WORD: usize = u64::BITS as usize;

/// The bits of the last observed rows, and how many of them are set, for every slot.
///
/// All slots share one place in the ring: rows show every slot at once. A bit from before a slot
/// was admitted is not set.
pub(super) struct History {
    window: usize,
    observed: u64,
    /// Word `i` of every slot's ring; made when the first row needs it.
    words: Vec<SlotVec<u64>>,
    lows: SlotVec<u32>,
    /// Rows observed before the slot was admitted.
    missed: SlotVec<u64>,
}

impl History {
    /// No slots yet, room for about `slots`; at most `window` rows count.
    pub(super) fn new(window: usize, slots: usize) -> History {
        let (lows, missed) = (SlotVec::with_capacity(slots), SlotVec::with_capacity(slots));
        History { window, observed: 0, words: Vec::new(), lows, missed }
    }

    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.lows.len()
    }

    /// A slot that no row has shown yet.
    pub(super) fn admit(&mut self) {
        self.words.iter_mut().for_each(|word| word.push(0));
        self.lows.push(0);
        self.missed.push(self.observed);
    }

    /// Takes in a row: weights that are not above `threshold` are low. The row that leaves the
    /// window makes room.
    pub(super) fn record(&mut self, weights: &[f32], threshold: f32) {
        let place = (self.observed % self.window as u64) as usize;
        let (word, shift) = (place / WORD, place % WORD);
        if word == self.words.len() {
            self.add_word();
        }
        for ((bits, lows), weight) in self.words[word].iter_mut().zip(self.lows.iter_mut()).zip(weights) {
            let before = (*bits >> shift) & 1;
            let now = u64::from(*weight <= threshold);
            *bits ^= (before ^ now) << shift;
            *lows = *lows + now as u32 - before as u32;
        }
        self.observed += 1;
    }

    /// Rows of the window in which the slot was low.
    pub(super) fn lows(&self, slot: Slot) -> u32 {
        self.lows[slot.0]
    }

    /// Rows of the window that showed the slot.
    pub(super) fn seen(&self, slot: Slot) -> u64 {
        (self.observed - self.missed[slot.0]).min(self.window as u64)
    }

    /// Forgets slots that have left.
    pub(super) fn forget(&mut self, slots: &[Slot]) {
        self.words.iter_mut().for_each(|word| word.remove(slots));
        self.lows.remove(slots);
        self.missed.remove(slots);
    }

    /// Bytes held for each slot at present.
    pub(super) fn slot_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>() + size_of::<u32>() + size_of::<u64>()
    }

    fn add_word(&mut self) {
        let mut word = SlotVec::with_capacity(self.len());
        (0..self.len()).for_each(|_| word.push(0));
        self.words.push(word);
    }
}
