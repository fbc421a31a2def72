//! Random numbers: SplitMix64 (Steele, Lea and Flood, 2014), one generator for each execution.

/// A generator.
pub struct Random(u64);

impl Random {
    /// The generator of one execution.
    pub fn of_execution(seed: u64, execution: u64) -> Random {
        let mut random = Random(seed);
        let mixed = random.next() ^ execution;
        let mut random = Random(mixed);
        random.0 = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of some things.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
