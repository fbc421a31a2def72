//! What a lane takes of a row: the kept weights, their sum, and how many exceed a limit.

use super::row::{count_over, sum};
use super::{Kernel, LANES, dispatch, fold};
#[cfg(target_arch = "x86_64")]
use super::{avx512, has_avx512};
use crate::position::Position;

/// What the kept weights of a row are compared with.
#[derive(Clone, Copy, Debug)]
pub struct KeptLimits {
    /// A weight above this is pivotal.
    pub pivotal: f32,
    /// A weight above this is heavy.
    pub heavy: f32,
}

/// What a kept set holds of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gathered {
    /// Sum of the kept weights.
    pub mass: f64,
    /// Number of kept pivotal positions.
    pub pivotal: u32,
    /// Number of kept weights above the limit of heavy ones.
    pub heavy: u32,
}

/// Copies the weights at `kept` from `row` to `out`, sums them and compares them with the limits.
///
/// `kept` must be ascending and within the row; `out` as long as `kept`.
pub fn gather(row: &[f32], kept: &[Position], limits: KeptLimits, out: &mut [f32]) -> Gathered {
    assert_eq!(kept.len(), out.len(), "one weight for each kept position");
    assert_within(row, kept);
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::gather(row, kept, limits, out);
    }
    gather_portably(row, kept, limits, out)
}

/// As [`gather`], without keeping the weights.
pub fn measure(row: &[f32], kept: &[Position], limits: KeptLimits) -> Gathered {
    assert_within(row, kept);
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512::measure(row, kept, limits);
    }
    measure_portably(row, kept, limits)
}

/// The kept positions ascend, so that the last says it of all.
#[inline]
fn assert_within(row: &[f32], kept: &[Position]) {
    let inside = kept.last().is_none_or(|last| last.index() < row.len());
    assert!(inside, "every kept position lies in the row");
}

pub(super) fn measure_portably(row: &[f32], kept: &[Position], limits: KeptLimits) -> Gathered {
    dispatch(MeasureKept { row, kept, limits })
}

struct MeasureKept<'a> {
    row: &'a [f32],
    kept: &'a [Position],
    limits: KeptLimits,
}

impl Kernel for MeasureKept<'_> {
    type Output = Gathered;
    /// A chunk at a time; a weight's place in its chunk says which partial sum it goes to, as in a sum
    /// over gathered weights.
    #[inline(always)]
    fn run(self) -> Gathered {
        let mut found = PartialCounts { mass: [0.0; LANES], pivotal: [0; LANES], heavy: [0; LANES] };
        let (kept, rest) = self.kept.as_chunks::<LANES>();
        for kept in kept {
            let first = kept[0].index();
            if kept[LANES - 1].index() == first + LANES - 1 {
                let run: &[f32; LANES] = self.row[first..first + LANES].try_into().expect("a whole chunk");
                found.add(run, self.limits);
            } else {
                found.add(&std::array::from_fn(|lane| self.row[kept[lane].index()]), self.limits);
            }
        }
        let mut gathered = found.total();
        for (position, partial) in rest.iter().zip(&mut found.mass) {
            let weight = self.row[position.index()];
            *partial += f64::from(weight);
            gathered.pivotal += u32::from(weight > self.limits.pivotal);
            gathered.heavy += u32::from(weight > self.limits.heavy);
        }
        Gathered { mass: fold(&found.mass), ..gathered }
    }
}

/// What has been found so far, by place in a chunk.
struct PartialCounts {
    mass: [f64; LANES],
    pivotal: [u32; LANES],
    heavy: [u32; LANES],
}

impl PartialCounts {
    #[inline(always)]
    fn add(&mut self, weights: &[f32; LANES], limits: KeptLimits) {
        for lane in 0..LANES {
            self.mass[lane] += f64::from(weights[lane]);
            self.pivotal[lane] += u32::from(weights[lane] > limits.pivotal);
            self.heavy[lane] += u32::from(weights[lane] > limits.heavy);
        }
    }

    #[inline(always)]
    fn total(&self) -> Gathered {
        Gathered { mass: 0.0, pivotal: self.pivotal.iter().sum(), heavy: self.heavy.iter().sum() }
    }
}

pub(super) fn gather_portably(row: &[f32], kept: &[Position], limits: KeptLimits, out: &mut [f32]) -> Gathered {
    dispatch(CopyKept { row, kept, out });
    Gathered { mass: sum(out), pivotal: count_over(out, limits.pivotal), heavy: count_over(out, limits.heavy) }
}

struct CopyKept<'a> {
    row: &'a [f32],
    kept: &'a [Position],
    out: &'a mut [f32],
}

impl Kernel for CopyKept<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (kept, kept_rest) = self.kept.as_chunks::<LANES>();
        let (out, out_rest) = self.out.as_chunks_mut::<LANES>();
        for (kept, out) in kept.iter().zip(out) {
            copy_weights(self.row, kept, out);
        }
        for (position, weight) in kept_rest.iter().zip(out_rest) {
            *weight = self.row[position.index()];
        }
    }
}

/// Most kept sets are made of long runs: a run is one copy.
#[inline(always)]
fn copy_weights(row: &[f32], kept: &[Position; LANES], out: &mut [f32; LANES]) {
    let first = kept[0].index();
    if kept[LANES - 1].index() == first + LANES - 1 {
        out.copy_from_slice(&row[first..first + LANES]);
    } else {
        for lane in 0..LANES {
            out[lane] = row[kept[lane].index()];
        }
    }
}
