//! The operations in vectors of 512 bits: one of them is sixteen f32, two sixteen f64.
#![allow(unsafe_code)]

use super::{LANES, Simd, SimdKernel, Sixteen};
use crate::kernels::has_avx512;
use std::arch::x86_64::*;

/// The right to use AVX-512.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Avx512(());

impl Avx512 {
    /// Where the processor has it.
    #[inline]
    pub(in crate::kernels) fn found() -> Option<Avx512> {
        has_avx512().then_some(Avx512(()))
    }
}

type Doubles = [__m512d; 2];

impl Simd for Avx512 {
    type Numbers = __m512;
    type Doubles = Doubles;

    #[inline(always)]
    fn run<K: SimdKernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn compiled<K: SimdKernel>(simd: Avx512, kernel: K) -> K::Output {
            kernel.run::<Avx512, true>(simd)
        }
        // SAFETY: the features were found, or are implied by one found.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, number: f32) -> __m512 {
        // SAFETY: as in all that follows, the features were found.
        unsafe { _mm512_set1_ps(number) }
    }

    #[inline(always)]
    fn load(self, from: &Sixteen) -> __m512 {
        // SAFETY: sixteen f32 may be read.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, numbers: __m512, to: &mut Sixteen) {
        // SAFETY: sixteen f32 may be written.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), numbers) }
    }

    #[inline(always)]
    fn multiply_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the features were found.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn multiply(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the features were found.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn subtract(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the features were found.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn larger(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the features were found.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn larger_size(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the features were found.
        unsafe { larger_size(a, b) }
    }

    #[inline(always)]
    fn raise(self, number: __m512, exponent: __m512) -> __m512 {
        // SAFETY: the features were found.
        unsafe { raise(number, exponent) }
    }

    #[inline(always)]
    fn zeros(self) -> Doubles {
        // SAFETY: the features were found.
        [unsafe { _mm512_setzero_pd() }; 2]
    }

    #[inline(always)]
    fn add(self, sums: Doubles, numbers: __m512) -> Doubles {
        // SAFETY: the features were found.
        unsafe {
            let [low, high] = doubles(numbers);
            [_mm512_add_pd(sums[0], low), _mm512_add_pd(sums[1], high)]
        }
    }

    #[inline(always)]
    fn store_doubles(self, doubles: Doubles, to: &mut [f64; LANES]) {
        for (eight, to) in doubles.into_iter().zip(to.as_chunks_mut::<8>().0) {
            // SAFETY: eight f64 may be written.
            unsafe { _mm512_storeu_pd(to.as_mut_ptr(), eight) }
        }
    }

    #[inline(always)]
    fn scale(self, numbers: __m512, factor: f64) -> __m512 {
        // SAFETY: the features were found.
        unsafe { scale(numbers, factor) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn doubles(numbers: __m512) -> Doubles {
    [_mm512_cvtps_pd(_mm512_castps512_ps256(numbers)), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(numbers))]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn larger_size(a: __m512, b: __m512) -> __m512 {
    let mask = _mm512_set1_epi32(i32::MAX);
    let (a, b) = (_mm512_castps_si512(a), _mm512_castps_si512(b));
    _mm512_castsi512_ps(_mm512_max_epu32(_mm512_and_si512(a, mask), _mm512_and_si512(b, mask)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn raise(number: __m512, exponent: __m512) -> __m512 {
    let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(exponent));
    _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(number), exponent))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn scale(numbers: __m512, factor: f64) -> __m512 {
    let factor = _mm512_set1_pd(factor);
    let [low, high] = doubles(numbers);
    let low = _mm512_cvtpd_ps(_mm512_mul_pd(low, factor));
    let high = _mm512_cvtpd_ps(_mm512_mul_pd(high, factor));
    _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
}
