//! JSON lines: one object per row, for hand-written traces and pipes.
//!
//! A first pass checks every line and notes where each row stands, so that streams which interleave
//! can be opened side by side; the rows are parsed again as they are replayed. What can be read once
//! only is kept in a temporary file for the second pass.

mod line;
mod weights;

use super::{Metadata, ModelFacts, RowBlock, RowReader, Source, StreamInfo, StreamLabel, TraceInfo, hash};
use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::SelfAttention;
use crate::trace::limits::check_positions;
use crate::trace::options::ReadOptions;
use crate::trace::storage::{Bytes, SharedFile, Storage, copy_failed, new_copy};
use crate::word::Word;
use line::{HeaderLine, Line, RowLine};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What some editors put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// No line may be longer: a file without line ends must not fill the memory.
const MAX_LINE: u64 = 1 << 28;

/// Opens a JSON lines file.
///
/// # Errors
/// When the file cannot be read or a line is not a sound row.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let file = SharedFile::open(path)?;
    let scan = Scan::new(path.display().to_string(), options).run(BufReader::new(file.reader(0)))?;
    Ok(Box::new(scan.into_trace(Storage::File(file))?))
}

/// Reads JSON lines to their end from what can be read once only, such as a pipe; they are kept in a temporary file
/// for the second pass.
///
/// # Errors
/// When a line is not a sound row, or the temporary file cannot be written.
pub(super) fn open_stream(name: &str, bytes: &mut dyn Read, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let copy = new_copy()?;
    let tee = Tee { from: bytes, to: &copy };
    let scan = Scan::new(name.to_owned(), options).run(BufReader::new(tee))?;
    Ok(Box::new(scan.into_trace(Storage::File(copy.into()))?))
}

/// Hands on what it reads and keeps a copy.
struct Tee<'a> {
    from: &'a mut dyn Read,
    to: &'a File,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.to.write_all(&buffer[..read]).map_err(|error| copy_failed(&error))?;
        Ok(read)
    }
}

/// Where one row's line is.
#[derive(Clone, Copy)]
struct LinePlace {
    number: usize,
    start: u64,
    len: usize,
}

struct JsonLinesTrace {
    info: TraceInfo,
    storage: Storage,
    streams: Vec<Arc<[LinePlace]>>,
}

impl Source for JsonLinesTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        Ok(Box::new(LineReader {
            name: self.info.name.clone(),
            label: self.info.streams[stream].label.clone(),
            kind: self.info.self_attention,
            first: self.info.first_position,
            bytes: self.storage.open(),
            lines: Arc::clone(&self.streams[stream]),
            next: 0,
            text: Vec::new(),
        }))
    }

    fn content_hash(&self) -> Result<String> {
        hash::of_storage(&self.storage).map_err(|error| Error::io(Path::new(&self.info.name), error))
    }

    fn place(&self, stream: usize, step: Position) -> String {
        let label = &self.info.streams[stream].label;
        let row = (step.0 - self.info.first_position.0) as usize;
        let number = self.streams[stream][row].number;
        format!("{}:{number}: layer {} head {}: row {step}", self.info.name, label.layer, label.head)
    }
}

struct LineReader {
    name: String,
    label: StreamLabel,
    kind: SelfAttention,
    first: Position,
    bytes: Box<dyn Bytes>,
    lines: Arc<[LinePlace]>,
    next: usize,
    text: Vec<u8>,
}

impl RowReader for LineReader {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let end = self.lines.len().min(self.next.saturating_add(rows));
        for index in self.next..end {
            let row = self.parse(index)?;
            block.push(Position(row.step), row.weights());
        }
        let read = end - self.next;
        self.next = end;
        Ok(read)
    }
}

impl LineReader {
    /// Reads a line again, which must still be the row that the first pass found there.
    fn parse(&mut self, index: usize) -> Result<RowLine> {
        let place = self.lines[index];
        self.text.resize(place.len, 0);
        self.bytes
            .seek(SeekFrom::Start(place.start))
            .and_then(|_| self.bytes.read_exact(&mut self.text))
            .map_err(|error| Error::io(Path::new(&self.name), error))?;
        match Line::parse(&self.text) {
            Ok(Line::Row(row)) if self.is_found_again(&row, index) => Ok(row),
            _ => Err(Error::data(format!("{}:{}", self.name, place.number), "the file changed while it was read")),
        }
    }
}

impl LineReader {
    fn is_found_again(&self, row: &RowLine, index: usize) -> bool {
        let step = self.first.index() + index;
        row.step as usize == step && row.label() == self.label && row.check_len(self.kind).is_ok()
    }
}

/// The first pass.
struct Scan {
    name: String,
    header: Option<HeaderLine>,
    self_attention: Option<SelfAttention>,
    /// The step of every stream's first row, where it is said.
    first_position: Option<usize>,
    streams: BTreeMap<StreamLabel, Vec<LinePlace>>,
}

