//! Counts a lane's rows in blocks of consecutive steps, which a bootstrap draws again and again.
//!
//! A meter that is no column of reports: it runs for a recommendation only, and hands on its numbers as they
//! are. Those of one cache are kept beside the sum over all.

use super::sums::RowSums;
use crate::meter::{Counted, JointRows, LaneEnd, Meter, MeterEntry, MeterPlan, RowCounts, Tally};
use crate::needs::Needs;
use crate::policy::parameter::{Kind, Parameter, Value, Values};
use crate::position::Position;

const NAME: &str = "blocks";

/// Steps of a block.
const LENGTH: Parameter = count("block-length", "steps of a block");

/// The first step whose rows count.
const FROM: Parameter = count("from", "the first step whose rows count");

const fn count(name: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, column: name, vector_key: name, summary, kind: Kind::Count { least: 0, odd: false } }
}

static ENTRY: MeterEntry = MeterEntry::new(NAME, "rows in blocks of consecutive steps", &[], &[], |setting| {
    let (length, from) = (setting.values.count(&LENGTH), setting.values.count(&FROM));
    Box::new(Blocks { length, from, rows: JointRows::new(NUMBERS), current: None })
})
.needs(Needs::KEPT_SET)
.of_lanes()
.joint(|_| Vec::new());

/// Rows that can lose, their total, what was retained of it, peak misses, rows.
const NUMBERS: usize = 5;

/// The meter for blocks of so many steps, of rows from a step on.
pub(super) fn meter(length: usize, from: usize) -> MeterPlan {
    let mut values = Values::default();
    values.set(&LENGTH, Value::Count(length));
    values.set(&FROM, Value::Count(from));
    MeterPlan { values, ..MeterPlan::new(&ENTRY) }
}

/// What was counted of each block.
pub(super) fn counted(tally: &Tally) -> Vec<RowSums> {
    let sums = |numbers: Vec<f64>| match numbers[..] {
        [rows, total, retained, misses, seen] => RowSums { rows, total, retained, misses, seen, ..RowSums::default() },
        _ => RowSums::default(),
    };
    tally.joint(NAME).map_or(Vec::new(), |rows| rows.counted().map(sums).collect())
}

/// The joint meter of the predicted loss.
pub(super) const LOSS: &str = "predicted_loss";

/// Adds what a lane's caches change of the log-likelihood together, row by row, to the blocks that the rows are of.
/// Rows are counted up to the last of `steps`; blocks of `length` steps end with it.
pub(super) fn add_changes<'a>(
    blocks: &mut [RowSums],
    tallies: impl Iterator<Item = &'a Tally>,
    steps: usize,
    length: usize,
) {
    let mut all = Tally::default();
    tallies.for_each(|tally| all.merge(tally));
    let Some(rows) = all.joint(LOSS) else { return };
    let changes: Vec<(f64, f64)> = rows.counted().map(|changes| squares(&changes)).collect();
    let first_row = steps.saturating_sub(changes.len());
    let first_block = steps.div_ceil(length).saturating_sub(blocks.len());
    for (row, (sum, count)) in changes.into_iter().enumerate() {
        let block = ((first_row + row) / length).saturating_sub(first_block);
        if let Some(block) = blocks.get_mut(block) {
            block.changes += sum;
            block.changed_rows += count;
        }
    }
}

/// The squares of a row's changes, added up over samples, and how many there are.
fn squares(changes: &[f64]) -> (f64, f64) {
    (changes.iter().map(|change| change * change).sum(), changes.len() as f64)
}

struct Blocks {
    length: usize,
    from: usize,
    rows: JointRows,
    /// The block under way, and its numbers.
    current: Option<(usize, [f64; NUMBERS])>,
}

impl Blocks {
    fn hand_on(&mut self) {
        let Some((block, numbers)) = self.current.take() else { return };
        self.rows.count_from(Position(0));
        let step = Position(block as u32);
        numbers.into_iter().enumerate().for_each(|(number, value)| self.rows.add(step, number, value));
    }

    fn numbers_of(&mut self, block: usize) -> &mut [f64; NUMBERS] {
        if self.current.is_some_and(|(current, _)| current != block) {
            self.hand_on();
        }
        &mut self.current.get_or_insert((block, [0.0; NUMBERS])).1
    }
}

impl Meter for Blocks {
    fn rows(&mut self, rows: &[RowCounts]) {
        for row in rows {
            let counts = row.step.index() >= self.from;
            let can_lose = counts && row.after_eviction;
            let missed = row.hits.is_some_and(|hits| hits.peak_missed);
            let numbers = self.numbers_of(row.step.index() / self.length);
            numbers[4] += f64::from(u8::from(counts));
            if can_lose {
                let counted = [1.0, row.total, row.retained, f64::from(u8::from(missed))];
                numbers.iter_mut().zip(counted).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    fn finish(mut self: Box<Self>, _end: &LaneEnd) -> Counted {
        self.hand_on();
        Counted::Joint(self.rows)
    }
}
