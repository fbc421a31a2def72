//! Native traces side by side as one: a file for each layer, or shards. Knows no file format.

use super::options::{ReadOption, ReadOptions};
use super::{Metadata, RowReader, Source, StreamInfo, TraceInfo, hash};
use crate::error::{Error, Result};
use crate::needs::Needs;
use crate::position::Position;
use crate::tensors::{HeadTensors, LayerTensors};
use crate::word::Word;

/// What the files of one trace must agree on.
const AGREED: &[&str] = &[
    "kvsim",
    "self",
    "seq_len",
    "first_position",
    "model",
    "prompt_len",
    "num_layers",
    "query_heads",
    "kv_heads",
    "head_dim",
    "group",
];

/// Adds what one of the files says; where they differ in what tells nothing of the attention, the first is kept.
///
/// # Errors
/// When they do not agree on what a replay goes by.
pub(super) fn add_metadata(name: &str, joined: &mut Metadata, metadata: Metadata) -> Result<()> {
    for (key, value) in metadata {
        match joined.get(&key) {
            Some(said) if *said != value && AGREED.contains(&key.as_str()) => {
                let problem = format!("its files do not agree on {key}: {said:?} and {value:?}");
                return Err(Error::data(name, problem));
            }
            Some(_) => {}
            None => drop(joined.insert(key, value)),
        }
    }
    Ok(())
}

/// Native traces whose streams stand side by side.
struct JoinedTrace {
    info: TraceInfo,
    sources: Vec<Box<dyn Source>>,
    /// For each stream, its source and its index there.
    streams: Vec<(usize, usize)>,
}

/// Opens native traces as one.
///
/// # Errors
/// When they are not of one kind and length, or a stream is there twice.
pub(super) fn open(name: String, sources: Vec<Box<dyn Source>>, options: &ReadOptions) -> Result<Box<dyn Source>> {
    options.allow_only(ReadOption::COMMON, "a native trace")?;
    let mut info = TraceInfo { name, streams: Vec::new(), ..sources[0].info().clone() };
    let mut streams: Vec<(StreamInfo, (usize, usize))> = Vec::new();
    let mut metadata = Metadata::new();
    for (index, source) in sources.iter().enumerate() {
        check_alike(sources[0].info(), source.info())?;
        let own = source.info().streams.iter().cloned().enumerate();
        streams.extend(own.map(|(stream, described)| (described, (index, stream))));
        add_metadata(&info.name, &mut metadata, source.info().metadata.clone())?;
    }
    info.set_metadata(metadata)?;
    streams.sort_by(|a, b| a.0.label.cmp(&b.0.label));
    for pair in streams.windows(2) {
        if pair[0].0.label == pair[1].0.label {
            let other = &sources[pair[0].1.0].info().name;
            let problem = format!("stream {} is in {other} too", pair[1].0.label);
            return Err(Error::data(&sources[pair[1].1.0].info().name, problem));
        }
    }
    let (described, places) = streams.into_iter().unzip();
    info.streams = described;
    Ok(Box::new(JoinedTrace { info, sources, streams: places }))
}

fn check_alike(first: &TraceInfo, other: &TraceInfo) -> Result<()> {
    let facts = |info: &TraceInfo| (info.self_attention.word(), info.first_position, info.positions);
    if facts(first) == facts(other) {
        return Ok(());
    }
    let said = |info: &TraceInfo| {
        let (word, first, positions) = facts(info);
        format!("self {word}, {positions} positions, rows from position {first}")
    };
    let problem = format!("{}, while {} has {}: these are not one trace", said(other), first.name, said(first));
    Err(Error::data(&other.name, problem))
}

impl Source for JoinedTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        let (source, stream) = self.streams[stream];
        self.sources[source].open(stream)
    }

    fn offers(&self) -> Needs {
        self.sources.iter().map(|source| source.offers()).reduce(Needs::common).unwrap_or(Needs::WHOLE_ROWS)
    }

    fn head_tensors(&self, stream: usize, needs: Needs) -> Result<Option<HeadTensors>> {
        let (source, stream) = self.streams[stream];
        self.sources[source].head_tensors(stream, needs)
    }

    fn layer_tensors(&self, layer: u32) -> Result<Option<LayerTensors>> {
        let found = self.sources.iter().map(|source| source.layer_tensors(layer));
        found.filter_map(Result::transpose).next().transpose()
    }

    fn content_hash(&self) -> Result<String> {
        let hashes = self.sources.iter().map(|source| source.content_hash()).collect::<Result<Vec<_>>>()?;
        Ok(hash::of_text(&hashes.concat()))
    }

    fn place(&self, stream: usize, step: Position) -> String {
        let (source, stream) = self.streams[stream];
        self.sources[source].place(stream, step)
    }

    fn warnings(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.warnings()).collect()
    }

    fn remarks(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.remarks()).collect()
    }
}
