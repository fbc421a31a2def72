//! Decimal numbers kept as they are written, so that shares and ratios are resolved exactly.

use std::fmt;

/// More digits than anyone needs, few enough that products with a count fit 128 bits.
const MOST_DIGITS: usize = 18;

/// A number that is not negative, `digits / 10^decimals`, without zeros at the end of its decimals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    digits: u64,
    decimals: u32,
}

impl Decimal {
    /// A whole number.
    pub const fn whole(number: u64) -> Decimal {
        Decimal { digits: number, decimals: 0 }
    }

    /// Reads digits with at most one point; no sign, no exponent.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let readable = digits.len() <= MOST_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !readable || !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Only a text such as "0.0" may have lost all its digits.
        let digits = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        Some(Decimal { digits, decimals: fraction.len() as u32 })
    }

    /// Number of decimals.
    pub fn decimals(self) -> u32 {
        self.decimals
    }

    /// The number in units of `10^-decimals`; `decimals` must be at least its own and at most 18.
    pub fn in_units(self, decimals: u32) -> u128 {
        u128::from(self.digits) * 10_u128.pow(decimals - self.decimals)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u64.pow(self.decimals);
        match self.decimals as usize {
            0 => self.digits.fmt(f),
            width => write!(f, "{}.{:0width$}", self.digits / unit, self.digits % unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_prints_as_its_shortest_text() {
        for (text, shown) in
            [("50", "50"), ("12.50", "12.5"), (".5", "0.5"), ("0.0", "0"), ("33.", "33"), ("1.05", "1.05")]
        {
            assert_eq!(Decimal::parse(text).map(|decimal| decimal.to_string()).as_deref(), Some(shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_decimal_is_refused() {
        for text in ["", ".", "-1", "+1", "1e3", "1.2.3", "nan", " 1", "1234567890123456789"] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }
}
