//! Traces and lanes drawn at random, the same in every run, and files of them.

use crate::common::files::Folder;
use crate::reference::SelfKind;
use crate::slow::{Combine, Keep, PLAIN, Situation};
use kvsim::policy::parameter::{BLOCK_SIZE, Kind, Parameter, RECENT_SIZE, START_SIZE, Value, Values};
use kvsim::policy::share::Share;
use kvsim::policy::table::POLICIES;
use kvsim::position::Position;
use kvsim::replay::LanePlan;
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::rng::Xoshiro128;
use kvsim::trace::safetensors::{StoredType, write};
use kvsim::trace::{RowBlock, SelfAttention, Source};
use kvsim::word::Word;

/// A generator with the draws that tests need.
pub struct Dice(Xoshiro128);

impl Dice {
    pub fn new(seed: u32) -> Dice {
        Dice(Xoshiro128::new(seed))
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.below(count as u32) as usize
    }

    /// Whether one chance in `count` came true.
    pub fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn any_kind(&mut self) -> SelfKind {
        if self.once_in(2) { SelfKind::Excluded } else { SelfKind::Included }
    }

    /// A row that attends to positions from `first` on: smooth, coarse with ties, or of zeros.
    fn row(&mut self, len: usize, first: usize) -> Vec<f32> {
        let values = [1 << 16, 17, 3][self.below(3)];
        let mut row: Vec<f32> = (0..len).map(|_| self.below(values) as f32).collect();
        row[..first.min(len)].fill(0.0);
        let total: f32 = row.iter().sum();
        row.iter().map(|weight| if total > 0.0 { weight / total } else { 0.0 }).collect()
    }

    /// Rows from step `first` on that obey the window, some of them without attention.
    pub fn rows(&mut self, kind: SelfKind, first: usize, count: usize, window: Option<usize>) -> Rows {
        let row = |step: usize| {
            let oldest = window.map_or(0, |window| (step + 1).saturating_sub(window));
            let row = self.row(kind.row_length(step), oldest);
            if self.once_in(9) { None } else { Some(row) }
        };
        (first..first + count).map(row).collect()
    }

    /// A situation in which everything may come together.
    pub fn situation(&mut self, most_heads: usize, most_rows: usize) -> Situation {
        let kind = self.any_kind();
        let first = if self.once_in(2) { kind.step_at(0) } else { kind.step_at(0) + self.below(9) };
        let count = 1 + self.below(most_rows);
        let window = (!self.once_in(3)).then(|| 1 + self.below(12));
        let heads = (0..=self.below(most_heads)).map(|_| self.rows(kind, first, count, window)).collect();
        let prompt = if self.once_in(2) { 0 } else { self.below(first + count + 1) };
        let (renormalized, k) = (self.once_in(4), 1 + self.below(4));
        Situation { kind, first, heads, prompt, window, renormalized, k, keep: PLAIN }
    }

    /// A way to keep a cache in which everything may come together.
    pub fn keep(&mut self) -> Keep {
        let combine = [Combine::Mean, Combine::Max, Combine::Sum, Combine::Each][self.below(4)];
        let every = if self.once_in(2) { 1 } else { 1 + self.below(7) };
        let page = if self.once_in(2) { 1 } else { 2 + self.below(3) };
        let chunk = if self.once_in(2) { None } else { Some(1 + self.below(6)) };
        Keep { combine, every, page, once: self.once_in(3), chunk }
    }

    /// A lane of every entry of the table that has a kept set or bounds one, with small random parameters;
    /// impossible ones are left out.
    pub fn lanes(&mut self, budget: usize) -> Vec<LanePlan> {
        let entries = POLICIES.iter().filter(|entry| !entry.is_selector() && !entry.needs_more_than_rows());
        let mut lanes: Vec<LanePlan> = entries.map(|entry| LanePlan::new(entry, budget)).collect();
        for lane in &mut lanes {
            for (parameter, _) in lane.entry.parameters {
                lane.values.set(parameter, self.value(parameter));
            }
        }
        lanes.iter_mut().for_each(|lane| in_whole_blocks(&mut lane.values));
        lanes.retain(|lane| lane.check().is_ok());
        lanes
    }

