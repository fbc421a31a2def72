//! Lists and ranges in words: `16,32`, `16..128x2`, `256..1024+256`, ends included.

/// More values than this in one range are a slip of the finger.
const MOST: usize = 10_000;

/// Splits a list at commas and expands its ranges.
///
/// # Errors
/// Says what is wrong with which part.
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            _ if part.is_empty() => return Err(format!("{text:?} has an empty place")),
            None => all.push(part.to_owned()),
            Some((start, rest)) => all.extend(range(part, start, rest)?),
        }
    }
    Ok(all)
}

fn range(part: &str, start: &str, rest: &str) -> Result<Vec<String>, String> {
    let (end, step) = match rest.find(['+', 'x']) {
        Some(at) => (&rest[..at], Some((&rest[at..=at], &rest[at + 1..]))),
        None => (rest, None),
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{part:?}: {text:?} is not a whole number"));
    let (start, end) = (number(start)?, number(end)?);
    let (sign, step) = match step {
        None => ("+", 1),
        Some((sign, step)) => (sign, number(step)?),
    };
    if start > end {
        return Err(format!("{part:?} starts above its end"));
    }
    if step == 0 || (sign == "x" && (step == 1 || start == 0)) {
        return Err(format!("{part:?} never reaches its end"));
    }
    let next = |value: &usize| if sign == "x" { value.checked_mul(step) } else { value.checked_add(step) };
    let values: Vec<usize> =
        std::iter::successors(Some(start), next).take_while(|value| *value <= end).take(MOST + 1).collect();
    if values.len() > MOST {
        return Err(format!("{part:?} has more than {MOST} values"));
    }
    Ok(values.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_include_their_ends() {
        let expanded = |text| expand(text).map(|values| values.join(" "));
        assert_eq!(expanded("16..128x2").as_deref(), Ok("16 32 64 128"));
        assert_eq!(expanded("256..1024+256,7").as_deref(), Ok("256 512 768 1024 7"));
        assert_eq!(expanded("3..5").as_deref(), Ok("3 4 5"));
        assert_eq!(expanded("3..10x2").as_deref(), Ok("3 6"));
        assert_eq!(expanded("12.5%,h2o").as_deref(), Ok("12.5% h2o"));
    }

    #[test]
    fn endless_empty_and_broken_ranges_are_refused() {
        for text in ["", "1,,2", "5..3", "1..9+0", "1..9x1", "0..9x2", "a..9", "1..b", "1..", "0..99999"] {
            assert!(expand(text).is_err(), "{text}");
        }
    }
}
