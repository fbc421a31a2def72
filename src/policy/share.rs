//! A share written as a percentage, such as `12.5%`, resolved without rounding errors.

use crate::decimal::Decimal;
use std::fmt;

/// A share of something that is counted: above 0%, at most 100%.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Share {
    percent: Decimal,
}

impl Share {
    /// A share of whole percents, from 1 to 100.
    pub const fn percent(percent: u64) -> Share {
        assert!(percent >= 1 && percent <= 100);
        Share { percent: Decimal::whole(percent) }
    }

    /// Reads a number that ends in `%`.
    ///
    /// # Errors
    /// When it is no decimal number, is 0% or above 100%.
    pub fn parse(text: &str) -> Result<Share, String> {
        let percent = text.strip_suffix('%').and_then(Decimal::parse);
        let percent = percent.ok_or_else(|| format!("{text:?} is no share such as 12.5%"))?;
        let units = percent.in_units(percent.decimals());
        if units == 0 || units > 100 * 10_u128.pow(percent.decimals()) {
            return Err(format!("{text} is out of range, above 0% and up to 100% is possible"));
        }
        Ok(Share { percent })
    }

    /// This share of `whole`, rounded down, at least 1.
    pub fn of(self, whole: usize) -> usize {
        self.floor_of(whole).max(1)
    }

    /// This share of `whole`, rounded down.
    pub fn floor_of(self, whole: usize) -> usize {
        let decimals = self.percent.decimals();
        (whole as u128 * self.percent.in_units(decimals) / (100 * 10_u128.pow(decimals))) as usize
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_in_decimal_and_never_to_nothing() {
        for (text, whole, share) in [("50%", 5, 2), ("20%", 3, 1), ("1%", 3, 1), ("29%", 100, 29), ("33.3%", 1000, 333)]
        {
            assert_eq!(Share::parse(text).map(|parsed| parsed.of(whole)), Ok(share), "{text} of {whole}");
        }
        assert_eq!(Share::percent(100).of(usize::MAX), usize::MAX);
    }

    #[test]
    fn shares_outside_their_range_are_refused() {
        for text in ["0%", "0.0%", "100.1%", "-5%", "%", "50", "5e1%"] {
            assert!(Share::parse(text).is_err(), "{text}");
        }
    }
}
