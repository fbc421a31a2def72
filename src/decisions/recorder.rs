//! Writes decisions while a replay runs: a line for each cache and lane, as soon as the cache's rows have ended.
//!
//! Held in memory are the evictions of the caches that are being replayed, eight bytes each.

use super::header::Header;
use crate::error::{Error, Result};
use crate::needs::Needs;
use crate::position::Position;
use crate::replay::{CachePlan, Observer, StepRecord};
use crate::trace::StreamLabel;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

/// Writes what leaves each cache of each lane.
pub struct Recorder<W: Write> {
    lanes: usize,
    /// For each cache its index, and the rows that it has.
    caches: BTreeMap<StreamLabel, (usize, usize)>,
    state: Mutex<State<W>>,
}

struct State<W> {
    output: W,
    /// The caches that have begun.
    begun: BTreeMap<usize, Begun>,
    written: Vec<bool>,
}

/// What has left a cache so far.
struct Begun {
    rows: usize,
    /// One entry for each lane.
    left: Vec<Left>,
}

#[derive(Clone, Default)]
struct Left {
    positions: Vec<Position>,
    steps: Vec<Position>,
}

impl<W: Write> Recorder<W> {
    /// Begins a file; each cache of the header has as many rows as `rows` says.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn new(mut output: W, header: &Header, rows: &[usize]) -> io::Result<Recorder<W>> {
        writeln!(output, "{}", header.to_json())?;
        let caches = header.caches.iter().cloned().zip(rows.iter().copied().enumerate()).collect();
        let written = vec![false; header.caches.len()];
        let state = State { output, begun: BTreeMap::new(), written };
        Ok(Recorder { lanes: header.lanes.len(), caches, state: Mutex::new(state) })
    }

    /// Ends the file, and hands back the output.
    ///
    /// # Errors
    /// When it refuses.
    pub fn finish(self) -> io::Result<W> {
        let State { mut output, mut begun, written } = self.state.into_inner().expect("no thread panicked");
        for index in (0..written.len()).filter(|index| !written[*index]) {
            let nothing = || vec![Left::default(); self.lanes];
            write(&mut output, index, &begun.remove(&index).map_or_else(nothing, |cache| cache.left))?;
        }
        Ok(output)
    }

    fn add(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> io::Result<()> {
        let Some(&(index, rows)) = self.caches.get(&cache.label) else { return Ok(()) };
        let mut state = self.state.lock().expect("no thread panicked");
        let nothing = || Begun { rows: 0, left: vec![Left::default(); self.lanes] };
        let begun = state.begun.entry(index).or_insert_with(nothing);
        begun.rows += records.iter().map(Vec::len).max().unwrap_or(0);
        begun.left.iter_mut().zip(records).for_each(|(left, records)| left.add(records));
        if begun.rows < rows {
            return Ok(());
        }
        let left = state.begun.remove(&index).map(|begun| begun.left).unwrap_or_default();
        state.written[index] = true;
        write(&mut state.output, index, &left)
    }
}

impl Left {
    fn add(&mut self, records: &[StepRecord]) {
        for record in records {
            self.positions.extend(&record.victims);
            self.steps.resize(self.positions.len(), record.step);
        }
    }
}

fn write(output: &mut impl Write, cache: usize, lanes: &[Left]) -> io::Result<()> {
    for (lane, left) in lanes.iter().enumerate() {
        write!(output, "{{\"cache\":{cache}")?;
        if lanes.len() > 1 {
            write!(output, ",\"lane\":{lane}")?;
        }
        for (name, numbers) in [("position", &left.positions), ("step", &left.steps)] {
            write!(output, ",\"{name}\":[")?;
            for (i, number) in numbers.iter().enumerate() {
                write!(output, "{}{number}", if i > 0 { "," } else { "" })?;
            }
            write!(output, "]")?;
        }
        writeln!(output, "}}")?;
    }
    Ok(())
}

impl<W: Write + Send> Observer for Recorder<W> {
    fn needs(&self) -> Needs {
        Needs::STEP_RECORDS
    }

    fn steps(&self, cache: &CachePlan, records: &[Vec<StepRecord>]) -> Result<()> {
        self.add(cache, records).map_err(|error| Error::io(Path::new("decisions"), error))
    }
}
