//! `roco`: among the positions whose weight hardly varies, the one with the least mean weight goes.
//!
//! *Idea.* A mean says little of a position that rows attend to now and then: those whose weights
//! vary most stay whatever their mean, and among the steady ones the mean decides.
//! *Paper.* Ren and Zhu: On the Efficacy of Eviction Policy for Key-Value Constrained Generative
//! Language Model Inference, 2024, arXiv 2402.06262.
//! *How this differs from the paper.* The code (DRSY/EasyKV) starts its counts at one and advances
//! them only once evictions have begun; here they are the rows that showed the position. A cut of
//! several positions ranks once and takes the lowest means. A position that is among the newest 10,
//! or that no row has shown, varies without bound. Of positions that vary alike the lower one is
//! within reach first. Whole blocks (`--page`) are refused: what varies is scattered, and a block without any
//! of it need not exist.
//! *Parameters.* `steady` (0.3): `floor(steady x budget) + 1` positions stay because they vary most;
//! the product is taken in f64.
//! *Cost.* Two f64 and one u32 per slot; two additions per slot and step, a selection per eviction.

use super::entry::{Make, PolicyEntry, Setting};
use super::means::Means;
use super::parameter::{STEADY, Value};
use super::{Admission, Observation, Overflow, Policy};
use crate::position::Slot;
use crate::slots::SlotVec;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("roco", "keeps what varies most, and of the rest the highest mean weight", Make::Policy(make))
        .paper("Ren, Zhu: On the Efficacy of Eviction Policy, 2024, arXiv 2402.06262")
        .parameters(&[(&STEADY, Value::Real(0.3))])
        .check(check)
        .probe("meanOf");

/// Newest positions, of which too little is known.
const NEWEST: usize = 10;

/// Slots that stay because they vary most.
fn out_of_reach(Setting { budget, values, .. }: &Setting) -> usize {
    ((values.real(&STEADY) * *budget as f64).floor() as usize).saturating_add(1)
}

fn check(setting: &Setting) -> Result<(), String> {
    let (kept, budget) = (out_of_reach(setting), setting.budget);
    if kept < budget {
        return Ok(());
    }
    let steady = setting.values.real(&STEADY);
    Err(format!("steady {steady} leaves nothing to evict at budget {budget}: {kept} positions stay because they vary"))
}

fn make(setting: &Setting) -> Box<dyn Policy> {
    let slots = setting.budget;
    Box::new(Roco {
        out_of_reach: out_of_reach(setting),
        means: Means::new(slots),
        squares: SlotVec::with_capacity(slots),
        order: Vec::new(),
    })
}

struct Roco {
    out_of_reach: usize,
    means: Means,
    /// The sum of each slot's squared weights.
    squares: SlotVec<f64>,
    /// What is ranked by, and the slot.
    order: Vec<(f64, usize)>,
}

impl Roco {
    /// The standard deviation of a slot's weights.
    fn deviation(&self, slot: usize) -> f64 {
        let newest = slot + NEWEST >= self.means.len();
        match self.means.observations(slot) {
            observations if observations > 0 && !newest => {
                let mean = self.means.mean(slot);
                (self.squares[slot] / f64::from(observations) - mean * mean).max(0.0).sqrt()
            }
            _ => f64::INFINITY,
        }
    }

    /// The slots that vary least, each with its mean, in the buffer that the caller puts back.
    fn within_reach(&mut self) -> Vec<(f64, usize)> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..self.means.len()).map(|slot| (self.deviation(slot), slot)));
        keep_first(&mut order, self.means.len().saturating_sub(self.out_of_reach));
        order.iter_mut().for_each(|(rank, slot)| *rank = self.means.mean(*slot));
        order
    }
}

/// Leaves the `count` pairs that come first, in no order.
fn keep_first(order: &mut Vec<(f64, usize)>, count: usize) {
    if count < order.len() {
        order.select_nth_unstable_by(count, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.truncate(count);
    }
}

impl Policy for Roco {
    fn admit(&mut self, _admission: Admission<'_>) {
        self.means.admit();
        self.squares.push(0.0);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.means.observe(seen);
        for (square, weight) in self.squares.iter_mut().zip(seen.weights) {
            *square += f64::from(*weight) * f64::from(*weight);
        }
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        let mut order = self.within_reach();
        keep_first(&mut order, overflow.excess);
        victims.extend(order.iter().map(|(_, slot)| Slot(*slot)));
        victims.sort_unstable();
        self.order = order;
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.means.forget(slots);
        self.squares.remove(slots);
    }

    fn slots(&self) -> Option<usize> {
        Some(self.means.len())
    }

    fn probe(&self, slot: Slot) -> Option<f64> {
        (self.means.observations(slot.0) > 0).then(|| self.means.mean(slot.0))
    }

    fn slot_bytes(&self) -> usize {
        self.means.slot_bytes() + size_of::<f64>()
    }
}
