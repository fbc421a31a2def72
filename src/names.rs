//! Finds things by the names that people type: case does not matter, `_` stands for `-`, and a near
//! miss gets a suggestion.

/// The item of this name.
///
/// # Errors
/// Says which names there are, or which one was probably meant; `what` is the kind of thing.
pub fn find_named<'a, T>(
    what: &str,
    typed: &str,
    items: &'a [T],
    name_of: impl Fn(&T) -> &'static str,
) -> Result<&'a T, String> {
    let wanted = plain(typed);
    if let Some(found) = items.iter().find(|item| plain(name_of(item)) == wanted) {
        return Ok(found);
    }
    let known: Vec<&'static str> = items.iter().map(name_of).collect();
    Err(match nearest(&wanted, &known) {
        Some(near) => format!("unknown {what} {typed:?}: did you mean {near}? (there are {})", known.join(", ")),
        None => format!("unknown {what} {typed:?}; there are {}", known.join(", ")),
    })
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('_', "-")
}

/// The known name that differs least, where a third of its letters at most differ; the first of those
/// that tie.
fn nearest(wanted: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |name: &&'static str| strsim::damerau_levenshtein(wanted, &plain(name));
    let near = known.iter().copied().min_by_key(distance)?;
    (distance(&near) * 3 <= near.len()).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["h2o", "scissorhands", "streaming-llm", "tova"];

    fn found(typed: &str) -> Result<&'static str, String> {
        find_named("policy", typed, &KNOWN, |name| name).copied()
    }

    #[test]
    fn case_and_the_kind_of_hyphen_do_not_matter() {
        assert_eq!(found("H2O"), Ok("h2o"));
        assert_eq!(found("Streaming_LLM"), Ok("streaming-llm"));
    }

    #[test]
    fn a_near_miss_gets_a_suggestion_and_a_far_one_the_list() {
        let near = found("scisorhands").expect_err("one letter is missing");
        assert!(near.starts_with("unknown policy \"scisorhands\": did you mean scissorhands?"), "{near}");
        let swapped = found("tvoa").expect_err("two letters are swapped");
        assert!(swapped.contains("did you mean tova?"), "{swapped}");
        let far = found("belady").expect_err("nothing is like it");
        assert_eq!(far, "unknown policy \"belady\"; there are h2o, scissorhands, streaming-llm, tova");
    }
}
