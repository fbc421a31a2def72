//! Synthetic traces: the rows of a mixture, bit-exact and a group of rows at a time.
//!
//! The definition is sequential (each weight is a sum in a fixed order, each row is divided by its
//! total summed in ascending order), so the speed comes from two facts: most positions of a row
//! hold the same value, and rows are independent, so that the sums of a group run side by side.

use super::mixture::{HeavyHitters, SinksInView, heavy_shares, local_shares};
use super::spec::{LocalSpec, MixtureSpec};
use super::spread::SpreadRows;
use super::{
    Head, Metadata, ModelFacts, RowBlock, RowReader, SelfAttention, Source, StreamInfo, StreamLabel, TraceInfo, hash,
};
use crate::error::Result;
use crate::position::Position;
use std::sync::Arc;

/// A trace made from a spec: one stream, layer 0, head 0, self excluded.
pub struct SyntheticTrace {
    info: TraceInfo,
    spec: Arc<MixtureSpec>,
}

impl SyntheticTrace {
    /// The trace of a checked spec.
    pub fn new(spec: MixtureSpec) -> SyntheticTrace {
        let label = StreamLabel { layer: 0, head: Head::Number(0) };
        let rows = SelfAttention::Excluded.rows_of(spec.positions);
        let info = TraceInfo {
            name: spec.name.clone(),
            format: "spec",
            self_attention: SelfAttention::Excluded,
            first_position: SelfAttention::Excluded.first_step(),
            positions: spec.positions,
            streams: vec![StreamInfo { label, rows, dtype: "f32" }],
            metadata: Metadata::from([("source".to_owned(), format!("synthetic, seed {}", spec.seed))]),
            facts: ModelFacts::default(),
            notes: Vec::new(),
            read_as: Vec::new(),
        };
        SyntheticTrace { info, spec: Arc::new(spec) }
    }
}

impl Source for SyntheticTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, _stream: usize) -> Result<Box<dyn RowReader>> {
        let spec = Arc::clone(&self.spec);
        let mostly_equal = spec.noise.spread == 0.0 && spec.local.width > 0;
        if mostly_equal { Ok(Box::new(Generator::new(spec))) } else { Ok(Box::new(SpreadRows::new(spec))) }
    }

    /// Of the spec without its name, which decides every weight.
    fn content_hash(&self) -> Result<String> {
        let nameless = MixtureSpec { name: String::new(), ..MixtureSpec::clone(&self.spec) };
        Ok(hash::of_text(&serde_json::to_string(&nameless).expect("a spec is plain numbers")))
    }
}

/// Rows whose sums are taken side by side.
const GROUP: usize = 16;

/// One value for each row of a group.
type Lanes = [f64; GROUP];

struct Generator {
    spec: Arc<MixtureSpec>,
    heavy: HeavyHitters,
    /// What each of them gets, in the same order.
    heavy_shares: Vec<f64>,
    /// What distances 1, 2, ... get in a row that sees the whole local band.
    local_shares: Vec<f64>,
    next: usize,
    /// Positions that hold more than noise in some row of the group, ascending.
    special: Vec<u32>,
    /// The undivided weights at those positions.
    values: Vec<Lanes>,
}

impl RowReader for Generator {
    fn read(&mut self, block: &mut RowBlock, rows: usize) -> Result<usize> {
        let end = self.spec.positions.min(self.next.saturating_add(rows));
        let start = self.next.min(end);
        while self.next < end {
            self.heavy.draw_for(&self.spec, self.next);
            let rows = (end.min(self.epoch_end()) - self.next).min(GROUP);
            self.write_group(block, rows);
            self.next += rows;
        }
        Ok(end - start)
    }
}

impl Generator {
    fn new(spec: Arc<MixtureSpec>) -> Generator {
        // No row sees all of a band as long as the trace.
        let whole_band = if spec.local.width < spec.positions { spec.local.width } else { 0 };
        Generator {
            heavy: HeavyHitters::new(spec.seed),
            heavy_shares: heavy_shares(&spec),
            local_shares: local_shares(&spec, whole_band, spec.local.mass),
            next: 1,
            special: Vec::new(),
            values: Vec::new(),
            spec,
        }
    }

