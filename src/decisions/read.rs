//! Reads a file of decisions, line by line.

use super::header::Header;
use crate::error::{Error, Result};
use crate::policy::future::Departures;
use crate::position::Position;
use crate::replay::Playback;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Positions that left a cache, each with the step after which it did.
pub type Evictions = Vec<(Position, Position)>;

/// A file of decisions.
#[derive(Clone, PartialEq, Debug)]
pub struct Decisions {
    /// Name of the file.
    pub name: String,
    /// What they are about.
    pub header: Header,
    /// By lane, then cache: who left when, by step, then position.
    pub left: Vec<Vec<Evictions>>,
}

impl Decisions {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Names file, line and what is wrong.
    pub fn read(path: &Path) -> Result<Decisions> {
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        Decisions::read_from(&path.display().to_string(), BufReader::new(file))
    }

    /// Reads what is called `name`.
    ///
    /// # Errors
    /// As [`Decisions::read`].
    pub fn read_from(name: &str, input: impl BufRead) -> Result<Decisions> {
        let mut lines = (1..).zip(input.lines()).map(|(number, line)| parse(name, number, line));
        let (_, first) = lines.next().unwrap_or(Ok((1, Value::Null)))?;
        let header = Header::parse(&first).map_err(|problem| Error::data(format!("{name}:1"), problem))?;
        let mut left = vec![vec![None; header.caches.len()]; header.lanes.len()];
        for line in lines {
            let (number, line) = line?;
            add(&mut left, &header, &line).map_err(|problem| Error::data(format!("{name}:{number}"), problem))?;
        }
        let whole = |(index, cache): (usize, Option<Evictions>)| {
            let problem = || format!("no line for cache {index}: the file was cut short, so write it again");
            cache.ok_or_else(|| Error::data(name, problem()))
        };
        let left = left.into_iter().map(|lane| lane.into_iter().enumerate().map(whole).collect());
        Ok(Decisions { name: name.to_owned(), left: left.collect::<Result<_>>()?, header })
    }

    /// The decisions of one lane, for the engine to replay.
    pub fn playback(&self, lane: usize) -> Playback {
        let departures = |evictions: &Evictions| {
            let mut departures = Departures::default();
            evictions.iter().for_each(|(position, step)| departures.set(*position, *step));
            departures
        };
        let left = self.left[lane].iter().map(departures);
        Playback::new(&self.name, self.header.caches.iter().cloned().zip(left).collect())
    }
}

fn parse(name: &str, number: usize, line: std::io::Result<String>) -> Result<(usize, Value)> {
    let place = || format!("{name}:{number}");
    let line = line.map_err(|error| Error::data(place(), error.to_string()))?;
    let value = serde_json::from_str(&line).map_err(|problem| Error::data(place(), format!("not JSON: {problem}")))?;
    Ok((number, value))
}

/// Puts a line in its place.
fn add(left: &mut [Vec<Option<Evictions>>], header: &Header, line: &Value) -> Result<(), String> {
    let index = |name: &str, least: &Value, count: usize| {
        let value = if line[name].is_null() { least } else { &line[name] };
        let found = value.as_u64().map(|index| index as usize).filter(|index| *index < count);
        found.ok_or_else(|| format!("{name:?} is {value}: there are 0..={}", count - 1))
    };
    let lane = index("lane", &Value::from(0), left.len())?;
    let cache = index("cache", &Value::Null, header.caches.len())?;
    let evictions = evictions(line, header.seq_len)?;
    match left[lane][cache].replace(evictions) {
        None => Ok(()),
        Some(_) => Err(format!("cache {cache} comes twice")),
    }
}

fn evictions(line: &Value, positions: Option<usize>) -> Result<Evictions, String> {
    let list = |name: &str| -> Option<Vec<Position>> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok()).map(Position);
        line[name].as_array()?.iter().map(number).collect()
    };
    let pairs = list("position").zip(list("step")).filter(|(positions, steps)| positions.len() == steps.len());
    let (left, steps) = pairs.ok_or("\"position\" and \"step\" are not two lists of whole numbers, equally long")?;
    let mut all: Evictions = left.into_iter().zip(steps).collect();
    let late = |step: Position| positions.is_some_and(|positions| step.index() >= positions);
    if let Some((position, step)) = all.iter().find(|(position, step)| position > step || late(*step)) {
        return Err(format!("position {position} leaves at step {step}, which cannot be"));
    }
    all.sort_unstable();
    if let Some(pair) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!("position {} leaves twice", pair[0].0));
    }
    all.sort_unstable_by_key(|(position, step)| (*step, *position));
    Ok(all)
}
