//! Multiply-adds that wait for nothing: what a processor can do at most, to set kernels beside in benches.
#![allow(unsafe_code)]

use super::LANES;
#[cfg(target_arch = "x86_64")]
use super::{has_avx2, has_avx512};

/// Makes `rounds` times as many fused multiply-adds as it returns first, all in registers; the second is what came
/// of them, so that nobody leaves them out.
pub fn multiply_adds(rounds: usize) -> (usize, f32) {
    let factor = std::hint::black_box(0.999_f32);
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor has the features that the function enables.
            return unsafe { x86::with_avx512(rounds, factor) };
        }
        if has_avx2() {
            // SAFETY: the processor has the features that the function enables.
            return unsafe { x86::with_avx2(rounds, factor) };
        }
    }
    plainly(rounds, factor)
}

fn plainly(rounds: usize, factor: f32) -> (usize, f32) {
    let mut sums = [1.0_f32; LANES];
    for _ in 0..rounds {
        sums.iter_mut().for_each(|sum| *sum = sum.mul_add(factor, factor));
    }
    (LANES, sums.iter().sum())
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Sums at a time: two a cycle, each ready after four or five.
    const SUMS: usize = 10;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn with_avx2(rounds: usize, factor: f32) -> (usize, f32) {
        let factor = _mm256_set1_ps(factor);
        let mut sums = [factor; SUMS];
        for _ in 0..rounds {
            sums.iter_mut().for_each(|sum| *sum = _mm256_fmadd_ps(*sum, factor, factor));
        }
        (SUMS * 8, sums.into_iter().map(|sum| _mm256_cvtss_f32(sum)).sum())
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn with_avx512(rounds: usize, factor: f32) -> (usize, f32) {
        let factor = _mm512_set1_ps(factor);
        let mut sums = [factor; SUMS];
        for _ in 0..rounds {
            sums.iter_mut().for_each(|sum| *sum = _mm512_fmadd_ps(*sum, factor, factor));
        }
        (SUMS * 16, sums.into_iter().map(|sum| _mm512_cvtss_f32(sum)).sum())
    }
}
