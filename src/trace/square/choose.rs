//! Which arrays of a file are the attention: those that were named, else those that look like it, where the file
//! holds other arrays too.
//!
//! Arrays whose names differ in their numbers alone are one family and stand or fall together: a layer that is
//! damaged is not left out, it is refused later.

use super::array::Array;
use super::dump::Dump;
use super::place::provisional;
use super::probe::{Likeness, look};
use super::row_order;
use crate::error::{Error, Result};
use crate::trace::options::ReadOptions;
use glob::Pattern;
use std::collections::BTreeMap;

/// Members of a family that are looked at.
const LOOKS: usize = 3;
/// Names listed in a message.
const LISTED: usize = 8;

/// Leaves the arrays of the attention in the dump, and notes what was left out.
///
/// # Errors
/// When a name fits no array, when several families look like attention in different ways or none does, or when
/// an array cannot be read.
pub(super) fn choose(dump: &mut Dump, options: &ReadOptions) -> Result<()> {
    if !options.arrays.is_empty() {
        return keep_named(dump, &options.arrays);
    }
    let families = families(&dump.arrays);
    if families.len() < 2 {
        return Ok(());
    }
    let looks = families.values().map(|members| look_at_family(dump, members, options)).collect::<Result<Vec<_>>>()?;
    let attention = looks.contains(&Likeness::Attention);
    let is_kept = |look: &Likeness| match look {
        Likeness::Attention => true,
        Likeness::Scaled(_) => !attention,
        Likeness::Foreign(_) => false,
    };
    if !looks.iter().any(is_kept) {
        return Err(nothing_alike(dump, families.values().zip(&looks)));
    }
    let mut kept = vec![false; dump.arrays.len()];
    for (members, look) in families.values().zip(&looks) {
        members.iter().for_each(|member| kept[*member] = is_kept(look));
        if !is_kept(look) {
            dump.notes.push(left_out(dump, members, look));
        }
    }
    let mut kept = kept.into_iter();
    dump.arrays.retain(|_| kept.next().unwrap_or(true));
    Ok(())
}

/// The names of arrays, as many as fit a line.
pub(super) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown: Vec<String> = names.take(LISTED).map(|name| format!("{name:?}")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn keep_named(dump: &mut Dump, names: &[String]) -> Result<()> {
    for name in names {
        let pattern = Pattern::new(name).ok();
        let fits = |array: &str| array == name || pattern.as_ref().is_some_and(|pattern| pattern.matches(array));
        if let Some(note) = dump.left_out.iter().find(|left_out| fits(&left_out.name)) {
            return Err(Error::data(&dump.file, format!("--array {name:?}: {}", note.note())));
        }
        if !dump.arrays.iter().any(|array| fits(&array.name)) {
            let all = listed(dump.arrays.iter().map(|array| array.name.as_str()));
            return Err(Error::usage(format!("--array {name:?} is not in {}, which has {all}", dump.file)));
        }
    }
    let patterns: Vec<Pattern> = names.iter().filter_map(|name| Pattern::new(name).ok()).collect();
    dump.arrays
        .retain(|array| names.contains(&array.name) || patterns.iter().any(|pattern| pattern.matches(&array.name)));
    Ok(())
}

/// The indices of arrays, by their names without numbers.
fn families(arrays: &[Array]) -> BTreeMap<String, Vec<usize>> {
    let mut families: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, array) in arrays.iter().enumerate() {
        let mut pattern = array.name.replace(|letter: char| letter.is_ascii_digit(), "#");
        while pattern.contains("##") {
            pattern = pattern.replace("##", "#");
        }
        families.entry(pattern).or_default().push(index);
    }
    families
}

/// What the members of a family look like: like attention, if one of a few does.
fn look_at_family(dump: &Dump, members: &[usize], options: &ReadOptions) -> Result<Likeness> {
    let step = members.len().div_ceil(LOOKS).max(1);
    let mut found = None;
    for member in members.iter().step_by(step) {
        match look_at_array(dump, &dump.arrays[*member], options)? {
            Likeness::Foreign(what) => found = found.or(Some(Likeness::Foreign(what))),
            likeness => return Ok(likeness),
        }
    }
    Ok(found.unwrap_or(Likeness::Attention))
}

/// Looks at the first stream of an array, its rows as late in the sequence as its columns allow.
fn look_at_array(dump: &Dump, array: &Array, options: &ReadOptions) -> Result<Likeness> {
    let mut array = array.clone();
    let stream = match provisional(dump, &array, options) {
        Ok(stream) => stream,
        Err(problem) => return Ok(Likeness::Foreign(problem)),
    };
    if !array.fortran || stream.rows == 0 {
        return look(&stream);
    }
    row_order::make_rows_contiguous(&mut array, &dump.file, options.max_memory, &mut Vec::new())?;
    provisional(dump, &array, options).map_or_else(|problem| Ok(Likeness::Foreign(problem)), |stream| look(&stream))
}

fn left_out(dump: &Dump, members: &[usize], look: &Likeness) -> String {
    let what = match look {
        Likeness::Foreign(what) => what.clone(),
        _ => "other arrays hold attention".to_owned(),
    };
    let name = &dump.arrays[members[0]].name;
    match members.len() {
        1 => format!("array {name:?} is left out: {what}"),
        more => format!("array {name:?} and {} like it are left out: {what}", more - 1),
    }
}

fn nothing_alike<'a>(dump: &Dump, looks: impl Iterator<Item = (&'a Vec<usize>, &'a Likeness)>) -> Error {
    let said: Vec<String> = looks.take(LISTED).map(|(members, look)| left_out(dump, members, look)).collect();
    let said = said.join("; ").replace(" is left out", "").replace(" are left out", "");
    Error::data(&dump.file, format!("no array looks like attention ({said}): choose one with --array NAME"))
}
