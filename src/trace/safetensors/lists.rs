//! How long the lists of a header are, before they are read into memory: a shape of millions of sizes is
//! refused for what it is.

/// Number of entries of the longest list in a JSON text that holds no lists of lists.
pub(super) fn longest(json: &[u8]) -> usize {
    let (mut longest, mut entries, mut in_text, mut escaped) = (0, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' => entries = 1,
            b',' => entries += usize::from(entries > 0),
            b']' | b'}' => {
                longest = longest.max(entries);
                entries = 0;
            }
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_count_within_lists_and_outside_of_texts() {
        assert_eq!(longest(br#"{"a": {"shape": [1, 2, 3], "data_offsets": [0, 4]}, "b,[,": 1}"#), 3);
        assert_eq!(longest(br#"{"a,b": "x[,,,,\",,]", "c": [7]}"#), 1);
        assert_eq!(longest(b"{}"), 0);
        assert_eq!(longest(br#"{"a": "never closed [1,2"#), 0);
    }
}
