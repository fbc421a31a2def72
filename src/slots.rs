//! Values that belong to slots: pushed at the newest end, removed anywhere, read as a slice.
//!
//! The kept set and the state of every policy live in these. Knows nothing of rows, policies or
//! budgets.

use crate::position::Slot;
use std::ops::{Deref, DerefMut};

/// Most slots that room is made for in advance.
const MOST_ROOM: usize = 1 << 16;

/// A sequence with one value per slot, in slot order.
///
/// Removing a slot moves the shorter side, so that dropping the oldest costs nothing: the values
/// are a suffix of a buffer whose front is reclaimed when it has grown as long as what is held.
#[derive(Clone, Debug, Default)]
pub struct SlotVec<T> {
    buffer: Vec<T>,
    start: usize,
}

impl<T> SlotVec<T> {
    /// An empty sequence that allocates when it is used.
    pub const fn new() -> Self {
        SlotVec { buffer: Vec::new(), start: 0 }
    }
}

impl<T: Copy> SlotVec<T> {
    /// An empty sequence with room for `slots` values before it allocates again; a budget far beyond
    /// any sequence asks for no more room than it will use.
    pub fn with_capacity(slots: usize) -> Self {
        SlotVec { buffer: Vec::with_capacity(2 * slots.min(MOST_ROOM) + 1), start: 0 }
    }

    /// Appends the value of a new, newest slot.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.buffer.len() == self.buffer.capacity() && self.start >= self.len() {
            self.reclaim_front();
        }
        self.buffer.push(value);
    }

    /// Removes the named slots; they must be ascending, distinct and held.
    #[inline]
    pub fn remove(&mut self, slots: &[Slot]) {
        match *slots {
            [] => {}
            [slot] => self.remove_one(slot.0),
            _ => self.remove_many(slots),
        }
    }

    #[inline]
    fn remove_one(&mut self, slot: usize) {
        assert!(slot < self.len(), "slot {slot} of {} held", self.len());
        let at = self.start + slot;
        if slot < self.len() / 2 {
            self.buffer.copy_within(self.start..at, self.start + 1);
            self.start += 1;
        } else {
            self.buffer.copy_within(at + 1.., at);
            self.buffer.pop();
        }
    }

    fn remove_many(&mut self, slots: &[Slot]) {
        let mut write = self.start + slots[0].0;
        for (i, slot) in slots.iter().enumerate() {
            let from = self.start + slot.0 + 1;
            let to = slots.get(i + 1).map_or(self.buffer.len(), |next| self.start + next.0);
            self.buffer.copy_within(from..to, write);
            write += to - from;
        }
        self.buffer.truncate(write);
    }

    fn reclaim_front(&mut self) {
        self.buffer.copy_within(self.start.., 0);
        self.buffer.truncate(self.buffer.len() - self.start);
        self.start = 0;
    }
}

impl<T> Deref for SlotVec<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.buffer[self.start..]
    }
}

impl<T> DerefMut for SlotVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_agrees_with_a_plain_vector_wherever_it_strikes() {
        let mut slots = SlotVec::with_capacity(4);
        let mut plain: Vec<u32> = Vec::new();
        for i in 0..1000_u32 {
            slots.push(i);
            plain.push(i);
            while plain.len() > 7 {
                let slot = (i as usize * 31) % plain.len();
                slots.remove(&[Slot(slot)]);
                plain.remove(slot);
            }
            assert_eq!(&slots[..], &plain[..]);
        }
        assert!(slots.buffer.capacity() < 64, "the front is reclaimed");
    }

    #[test]
    fn several_slots_go_at_once() {
        let mut slots = SlotVec::with_capacity(8);
        (0..8).for_each(|i| slots.push(i));
        slots.remove(&[Slot(0), Slot(3), Slot(4), Slot(7)]);
        assert_eq!(&slots[..], &[1, 2, 5, 6]);
    }
}
