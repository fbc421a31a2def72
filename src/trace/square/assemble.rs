//! From the arrays of a file to a trace: one step after the other, each in a file of its own.

use super::choose::choose;
use super::dump::{Dump, LeftOut};
use super::find::find_streams;
use super::place::place_streams;
use super::probe::{Likeness, look};
use super::report::Report;
use super::source::SquareTrace;
use super::stream::Stream;
use super::{contradicted, padding, positions, row_order, self_kind};
use crate::error::{Error, Result};
use crate::trace::options::{ColumnOrder, ReadOptions};
use crate::trace::{Metadata, ModelFacts, SelfAttention, Source, StreamInfo, TraceInfo};
use crate::word::Word;

/// Notes on single arrays, at most.
const MAX_NOTES: usize = 8;

/// Makes a trace of the arrays.
///
/// # Errors
/// When they are not attention, when it cannot be known which position a row or a column stands for, or when
/// the file cannot be read.
pub(in crate::trace) fn open(mut dump: Dump, options: &ReadOptions) -> Result<Box<dyn Source>> {
    choose(&mut dump, options)?;
    note_left_out(&mut dump, options);
    let found = find_streams(&mut dump, options)?;
    for array in &mut dump.arrays {
        row_order::make_rows_contiguous(array, &dump.file, options.max_memory, &mut dump.notes)?;
    }
    let streams = place_streams(&dump, &found, options)?;
    check_ring(&streams, options)?;
    dump.notes.extend(positions::notes(&streams));
    dump.notes.extend(found.notes);
    refuse_what_is_not_attention(&streams, options)?;
    dump.notes.extend(contradicted::notes(&dump, options));
    let said = said_self(&dump, options)?;
    let self_attention = match said {
        Some(kind) => kind,
        None => self_kind::from_diagonal(&dump.file, &streams)?,
    };
    let mut read_as = found.read_as;
    if said.is_none() && self_attention == SelfAttention::Excluded {
        dump.notes.push(self_kind::EXCLUDED_NOTE.to_owned());
        read_as.push("--self excluded".to_owned());
    }
    if let Some(len) = found.prompt_len {
        let len = len.saturating_sub(options.start.unwrap_or(0));
        dump.metadata.entry("prompt_len".to_owned()).or_insert_with(|| len.to_string());
    }
    if self_attention == SelfAttention::Included {
        dump.notes.extend(padding::note(&streams)?);
    }
    Ok(Box::new(trace(dump, streams, self_attention, read_as)?))
}

fn check_ring(streams: &[Stream], options: &ReadOptions) -> Result<()> {
    if options.columns == ColumnOrder::Ascending || streams.iter().any(Stream::slides) {
        return Ok(());
    }
    Err(Error::usage("--columns ring is for layers as wide as their sliding window: say it with --layer-window"))
}

fn note_left_out(dump: &mut Dump, options: &ReadOptions) {
    let left_out = if options.arrays.is_empty() { &dump.left_out[..] } else { &[] };
    dump.notes.extend(left_out.iter().take(MAX_NOTES).map(LeftOut::note));
    if left_out.len() > MAX_NOTES {
        dump.notes.push(format!("{} more arrays are left out", left_out.len() - MAX_NOTES));
    }
}

fn said_self(dump: &Dump, options: &ReadOptions) -> Result<Option<SelfAttention>> {
    let word = dump.metadata.get("self").filter(|_| options.self_attention.is_none());
    match word.map(|word| SelfAttention::from_word(word).ok_or(word)) {
        None => Ok(options.self_attention),
        Some(Ok(kind)) => Ok(Some(kind)),
        Some(Err(word)) => {
            let problem = format!("self is {word:?} in the metadata, must be \"included\" or \"excluded\"");
            Err(Error::data(&dump.file, problem))
        }
    }
}

fn refuse_what_is_not_attention(streams: &[Stream], options: &ReadOptions) -> Result<()> {
    // The heads of an array have gone through the same hands: one of each layer will do.
    for same_layer in streams.chunk_by(|a, b| a.label.layer == b.label.layer) {
        let stream = &same_layer[0];
        let problem = match look(stream)? {
            Likeness::Attention => continue,
            Likeness::Scaled(_) if options.normalize.is_some() => continue,
            Likeness::Scaled(what) | Likeness::Foreign(what) => what,
        };
        return Err(Error::data(stream.place(stream.first_sound_row()), problem));
    }
    Ok(())
}

fn trace(dump: Dump, streams: Vec<Stream>, kind: SelfAttention, read_as: Vec<String>) -> Result<SquareTrace> {
    let describe = |stream: &Stream| StreamInfo {
        label: stream.label.clone(),
        rows: stream.rows - stream.first_row(kind),
        dtype: stream.dtype(),
    };
    let mut info = TraceInfo {
        name: dump.file,
        format: dump.format,
        self_attention: kind,
        first_position: kind.first_step(),
        positions: 0,
        streams: streams.iter().map(describe).collect(),
        metadata: Metadata::new(),
        facts: ModelFacts::default(),
        notes: dump.notes,
        read_as,
    };
    // Streams begin together, but one may end before the others.
    let longest = streams.iter().filter(|stream| stream.first_row(kind) < stream.rows).max_by_key(|stream| stream.rows);
    if let Some(stream) = longest {
        info.first_position = stream.step(stream.first_row(kind));
        info.positions = stream.step(stream.rows).index();
    }
    info.set_metadata(positions::without_applied(dump.metadata))?;
    let report = Report::new(streams.len());
    Ok(SquareTrace { info, streams, report, content: dump.content })
}
