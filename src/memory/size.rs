//! Amounts of memory in one unit: GiB and GB are never mixed without a word.

use crate::decimal::Decimal;
use std::fmt;

/// What an amount is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// 2^30 bytes.
    #[default]
    GiB,
    /// 10^9 bytes.
    GB,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Unit; 2] = [Unit::GiB, Unit::GB];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Unit::GiB => "GiB",
            Unit::GB => "GB",
        }
    }

    /// Bytes in one.
    pub fn bytes(self) -> u128 {
        match self {
            Unit::GiB => 1 << 30,
            Unit::GB => 1_000_000_000,
        }
    }

    /// An amount of bytes in this unit.
    pub fn of(self, bytes: u128) -> f64 {
        bytes as f64 / self.bytes() as f64
    }
}

/// An amount as typed: a decimal number, and the unit where one was named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amount {
    number: Decimal,
    /// The unit that was typed.
    pub unit: Option<Unit>,
}

/// Most decimals of an amount: enough for single bytes.
const DECIMALS: u32 = 9;

impl Amount {
    /// Reads `80GiB`, `325 GB` or a bare number.
    ///
    /// # Errors
    /// Says how to write it.
    pub fn parse(text: &str) -> Result<Amount, String> {
        let unit = Unit::ALL.into_iter().find(|unit| text.ends_with(unit.word()));
        let digits = unit.and_then(|unit| text.strip_suffix(unit.word())).unwrap_or(text).trim();
        let number = Decimal::parse(digits).filter(|number| number.decimals() <= DECIMALS);
        let number = number.ok_or_else(|| format!("{text:?} is not an amount of memory: write 80GiB or 80GB"))?;
        Ok(Amount { number, unit })
    }

    /// The bytes, rounded down, where a bare number counts in `unit`.
    pub fn bytes(self, unit: Unit) -> u128 {
        let unit = self.unit.unwrap_or(unit);
        // At most 10^18 x 10^9 x 2^30, which fits.
        self.number.in_units(DECIMALS) * unit.bytes() / 10_u128.pow(DECIMALS)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit.map_or("", Unit::word))
    }
}

/// The one unit of several amounts.
///
/// # Errors
/// When they name different ones.
pub fn common_unit(amounts: &[Amount]) -> Result<Option<Unit>, String> {
    let mut named = amounts.iter().filter_map(|amount| amount.unit.map(|unit| (amount, unit)));
    let Some((first, unit)) = named.next() else { return Ok(None) };
    match named.find(|(_, other)| *other != unit) {
        None => Ok(Some(unit)),
        Some((other, _)) => {
            Err(format!("{first} and {other} are in different units, which moves the answer: write both in one"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> u128 {
        Amount::parse(text).expect("an amount").bytes(Unit::GiB)
    }

    #[test]
    fn amounts_are_exact() {
        assert_eq!(bytes("80GiB"), 80 << 30);
        assert_eq!(bytes("80 GB"), 80_000_000_000);
        assert_eq!(bytes("0.5"), 1 << 29);
        assert_eq!(bytes("325.96"), 349_996_884_951, "rounded down to a byte");
    }

    #[test]
    fn what_is_not_an_amount_is_refused() {
        for text in ["", "GiB", "-1GB", "80gb", "80MB", "1e3GB", "80GiB/s"] {
            assert!(Amount::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn two_units_are_refused() {
        let amounts = ["80GiB", "325GB"].map(|text| Amount::parse(text).expect("an amount"));
        let problem = common_unit(&amounts).expect_err("two units");
        assert!(problem.starts_with("80GiB and 325GB are in different units"), "{problem}");
        assert_eq!(common_unit(&amounts[..1]), Ok(Some(Unit::GiB)));
        assert_eq!(common_unit(&[Amount::parse("80").expect("an amount")]), Ok(None));
    }
}
