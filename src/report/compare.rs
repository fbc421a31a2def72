//! Which lines may stand side by side: those that agree in what was replayed and how it was measured.

use super::results::{Line, Results};
use super::schema::Role;

/// Refuses lines that differ in what was replayed or how it was measured, where none of the columns shown
/// says so. A key that a file does not have is not known there, and taken to agree; a trace may have two
/// names where its content is the same.
///
/// # Errors
/// Names the keys that differ and their values.
pub(super) fn check(results: &Results, lines: &[&Line], shown: &[usize]) -> Result<(), String> {
    let is_replayed = |at: &usize| results.columns()[*at].role == Role::Replayed;
    let (titles, hidden): (Vec<usize>, Vec<usize>) =
        (0..results.columns().len()).filter(is_replayed).partition(|at| shown.contains(at));
    for group in alike(lines, &titles) {
        let known = |at: usize| -> Vec<&Line> { group.iter().copied().filter(|line| !line[at].is_blank()).collect() };
        let values = |at: usize| results.values(at, &known(at));
        let same_content =
            results.find("content").is_some_and(|at| known(at).len() == group.len() && values(at).len() == 1);
        let matters = |at: &&usize| !(same_content && results.columns()[**at].name == "trace");
        let differing: Vec<(&str, Vec<String>)> = hidden
            .iter()
            .filter(matters)
            .map(|at| (&*results.columns()[*at].name, values(*at)))
            .filter(|(_, values)| values.len() > 1)
            .collect();
        if let Some((first, _)) = differing.first() {
            let named: Vec<String> =
                differing.iter().map(|(name, values)| format!("{name}: {}", listed(values))).collect();
            return Err(format!(
                "lines that do not compare would stand side by side; they differ in {} (add {first} to --rows, or \
                 choose with --filter {first}=...)",
                named.join("; ")
            ));
        }
    }
    Ok(())
}

/// The lines in groups that agree in these columns.
fn alike<'a>(lines: &[&'a Line], columns: &[usize]) -> Vec<Vec<&'a Line>> {
    let mut groups: Vec<Vec<&Line>> = Vec::new();
    for line in lines {
        let same = |group: &&mut Vec<&Line>| columns.iter().all(|at| group[0][*at] == line[*at]);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    groups
}

/// Values as a sentence lists them, the first few of many.
fn listed(values: &[String]) -> String {
    const MOST: usize = 4;
    match values {
        [one, other] => format!("{one} and {other}"),
        few if few.len() <= MOST => few.join(", "),
        many => format!("{}, and {} more", many[..MOST].join(", "), many.len() - MOST),
    }
}
