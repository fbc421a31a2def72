//! What no trace exceeds, whatever its file declares: a declared size is not data, and is refused before
//! anything is allocated for it. And how messages quote what is too long to be quoted.

/// Positions beyond any context: a row of them takes 64 MiB.
pub const MOST_POSITIONS: usize = 1 << 24;
/// Dimensions that numpy allows; attention has five at most.
pub(super) const MOST_DIMENSIONS: usize = 64;
/// Letters of a foreign text that a message quotes.
const MOST_QUOTED: usize = 80;

/// Refuses more positions than can be replayed.
///
/// # Errors
/// One line that says how many there may be.
pub(super) fn check_positions(positions: usize) -> Result<(), String> {
    if positions <= MOST_POSITIONS {
        return Ok(());
    }
    Err(format!("{positions} positions are more than the {MOST_POSITIONS} that can be replayed"))
}

/// A text in quotes, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MOST_QUOTED) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}... ({} bytes)", &text[..end], text.len()),
    }
}

/// What another library says, which may quote what it was given: cut where it is long, its end kept.
pub(super) fn cut(message: &str) -> String {
    let letters: Vec<char> = message.chars().take(8 * MOST_QUOTED).collect();
    if letters.len() < 8 * MOST_QUOTED {
        return message.to_owned();
    }
    let end: String = message.chars().rev().take(MOST_QUOTED).collect();
    format!("{}...{}", letters[..2 * MOST_QUOTED].iter().collect::<String>(), end.chars().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_positions_as_can_be_replayed() {
        assert_eq!(check_positions(1 << 24), Ok(()));
        let problem = check_positions(usize::MAX).expect_err("refused");
        assert_eq!(problem, "18446744073709551615 positions are more than the 16777216 that can be replayed");
    }

    #[test]
    fn what_another_library_says_is_cut_in_its_middle() {
        assert_eq!(cut("a short message"), "a short message");
        let long = cut(&format!("invalid type: {:?}, expected u32 at column 7", "x".repeat(10_000)));
        assert!(long.starts_with("invalid type: \"xxx") && long.ends_with("xxx\", expected u32 at column 7"), "{long}");
        assert!(long.len() < 300);
    }

    #[test]
    fn a_long_text_is_cut_and_its_length_told() {
        assert_eq!(quoted("short"), "\"short\"");
        let long = quoted(&"ä".repeat(100));
        assert_eq!(long, format!("{:?}... (200 bytes)", "ä".repeat(80)));
    }
}
