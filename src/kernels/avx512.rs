//! The hottest loops in 512-bit operations: a pass over a whole row, a lane's gather, widening f16.
//!
//! Each does in one pass what its portable twin does in several, adds to the same [`LANES`] partial
//! sums in the same order, and so agrees with it to the bit; tests hold them together. The only
//! unsafe code of the crate besides the choice of a version is here: loads, stores and gathers
//! through pointers whose bounds are checked right before.
#![allow(unsafe_code)]

use super::{Gathered, KeptLimits, LANES, Picked, RowLimits, RowScan, fold, has_avx512};
use crate::position::Position;
use std::arch::x86_64::*;

/// [`super::scan_row`]; `picked` has room for a row.
pub(super) fn scan_row(row: &[f32], limits: RowLimits, picked: &mut Picked) -> RowScan {
    assert!(has_avx512());
    // SAFETY: the processor has the features that the function enables.
    unsafe { scan(row, limits, picked) }
}

/// [`super::gather`]; `out` is as long as `kept`.
pub(super) fn gather(row: &[f32], kept: &[Position], limits: KeptLimits, out: &mut [f32]) -> Gathered {
    assert!(has_avx512());
    // SAFETY: the processor has the features that the function enables.
    unsafe { gather_kept(row, kept, limits, out) }
}

/// [`super::measure`].
pub(super) fn measure(row: &[f32], kept: &[Position], limits: KeptLimits) -> Gathered {
    assert!(has_avx512());
    // SAFETY: the processor has the features that the function enables.
    unsafe { measure_kept(row, kept, limits) }
}