impl Scan {
    fn new(name: String, options: &ReadOptions) -> Scan {
        let first_position = options.first_position;
        Scan { name, header: None, self_attention: None, first_position, streams: BTreeMap::new() }
    }

    fn run(mut self, mut reader: impl BufRead) -> Result<Scan> {
        let path = PathBuf::from(&self.name);
        let mut place = LinePlace { number: 0, start: 0, len: 0 };
        let mut text = Vec::new();
        loop {
            text.clear();
            place.start += place.len as u64;
            place.number += 1;
            place.len =
                (&mut reader).take(MAX_LINE).read_until(b'\n', &mut text).map_err(|error| Error::io(&path, error))?;
            if place.len == 0 {
                break;
            }
            if place.number == 1 && text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len());
                place.start += BYTE_ORDER_MARK.len() as u64;
                place.len -= BYTE_ORDER_MARK.len();
            }
            self.line(&text, place)
                .map_err(|problem| Error::data(format!("{}:{}", self.name, place.number), problem))?;
        }
        Ok(self)
    }

    fn line(&mut self, text: &[u8], place: LinePlace) -> Result<(), String> {
        if text.len() as u64 == MAX_LINE {
            return Err(format!("a line of more than {MAX_LINE} bytes"));
        }
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        match Line::parse(text)? {
            Line::Header(header) if self.header.is_none() && self.streams.is_empty() => {
                self.self_attention = header.self_attention;
                self.first_position = self.first_position.or(header.first_position);
                self.header = Some(header);
                self.first_position.map_or(Ok(()), check_positions)
            }
            Line::Header(_) => Err("a header line must be the first line".to_owned()),
            Line::Row(row) => self.row(&row, place),
        }
    }

    fn row(&mut self, row: &RowLine, place: LinePlace) -> Result<(), String> {
        let kind = *self.self_attention.get_or_insert_with(|| row.guess_self_attention());
        let lines = self.streams.entry(row.label()).or_default();
        let first = kind.first_step().index().max(self.first_position.unwrap_or(0));
        let expected = first + lines.len();
        if row.step as usize != expected {
            let (step, label, word) = (row.step, row.label(), kind.word());
            let from = match self.first_position {
                Some(_) => format!("from {first}, as first_position says"),
                None => {
                    format!("from {first} where self is {word} (rows that begin later need --first-position {step})")
                }
            };
            return Err(format!(
                "step is {step}, stream {label} expects {expected}: the steps of a stream are consecutive, {from}"
            ));
        }
        check_positions(expected)?;
        row.check_len(kind)?;
        let most = self.header.as_ref().and_then(|header| header.seq_len);
        if most.is_some_and(|most| expected >= most) {
            return Err(format!("step {expected} lies past the seq_len of {} in the header", most.unwrap_or(0)));
        }
        lines.push(place);
        Ok(())
    }

    fn into_trace(self, storage: Storage) -> Result<JsonLinesTrace> {
        let self_attention = self.self_attention.unwrap_or(SelfAttention::Excluded);
        let rows = self.streams.values().map(Vec::len).max().unwrap_or(0);
        let header = self.header.unwrap_or_default();
        let first = self_attention.first_step().index().max(self.first_position.unwrap_or(0));
        let found = if rows == 0 { 0 } else { first + rows };
        let describe = |(label, lines): (&StreamLabel, &Vec<LinePlace>)| StreamInfo {
            label: label.clone(),
            rows: lines.len(),
            dtype: "json",
        };
        let (said, begins) = (header.seq_len, header.first_position);
        let mut info = TraceInfo {
            name: self.name,
            format: "jsonl",
            self_attention,
            first_position: Position(first as u32),
            positions: said.unwrap_or(found),
            streams: self.streams.iter().map(describe).collect(),
            metadata: Metadata::new(),
            facts: ModelFacts::default(),
            notes: [longer_than_found(said, found), begins_elsewhere(begins, self.first_position)]
                .into_iter()
                .flatten()
                .collect(),
            read_as: Vec::new(),
        };
        info.set_metadata(header.metadata)?;
        Ok(JsonLinesTrace { info, storage, streams: self.streams.into_values().map(Arc::from).collect() })
    }
}

fn longer_than_found(said: Option<usize>, found: usize) -> Option<String> {
    let said = said.filter(|said| found > 0 && *said > found)?;
    Some(format!("the header says {said} positions, the rows make {found}: percentages are of {said}"))
}

fn begins_elsewhere(header: Option<usize>, taken: Option<usize>) -> Option<String> {
    let (header, taken) = (header?, taken?);
    (header != taken)
        .then(|| format!("its header says that first_position is {header}: --first-position makes it {taken}"))
}
