//! Scores as an engine's arithmetic holds them: rounded to a narrower type after every row.
//!
//! kvsim holds scores in f64 (sums) or f32 (single weights). What an engine that holds them in fewer bits
//! decides otherwise is seen by rounding them here. Counts are whole numbers everywhere and stay as they are.

use crate::word::Word;
use half::{bf16, f16};

/// A type that scores are held in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// 8 bits of precision, the range of f32.
    Bf16,
    /// 11 bits of precision; what is above 65,504 is infinite.
    F16,
    /// 24 bits of precision.
    F32,
}

impl Word for Rounding {
    const WORDS: &'static [(Rounding, &'static str, &'static str)] = &[
        (Rounding::Bf16, "bf16", "8 bits of precision, the range of f32"),
        (Rounding::F16, "f16", "11 bits of precision; what is above 65,504 is infinite"),
        (Rounding::F32, "f32", "24 bits of precision"),
    ];
}

impl Rounding {
    /// The nearest number of the type, ties to even.
    pub fn round(self, number: f64) -> f64 {
        match self {
            Rounding::Bf16 => bf16::from_f64(number).to_f64(),
            Rounding::F16 => f16::from_f64(number).to_f64(),
            Rounding::F32 => f64::from(number as f32),
        }
    }
}

/// A score that may be rounded.
pub trait Rounded: Copy {
    /// Whether it is a number that rounding changes.
    const REAL: bool;

    /// The score as the type holds it.
    fn rounded(self, to: Rounding) -> Self;
}

impl Rounded for f64 {
    const REAL: bool = true;

    fn rounded(self, to: Rounding) -> f64 {
        to.round(self)
    }
}

impl Rounded for f32 {
    const REAL: bool = true;

    fn rounded(self, to: Rounding) -> f32 {
        to.round(f64::from(self)) as f32
    }
}

impl Rounded for u32 {
    const REAL: bool = false;

    fn rounded(self, _to: Rounding) -> u32 {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_the_nearest_of_the_type_and_ties_to_even() {
        let ulp = 2_f64.powi(-7);
        assert_eq!(Rounding::Bf16.round(1.0 + 0.5 * ulp), 1.0);
        assert_eq!(Rounding::Bf16.round(1.0 + 1.5 * ulp), 1.0 + 2.0 * ulp);
        assert_eq!(Rounding::F16.round(0.1), 0.0999755859375);
        assert_eq!(Rounding::F32.round(0.1), f64::from(0.1_f32));
        assert_eq!(Rounding::F16.round(70_000.0), f64::INFINITY);
        assert_eq!(f32::INFINITY.rounded(Rounding::Bf16), f32::INFINITY);
        assert_eq!(257_u32.rounded(Rounding::Bf16), 257);
    }
}
