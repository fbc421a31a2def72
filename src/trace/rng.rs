//! The one source of random numbers: xoshiro128** (Blackman and Vigna), seeded by splitmix32.
//!
//! Written here, not taken from a crate, because its stream is part of the canonical trace and of
//! the `random` policy: it must never change under us.

/// A xoshiro128** generator.
#[derive(Clone, Debug)]
pub struct Xoshiro128 {
    state: [u32; 4],
}

impl Xoshiro128 {
    /// A generator whose four words are the first four outputs of splitmix32 from `seed`.
    pub fn new(seed: u32) -> Xoshiro128 {
        let mut seed = seed;
        Xoshiro128 { state: std::array::from_fn(|_| splitmix32(&mut seed)) }
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 9;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(11);
        result
    }

    /// A number below `n`, without bias; `n` must not be 0.
    pub fn below(&mut self, n: u32) -> u32 {
        let reject_below = n.wrapping_neg() % n;
        loop {
            let draw = self.next_u32();
            if draw >= reject_below {
                return draw % n;
            }
        }
    }
}

fn splitmix32(state: &mut u32) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9);
    let mut z = *state;
    z = (z ^ (z >> 16)).wrapping_mul(0x21f0_aaad);
    z = (z ^ (z >> 15)).wrapping_mul(0x735a_2d97);
    z ^ (z >> 15)
}
