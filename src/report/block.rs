//! Blocks of generated text inside a document, between `<!-- kvsim:begin NAME -->` and
//! `<!-- kvsim:end NAME -->`.

use crate::text;

/// Replaces the content of a block and returns the new document. No comment begins in the content, so
/// that it cannot hold a mark.
///
/// # Errors
/// When the block's marks are not there once each, in order.
pub fn replace(document: &str, name: &str, content: &str) -> Result<String, String> {
    let content = text::without_comments(content);
    let (start, end) = find(document, name)?;
    Ok(format!("{}\n{}\n{}", &document[..start], content.trim_end(), &document[end..]))
}

/// Where the content of a block starts and ends: after the opening mark, before the closing one.
fn find(document: &str, name: &str) -> Result<(usize, usize), String> {
    let open = format!("<!-- kvsim:begin {name} -->");
    let close = format!("<!-- kvsim:end {name} -->");
    let start = only(document, &open)? + open.len();
    let end = only(document, &close)?;
    if end < start {
        return Err(format!("block {name:?}: its end stands before its beginning"));
    }
    Ok((start, end))
}

fn only(document: &str, mark: &str) -> Result<usize, String> {
    let mut found = document.match_indices(mark).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => Err(format!("no line {mark}: add the block's two marks where the table belongs")),
        (Some(_), Some(_)) => Err(format!("several lines {mark}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "a\n<!-- kvsim:begin x -->\nold\n<!-- kvsim:end x -->\nb\n";

    #[test]
    fn a_block_is_replaced_and_the_rest_stays() {
        let new = replace(DOCUMENT, "x", "new\n").expect("found");
        assert_eq!(new, DOCUMENT.replace("old", "new"));
        assert_eq!(replace(&new, "x", "new").expect("found"), new, "replacing twice changes nothing");
    }

    #[test]
    fn content_cannot_end_its_block() {
        let new = replace(DOCUMENT, "x", "a <!-- kvsim:end x --> b").expect("found");
        assert_eq!(new, DOCUMENT.replace("old", "a &lt;!-- kvsim:end x --> b"));
        assert!(replace(&new, "x", "new").is_ok());
    }

    #[test]
    fn a_missing_or_doubled_block_is_refused() {
        assert!(replace(DOCUMENT, "y", "").is_err_and(|problem| problem.contains("kvsim:begin y")));
        assert!(replace(&DOCUMENT.repeat(2), "x", "").is_err_and(|problem| problem.contains("several")));
    }
}