    fn value(&mut self, parameter: &Parameter) -> Value {
        match parameter.kind {
            Kind::Count { least, odd: true } => Value::Count((least + self.below(5)) | 1),
            Kind::Count { least, odd: false } => Value::Count(least + self.below(4)),
            Kind::Real { least, most } => Value::Real(least + (most - least).min(3.0) * self.below(5) as f64 / 4.0),
            Kind::Word(words) => Value::Word(words[self.below(words.len())]),
            Kind::CountOr(word) => Value::Word(word),
            Kind::CountOrShare { .. } if self.once_in(2) => Value::Count(1 + self.below(4)),
            Kind::CountOrShare { .. } => Value::Share(Share::percent(1 + self.below(100) as u64)),
        }
    }
}

/// Makes sizes that must be so whole numbers of blocks.
pub fn in_whole_blocks(values: &mut Values) {
    if let Some(Value::Count(block)) = values.get(&BLOCK_SIZE) {
        for size in [&START_SIZE, &RECENT_SIZE] {
            values.set(size, Value::Count(values.count(size) * block));
        }
    }
}

/// The kind of rows, as the crate calls it.
pub fn self_attention(kind: SelfKind) -> SelfAttention {
    match kind {
        SelfKind::Excluded => SelfAttention::Excluded,
        SelfKind::Included => SelfAttention::Included,
    }
}

/// A trace of these streams whose first row is that of step `first`.
pub fn trace(kind: SelfKind, first: usize, streams: &[(u32, &str, &Rows)]) -> MemoryTrace {
    let empty = MemoryTrace::new("made by a test", self_attention(kind)).with_first_position(Position(first as u32));
    streams.iter().fold(empty, |trace, (layer, head, rows)| {
        trace.with_stream(*layer, head, Rows::clone(rows)).expect("rows of the right length")
    })
}

/// Rows that all hold attention, of this many positions, self included.
pub fn known_rows(seed: u32, positions: usize) -> Rows {
    let mut dice = Dice::new(seed);
    let mut row = |len: usize| {
        let row: Vec<f32> = (0..len).map(|_| (1 + dice.below(1000)) as f32).collect();
        let total: f32 = row.iter().sum();
        Some(row.iter().map(|weight| weight / total).collect())
    };
    (1..=positions).map(&mut row).collect()
}

/// Writes a native file of a trace, and returns its place.
pub fn native(folder: &Folder, name: &str, source: &dyn Source) -> String {
    let mut bytes = Vec::new();
    write(source, StoredType::F32, &mut bytes, &|_| {}).expect("every row holds attention");
    folder.write(name, bytes)
}

/// Writes a native file of a trace whose weights may be none, and returns its place.
pub fn unsound_native(folder: &Folder, name: &str, source: &dyn Source) -> String {
    let info = source.info();
    let mut metadata = info.metadata.clone();
    metadata
        .extend([("kvsim", "1"), ("self", info.self_attention.word())].map(|(key, value)| (key.into(), value.into())));
    let (mut header, mut data) = (serde_json::json!({ "__metadata__": metadata }), Vec::new());
    for (stream, description) in info.streams.iter().enumerate() {
        let (mut block, start) = (RowBlock::default(), data.len());
        source.open(stream).expect("opened").read(&mut block, usize::MAX).expect("read");
        data.extend(block.rows().flat_map(|row| row.weights).flat_map(|weight| weight.to_le_bytes()));
        let entry = serde_json::json!({
            "dtype": "F32", "shape": [(data.len() - start) / 4], "data_offsets": [start, data.len()],
        });
        header[format!("attention.{}", description.label)] = entry;
    }
    let header = header.to_string();
    folder.write(name, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat())
}
