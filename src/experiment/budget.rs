//! A budget as it is asked for: a number of positions, or a share of a trace's.

use super::list;
use crate::decimal::Decimal;

/// A budget before the trace is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budget {
    /// A number of positions.
    Count(usize),
    /// A share of the trace's positions, in percent from 0 to 100.
    Percent(Decimal),
}

/// More decimals of a percentage than this are a mistake.
const MOST_DECIMALS: u32 = 9;

impl Budget {
    /// Reads a budget: `512` or `12.5%`.
    ///
    /// # Errors
    /// Says what is wrong, and how to write it.
    pub fn parse(text: &str) -> Result<Budget, String> {
        if let Some(percent) = text.strip_suffix('%') {
            let percent = parse_percent(percent).map(Budget::Percent);
            return percent.ok_or_else(|| format!("budget {text:?} is not a percentage from 0% to 100%"));
        }
        text.parse().map(Budget::Count).map_err(|_| not_a_count(text))
    }

    /// Reads a list of budgets and ranges: `256,512`, `5%,10%`, `256..1024x2`.
    ///
    /// # Errors
    /// As [`Budget::parse`] and [`list::expand`].
    pub fn parse_list(text: &str) -> Result<Vec<Budget>, String> {
        list::expand(text)?.iter().map(|text| Budget::parse(text)).collect()
    }

    /// The number of positions, in decimal arithmetic, rounded down, at least one of a share.
    pub fn resolve(self, positions: usize) -> usize {
        match self {
            Budget::Count(count) => count,
            Budget::Percent(percent) => {
                let (part, whole) = share(percent, positions);
                ((part / whole) as usize).max(1)
            }
        }
    }

    /// Whether the share came to less than one position.
    pub fn was_raised(self, positions: usize) -> bool {
        match self {
            Budget::Count(_) => false,
            Budget::Percent(percent) => {
                let (part, whole) = share(percent, positions);
                part < whole
            }
        }
    }
}

/// A share of the positions as a fraction.
fn share(percent: Decimal, positions: usize) -> (u128, u128) {
    let decimals = percent.decimals();
    (positions as u128 * percent.in_units(decimals), 100 * 10_u128.pow(decimals))
}

fn parse_percent(text: &str) -> Option<Decimal> {
    let percent = Decimal::parse(text).filter(|percent| percent.decimals() <= MOST_DECIMALS)?;
    (percent.in_units(MOST_DECIMALS) <= 100 * 10_u128.pow(MOST_DECIMALS)).then_some(percent)
}

/// Why a text is no number of positions, with a hint for those who meant a share.
fn not_a_count(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(fraction) if (0.0..1.0).contains(&fraction) => {
            let percent = format!("{:.4}", fraction * 100.0);
            let percent = percent.trim_end_matches('0').trim_end_matches('.');
            format!("budget {text:?} is a bare fraction: write {percent}% for a share of the positions")
        }
        _ => format!("budget {text:?} is neither a number of positions (512) nor a percentage (12.5%)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_exact_and_rounded_down() {
        let resolve = |text: &str, positions| Budget::parse(text).map(|budget| budget.resolve(positions));
        assert_eq!(resolve("12.5%", 4096), Ok(512));
        assert_eq!(resolve("90%", 10), Ok(9), "no binary fraction on the way");
        assert_eq!(resolve("20%", 3), Ok(1), "at least one");
        assert_eq!(resolve("100%", 77), Ok(77));
        assert_eq!(resolve("33.3333333%", 3_000_000_000), Ok(999_999_999));
        assert_eq!(resolve("1", 77), Ok(1));
    }

    #[test]
    fn a_bare_fraction_is_refused_with_the_percentage() {
        assert!(Budget::parse("0.2").is_err_and(|problem| problem.contains("write 20% ")));
        for text in ["", "-1", "101%", "100.000000001%", "x%", "%", "1e3%", "1e3", "1.5", "0.0000000001%"] {
            assert!(Budget::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_holds_counts_shares_and_ranges() {
        let counts = [Budget::Count(3), Budget::Count(6), Budget::Percent(Decimal::whole(5))];
        assert_eq!(Budget::parse_list("3..6x2,5%"), Ok(counts.to_vec()));
        assert!(Budget::parse_list("3,,6").is_err());
    }
}
