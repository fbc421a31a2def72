//! Two-byte weights to f32.

use super::{Kernel, dispatch};
#[cfg(target_arch = "x86_64")]
use super::{avx512, has_avx512};
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Widens weights that are stored as f16, given as bits; one for each place in `out`.
pub fn widen_f16(bits: &[u16], out: &mut [f32]) {
    assert_eq!(bits.len(), out.len(), "one place for each weight");
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::widen_f16(bits, out);
    }
    bits.reinterpret_cast::<f16>().convert_to_f32_slice(out);
}

/// Widens weights that are stored as bf16, given as bits: the upper half of an f32.
pub fn widen_bf16(bits: &[u16], out: &mut [f32]) {
    assert_eq!(bits.len(), out.len(), "one place for each weight");
    dispatch(WidenBf16 { bits, out });
}

struct WidenBf16<'a> {
    bits: &'a [u16],
    out: &'a mut [f32],
}

impl Kernel for WidenBf16<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (bits, weight) in self.bits.iter().zip(self.out) {
            *weight = f32::from_bits(u32::from(*bits) << 16);
        }
    }
}
