//! Sixteen numbers at a time, in the operations of an instruction set.
//!
//! A loop written over [`Simd`] is one source for every processor, and sums stay in registers however the compiler feels
//! about loops. Each operation is one of IEEE 754 on each of the sixteen, so that results agree to the bit. A value of a
//! set's type exists only where its features were found; holding one is the right to use them.
//!
//! What must be fast is a plain loop, not a closure: a closure is compiled by itself, without the features.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;

use super::LANES;
#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
pub(super) use plain::Plain;

/// Sixteen f32 in memory.
pub(super) type Sixteen = [f32; LANES];

/// The operations of an instruction set.
pub(super) trait Simd: Copy {
    /// Sixteen f32.
    type Numbers: Copy;
    /// Sixteen f64.
    type Doubles: Copy;

    /// Runs a kernel, compiled for this set.
    fn run<K: SimdKernel>(self, kernel: K) -> K::Output;

    fn splat(self, number: f32) -> Self::Numbers;
    fn load(self, from: &Sixteen) -> Self::Numbers;
    fn store(self, numbers: Self::Numbers, to: &mut Sixteen);
    /// `a * b + c`, rounded once.
    fn multiply_add(self, a: Self::Numbers, b: Self::Numbers, c: Self::Numbers) -> Self::Numbers;
    fn multiply(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;
    fn subtract(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;
    /// `a` where it is the larger, else `b`.
    fn larger(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;
    /// The size of a number as bits, which rise with it; what is not a number is above infinity.
    fn larger_size(self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;
    /// Adds the low 9 bits of `exponent` to the exponent of `number`.
    fn raise(self, number: Self::Numbers, exponent: Self::Numbers) -> Self::Numbers;

    fn zeros(self) -> Self::Doubles;
    fn add(self, sums: Self::Doubles, numbers: Self::Numbers) -> Self::Doubles;
    fn store_doubles(self, doubles: Self::Doubles, to: &mut [f64; LANES]);
    /// The product with an f64, rounded to f32.
    fn scale(self, numbers: Self::Numbers, factor: f64) -> Self::Numbers;
}

/// A loop over sixteen numbers at a time.
pub(super) trait SimdKernel {
    type Output;

    /// `WIDE` says that the set has 32 registers of sixteen numbers each, not 16 of fewer.
    fn run<S: Simd, const WIDE: bool>(self, simd: S) -> Self::Output;
}

/// Runs a loop in the version for this processor.
#[inline]
pub(super) fn dispatch<K: SimdKernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = Avx512::found() {
            return simd.run(kernel);
        }
        if let Some(simd) = Avx2::found() {
            return simd.run(kernel);
        }
    }
    Plain.run(kernel)
}