/// [`super::widen_f16`]; `out` is as long as `bits`.
pub(super) fn widen_f16(bits: &[u16], out: &mut [f32]) {
    assert!(has_avx512());
    // SAFETY: the processor has the features that the function enables.
    unsafe { widen(bits, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn widen(bits: &[u16], out: &mut [f32]) {
    let (bits, bits_rest) = bits.as_chunks::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    for (bits, out) in bits.iter().zip(out) {
        store(out, widen_chunk(bits));
    }
    let (mut narrow, mut wide) = ([0; LANES], [0.0; LANES]);
    narrow[..bits_rest.len()].copy_from_slice(bits_rest);
    store(&mut wide, widen_chunk(&narrow));
    out_rest.copy_from_slice(&wide[..bits_rest.len()]);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn widen_chunk(bits: &[u16; LANES]) -> __m512 {
    // SAFETY: a chunk is sixteen u16, 32 bytes that may be read.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn scan(row: &[f32], limits: RowLimits, picked: &mut Picked) -> RowScan {
    let (pivotal, floor) = (_mm512_set1_ps(limits.pivotal), _mm512_set1_ps(limits.floor));
    let (mut sum, mut signs) = (Sum::zero(), _mm512_setzero_si512());
    let mut pivotals = _mm512_setzero_si512();
    let (chunks, rest) = row.as_chunks::<LANES>();
    for (index, chunk) in chunks.iter().enumerate() {
        let weights = load(chunk);
        sum.add(weights);
        signs = _mm512_or_si512(signs, _mm512_castps_si512(weights));
        pivotals = count(pivotals, _mm512_cmp_ps_mask::<_CMP_GT_OQ>(weights, pivotal));
        let chosen = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(weights, floor);
        if chosen != 0 {
            pick(picked, index * LANES, weights, chosen);
        }
    }
    let held = held_lanes(rest);
    let weights = load_some(rest);
    sum.add(weights);
    signs = _mm512_or_si512(signs, _mm512_castps_si512(weights));
    pivotals = count(pivotals, held & _mm512_cmp_ps_mask::<_CMP_GT_OQ>(weights, pivotal));
    pick(picked, chunks.len() * LANES, weights, held & _mm512_cmp_ps_mask::<_CMP_GE_OQ>(weights, floor));
    RowScan { total: sum.total(), pivotal: total(pivotals), signed: _mm512_movepi32_mask(signs) != 0 }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn gather_kept(row: &[f32], kept: &[Position], limits: KeptLimits, out: &mut [f32]) -> Gathered {
    let mut kept_so_far = Kept::new(limits);
    let (kept, kept_rest) = kept.as_chunks::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    for (kept, out) in kept.iter().zip(out) {
        let weights = weights_at(row, kept);
        store(out, weights);
        kept_so_far.add(weights, !0);
    }
    for (position, weight) in kept_rest.iter().zip(&mut *out_rest) {
        *weight = row[position.index()];
    }
    kept_so_far.add(load_some(out_rest), held_lanes(out_rest));
    kept_so_far.found()
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn measure_kept(row: &[f32], kept: &[Position], limits: KeptLimits) -> Gathered {
    let mut kept_so_far = Kept::new(limits);
    let (kept, kept_rest) = kept.as_chunks::<LANES>();
    for kept in kept {
        kept_so_far.add(weights_at(row, kept), !0);
    }
    let mut rest = [0.0; LANES];
    for (position, weight) in kept_rest.iter().zip(&mut rest) {
        *weight = row[position.index()];
    }
    let rest = &rest[..kept_rest.len()];
    kept_so_far.add(load_some(rest), held_lanes(rest));
    kept_so_far.found()
}

/// What has been found of the kept weights so far.
struct Kept {
    pivotal: __m512,
    heavy: __m512,
    sum: Sum,
    pivotals: __m512i,
    heavies: __m512i,
}

impl Kept {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn new(limits: KeptLimits) -> Kept {
        Kept {
            pivotal: _mm512_set1_ps(limits.pivotal),
            heavy: _mm512_set1_ps(limits.heavy),
            sum: Sum::zero(),
            pivotals: _mm512_setzero_si512(),
            heavies: _mm512_setzero_si512(),
        }
    }

    /// Adds sixteen weights, of which those in `held` count; the others are zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn add(&mut self, weights: __m512, held: __mmask16) {
        self.sum.add(weights);
        self.pivotals = count(self.pivotals, held & _mm512_cmp_ps_mask::<_CMP_GT_OQ>(weights, self.pivotal));
        self.heavies = count(self.heavies, held & _mm512_cmp_ps_mask::<_CMP_GT_OQ>(weights, self.heavy));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn found(&self) -> Gathered {
        Gathered { mass: self.sum.total(), pivotal: total(self.pivotals), heavy: total(self.heavies) }
    }
}

/// The weights at sixteen positions: a run is one load, others are gathered.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn weights_at(row: &[f32], kept: &[Position; LANES]) -> __m512 {
    let first = kept[0].index();
    if kept[LANES - 1].index() == first + LANES - 1 {
        let run: &[f32; LANES] = row[first..first + LANES].try_into().expect("sixteen weights");
        return load(run);
    }
    // SAFETY: a position is one u32, so that sixteen of them are 64 bytes that may be read.
    let positions = unsafe { _mm512_loadu_si512(kept.as_ptr().cast()) };
    let row_len = _mm512_set1_epi32(row.len().min(i32::MAX as usize) as i32);
    let inside = _mm512_cmplt_epu32_mask(positions, row_len);
    assert!(inside == 0xffff, "every kept position lies in the row");
    // SAFETY: every position was found to be below the row's length (and below 2^31, since the
    // instruction takes signed indices), so that every address lies in the row.
    unsafe { _mm512_i32gather_ps::<4>(positions, row.as_ptr()) }
}

/// Sixteen partial sums in f64: the weight in lane `i` goes to partial sum `i`.
struct Sum {
    low: __m512d,
    high: __m512d,
}

impl Sum {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn zero() -> Sum {
        Sum { low: _mm512_setzero_pd(), high: _mm512_setzero_pd() }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn add(&mut self, weights: __m512) {
        self.low = _mm512_add_pd(self.low, _mm512_cvtps_pd(_mm512_castps512_ps256(weights)));
        self.high = _mm512_add_pd(self.high, _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(weights)));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn total(&self) -> f64 {
        let mut partial = [0.0; LANES];
        let (low, high) = partial.split_at_mut(LANES / 2);
        // SAFETY: each half has room for eight f64.
        unsafe {
            _mm512_storeu_pd(low.as_mut_ptr(), self.low);
            _mm512_storeu_pd(high.as_mut_ptr(), self.high);
        }
        fold(&partial)
    }
}

/// Adds one to the count of each lane in the mask.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn count(counts: __m512i, mask: __mmask16) -> __m512i {
    _mm512_mask_sub_epi32(counts, mask, counts, _mm512_set1_epi32(-1))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn total(counts: __m512i) -> u32 {
    _mm512_reduce_add_epi32(counts) as u32
}

/// Appends the chosen lanes of a chunk that starts at position `first`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn pick(picked: &mut Picked, first: usize, weights: __m512, chosen: __mmask16) {
    let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let positions = _mm512_add_epi32(lanes, _mm512_set1_epi32(first as i32));
    let room = picked.len..picked.len + LANES;
    let (to_weights, to_positions) = (&mut picked.weights[room.clone()], &mut picked.positions[room]);
    // SAFETY: both places have room for sixteen values.
    unsafe {
        _mm512_storeu_ps(to_weights.as_mut_ptr(), _mm512_maskz_compress_ps(chosen, weights));
        _mm512_storeu_si512(to_positions.as_mut_ptr().cast(), _mm512_maskz_compress_epi32(chosen, positions));
    }
    picked.len += chosen.count_ones() as usize;
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn load(chunk: &[f32; LANES]) -> __m512 {
    // SAFETY: a chunk is sixteen f32.
    unsafe { _mm512_loadu_ps(chunk.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn store(chunk: &mut [f32; LANES], weights: __m512) {
    // SAFETY: a chunk is sixteen f32.
    unsafe { _mm512_storeu_ps(chunk.as_mut_ptr(), weights) }
}

/// The mask of the lanes that fewer than sixteen weights fill.
#[inline]
fn held_lanes(rest: &[f32]) -> __mmask16 {
    (1 << rest.len()) - 1
}

/// Fewer than sixteen weights, zeros after them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
fn load_some(rest: &[f32]) -> __m512 {
    // SAFETY: only lanes in the mask are read, and there are that many weights.
    unsafe { _mm512_maskz_loadu_ps(held_lanes(rest), rest.as_ptr()) }
}
