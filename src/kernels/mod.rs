//! Loops over slices that the compiler turns into vector code, compiled for several processors.
//!
//! Each loop is written once, in plain safe Rust over chunks of [`LANES`]; `dispatch` picks the
//! version for the best instruction set that the running processor has. The versions agree to the
//! bit: sums keep [`LANES`] partial accumulators that are combined in a fixed order, whatever the
//! vector width. The two loops that see every weight of a row or every slot of a lane have a twin in
//! `avx512`, written with that instruction set's own operations. What rebuilds rows from queries and keys is
//! written once over sixteen numbers at a time (`simd`), whose operations each instruction set has. Knows
//! nothing of traces, policies or lanes.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod kept;
mod peak;
mod products;
#[cfg(test)]
mod rebuilt_rows;
mod rings;
mod row;
mod scores;
mod simd;
mod softmax;
#[cfg(test)]
mod tests;
mod weighted_values;
mod widen;

pub use kept::{Gathered, KeptLimits, gather, measure};
pub use peak::multiply_adds;
pub use products::{KeyPanel, ScoreRow, product, products};
pub use rings::{add_exactly, add_rows, pool_max, replace};
pub use row::{Picked, RowLimits, RowScan, count_over, nth_largest, pick_from, scan_row, sum, sum_over};
pub use scores::{Score, accumulate, count_above, lowest, mark_above};
pub use softmax::{Logits, Normalizer, exp_below_zero, logit, softmax};
pub use weighted_values::weighted_values;
pub use widen::{widen_bf16, widen_f16};

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Number of partial accumulators, and of elements that a loop takes at a time.
pub const LANES: usize = 16;

/// What the running processor has, as far as kernels are written for it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Vectors {
    /// Not asked yet.
    Unknown,
    /// What every processor has.
    Plain,
    /// Vectors of 256 bits and fused multiply-add.
    Avx2,
    /// The 512-bit instructions that [`avx512`] uses.
    Avx512,
}

/// The best of [`Vectors`] that the running processor has. Asked for in every row of every lane: one load answers.
#[cfg(target_arch = "x86_64")]
#[inline]
fn vectors() -> Vectors {
    static FOUND: AtomicU8 = AtomicU8::new(Vectors::Unknown as u8);
    match FOUND.load(Ordering::Relaxed) {
        found if found == Vectors::Avx512 as u8 => Vectors::Avx512,
        found if found == Vectors::Avx2 as u8 => Vectors::Avx2,
        found if found == Vectors::Plain as u8 => Vectors::Plain,
        _ => find_vectors(&FOUND),
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn find_vectors(found: &AtomicU8) -> Vectors {
    let has_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt");
    let has_avx512 = has_avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let vectors = match (has_avx512, has_avx2) {
        (true, _) => Vectors::Avx512,
        (false, true) => Vectors::Avx2,
        (false, false) => Vectors::Plain,
    };
    found.store(vectors as u8, Ordering::Relaxed);
    vectors
}

/// Whether this processor has the 512-bit instructions that [`avx512`] uses.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    vectors() == Vectors::Avx512
}

/// Whether this processor has vectors of 256 bits and fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    vectors() >= Vectors::Avx2
}

/// A loop that can be compiled for several instruction sets.
trait Kernel {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs a loop in the version for this processor.
#[inline]
#[allow(unsafe_code)]
fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        if has_avx512() {
            // SAFETY: every feature that the function enables was found, or is implied by one found.
            return unsafe { with_avx512(kernel) };
        }
        if has_avx2() {
            // SAFETY: every feature that the function enables was found, or is implied by one found.
            return unsafe { with_avx2(kernel) };
        }
    }
    kernel.run()
}

/// Combines partial sums, always in the same order.
#[inline(always)]
fn fold(partial: &[f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    let mut sums = *partial;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// The largest f32 that is not above `threshold`: `f64(w) > threshold` holds for an f32 `w` exactly
/// when `w` is above this, so that comparisons with a share can be made in f32.
pub fn f32_not_above(threshold: f64) -> f32 {
    let nearest = threshold as f32;
    if f64::from(nearest) > threshold { nearest.next_down() } else { nearest }
}
