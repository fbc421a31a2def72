//! What the user says otherwise than a dump's metadata: it holds, and is noted. Windows are noted where any trace
//! is opened.

use super::dump::Dump;
use super::positions::{COLUMN_OFFSET, FIRST_POSITION};
use crate::trace::limits::quoted;
use crate::trace::options::{PerLayer, ReadOptions};
use crate::word::Word;

/// A line for each flag that the metadata says something else of.
pub(super) fn notes(dump: &Dump, options: &ReadOptions) -> Vec<String> {
    let self_attention = options.self_attention.map(|kind| kind.word().to_owned());
    let first = options.first_position.map(|first| first.to_string());
    let notes = [one(dump, "self", "--self", self_attention), one(dump, FIRST_POSITION, "--first-position", first)];
    notes.into_iter().flatten().chain(offset(dump, &options.column_offset)).collect()
}

fn one(dump: &Dump, key: &str, flag: &str, said: Option<String>) -> Option<String> {
    let (said, known) = (said?, dump.metadata.get(key)?);
    (known.trim() != said).then(|| format!("its metadata says that {key} is {}: {flag} makes it {said}", quoted(known)))
}

/// The first layer stands for all.
fn offset(dump: &Dump, said: &PerLayer) -> Option<String> {
    let layers = dump.metadata.keys().filter_map(|key| key.strip_prefix(COLUMN_OFFSET)?.parse::<u32>().ok());
    layers.into_iter().find_map(|layer| {
        one(
            dump,
            &format!("{COLUMN_OFFSET}{layer}"),
            "--column-offset",
            said.of(layer).map(|offset| offset.to_string()),
        )
    })
}