    /// The first step after the next whose row may have other heavy hitters.
    fn epoch_end(&self) -> usize {
        let heavy = &self.spec.heavy_hitters;
        let after = self.next + 1;
        if after <= heavy.from { heavy.from } else { after.next_multiple_of(heavy.redraw_every) }
    }

    fn write_group(&mut self, block: &mut RowBlock, rows: usize) {
        self.find_special(rows);
        let noise: Lanes =
            std::array::from_fn(
                |lane| if lane < rows { self.spec.noise.mass / (self.next + lane) as f64 } else { 0.0 },
            );
        self.fill_values(rows, &noise);
        let total = self.totals(rows, &noise);
        let mut out = block.push_rows(Position(self.next as u32), rows, |step| step.index());
        for lane in 0..rows {
            let (row, rest) = out.split_at_mut(self.next + lane);
            self.write_row(row, lane, noise[lane], total[lane]);
            out = rest;
        }
    }

    fn find_special(&mut self, rows: usize) {
        let last = self.next + rows - 1;
        let sinks = self.spec.sinks.weights.len().min(last);
        let band = self.next.saturating_sub(self.spec.local.width);
        self.special.clear();
        self.special.extend(0..sinks as u32);
        self.special.extend(band as u32..last as u32);
        self.special.extend(self.heavy.positions());
        self.special.sort_unstable();
        self.special.dedup();
    }

    /// Adds up the weights at the special positions, part by part in the defined order.
    fn fill_values(&mut self, rows: usize, noise: &Lanes) {
        self.values.clear();
        self.values.resize(self.special.len(), [0.0; GROUP]);
        for lane in 0..rows {
            let t = self.next + lane;
            self.add_sinks(t, lane);
            self.add_local(t, lane);
        }
        self.add_heavy(rows);
        for lane in 0..rows {
            let t = self.next + lane;
            for (position, value) in self.special.iter().zip(&mut self.values) {
                if (*position as usize) < t {
                    value[lane] += noise[lane];
                }
            }
        }
    }

    fn add_sinks(&mut self, t: usize, lane: usize) {
        let SinksInView { weights, total } = SinksInView::at(&self.spec, t);
        for (value, weight) in self.values.iter_mut().zip(weights) {
            value[lane] += weight * self.spec.sinks.mass / total;
        }
    }

    fn add_local(&mut self, t: usize, lane: usize) {
        let LocalSpec { width, mass } = self.spec.local;
        let reach = width.min(t);
        let late = t >= self.spec.heavy_hitters.from;
        let own;
        let shares = if late && reach == width {
            &self.local_shares
        } else {
            own = local_shares(&self.spec, reach, if late { mass } else { mass + self.spec.heavy_hitters.mass });
            &own
        };
        let first = self.special.partition_point(|position| (*position as usize) < t - reach);
        for (value, share) in self.values[first..].iter_mut().zip(shares.iter().rev()) {
            value[lane] += share;
        }
    }

    /// All rows of a group have the same heavy hitters.
    fn add_heavy(&mut self, rows: usize) {
        if self.next < self.spec.heavy_hitters.from {
            return;
        }
        for (position, share) in self.heavy.positions().iter().zip(&self.heavy_shares) {
            let at = self.special.binary_search(position).expect("heavy hitters are special");
            self.values[at][..rows].iter_mut().for_each(|value| *value += share);
        }
    }

    /// Sums each row in ascending order; adding 0 for what lies past a row's end changes nothing.
    fn totals(&self, rows: usize, noise: &Lanes) -> Lanes {
        let mut total = [0.0; GROUP];
        let mut next = 0;
        for (position, value) in self.special.iter().zip(&self.values) {
            add_times(&mut total, noise, position - next);
            add_times(&mut total, value, 1);
            next = position + 1;
        }
        debug_assert!(next as usize == self.next + rows - 1, "the last position is in the local band");
        total
    }

    fn write_row(&self, row: &mut [f32], lane: usize, noise: f64, total: f64) {
        row.fill((noise / total) as f32);
        for (position, value) in self.special.iter().zip(&self.values) {
            if let Some(weight) = row.get_mut(*position as usize) {
                *weight = (value[lane] / total) as f32;
            }
        }
    }
}

#[inline]
fn add_times(total: &mut Lanes, value: &Lanes, times: u32) {
    for _ in 0..times {
        for (sum, addend) in total.iter_mut().zip(value) {
            *sum += addend;
        }
    }
}
