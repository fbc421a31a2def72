//! Multiply-adds that wait for nothing: what a processor can do at most, to set kernels beside in benches.

use super::{Kernel, LANES, dispatch};

/// Makes `rounds` times as many fused multiply-adds as it returns first, all in registers; the second is what came
/// of them, so that nobody leaves them out.
pub fn multiply_adds(rounds: usize) -> (usize, f32) {
    dispatch(MultiplyAdds { rounds })
}

struct MultiplyAdds {
    rounds: usize,
}

impl Kernel for MultiplyAdds {
    type Output = (usize, f32);

    #[inline(always)]
    fn run(self) -> (usize, f32) {
        self.with_sums::<6>()
    }

    #[inline(always)]
    fn run_wide(self) -> (usize, f32) {
        self.with_sums::<12>()
    }
}

impl MultiplyAdds {
    #[inline(always)]
    fn with_sums<const N: usize>(self) -> (usize, f32) {
        let mut sums = [[1.0_f32; LANES]; N];
        let factor = std::hint::black_box(0.999_f32);
        for _ in 0..self.rounds {
            sums = std::array::from_fn(|n| std::array::from_fn(|lane| sums[n][lane].mul_add(factor, factor)));
        }
        (N * LANES, sums.iter().flatten().sum())
    }
}
