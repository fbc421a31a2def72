//! The operations in vectors of 256 bits: two of them are sixteen f32, four sixteen f64.
#![allow(unsafe_code)]

use super::{LANES, Simd, SimdKernel, Sixteen};
use crate::kernels::has_avx2;
use std::arch::x86_64::*;

/// The right to use AVX2 and fused multiply-add.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Avx2(());

impl Avx2 {
    /// Where the processor has them.
    #[inline]
    pub(in crate::kernels) fn found() -> Option<Avx2> {
        has_avx2().then_some(Avx2(()))
    }
}

type Numbers = [__m256; 2];
type Doubles = [__m256d; 4];

/// The four f64 of a half of eight f32.
#[inline(always)]
fn halves(eight: __m256) -> [__m128; 2] {
    // SAFETY: called where an `Avx2` is at hand, which exists only where its features were found.
    unsafe { [_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight)] }
}

impl Simd for Avx2 {
    type Numbers = Numbers;
    type Doubles = Doubles;

    #[inline(always)]
    fn run<K: SimdKernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn compiled<K: SimdKernel>(simd: Avx2, kernel: K) -> K::Output {
            kernel.run::<Avx2, false>(simd)
        }
        // SAFETY: the features were found.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, number: f32) -> Numbers {
        // SAFETY: as in all that follows, the features were found.
        let eight = unsafe { _mm256_set1_ps(number) };
        [eight, eight]
    }

    #[inline(always)]
    fn load(self, from: &Sixteen) -> Numbers {
        // SAFETY: sixteen f32 may be read.
        unsafe { [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))] }
    }

    #[inline(always)]
    fn store(self, [low, high]: Numbers, to: &mut Sixteen) {
        // SAFETY: sixteen f32 may be written.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), low);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), high);
        }
    }

    #[inline(always)]
    fn multiply_add(self, a: Numbers, b: Numbers, c: Numbers) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    fn multiply(self, a: Numbers, b: Numbers) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn subtract(self, a: Numbers, b: Numbers) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn larger(self, a: Numbers, b: Numbers) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn larger_size(self, a: Numbers, b: Numbers) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [larger_size(a[0], b[0]), larger_size(a[1], b[1])] }
    }

    #[inline(always)]
    fn raise(self, number: Numbers, exponent: Numbers) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [raise(number[0], exponent[0]), raise(number[1], exponent[1])] }
    }

    #[inline(always)]
    fn zeros(self) -> Doubles {
        // SAFETY: the features were found.
        [unsafe { _mm256_setzero_pd() }; 4]
    }

    #[inline(always)]
    fn add(self, sums: Doubles, numbers: Numbers) -> Doubles {
        let [[a, b], [c, d]] = [halves(numbers[0]), halves(numbers[1])];
        // SAFETY: the features were found.
        unsafe {
            [
                _mm256_add_pd(sums[0], _mm256_cvtps_pd(a)),
                _mm256_add_pd(sums[1], _mm256_cvtps_pd(b)),
                _mm256_add_pd(sums[2], _mm256_cvtps_pd(c)),
                _mm256_add_pd(sums[3], _mm256_cvtps_pd(d)),
            ]
        }
    }

    #[inline(always)]
    fn store_doubles(self, doubles: Doubles, to: &mut [f64; LANES]) {
        for (four, to) in doubles.into_iter().zip(to.as_chunks_mut::<4>().0) {
            // SAFETY: four f64 may be written.
            unsafe { _mm256_storeu_pd(to.as_mut_ptr(), four) }
        }
    }

    #[inline(always)]
    fn scale(self, numbers: Numbers, factor: f64) -> Numbers {
        // SAFETY: the features were found.
        unsafe { [scale(numbers[0], factor), scale(numbers[1], factor)] }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn larger_size(a: __m256, b: __m256) -> __m256 {
    let size = |number: __m256| _mm256_and_si256(_mm256_castps_si256(number), _mm256_set1_epi32(i32::MAX));
    _mm256_castsi256_ps(_mm256_max_epu32(size(a), size(b)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn raise(number: __m256, exponent: __m256) -> __m256 {
    let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(exponent));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(number), exponent))
}

#[inline]
#[target_feature(enable = "avx2")]
fn scale(numbers: __m256, factor: f64) -> __m256 {
    let [low, high] = halves(numbers);
    let factor = _mm256_set1_pd(factor);
    let low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(low), factor));
    let high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(high), factor));
    _mm256_set_m128(high, low)
}
