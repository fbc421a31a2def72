//! Pages: how many pages the held positions occupy, where a page is free once all of its slots are.
//!
//! Token-wise eviction leaves holes: in place, a page with one position left is a page that is held. A page
//! table that serves all KV heads of a layer frees a page when every cache has left it, one for all layers
//! when all of these have. Compacted is what the same positions would take without holes. All are taken
//! after eviction, from the end of the prompt on.

use super::column::{Figure, Kind, Merge, Number, Reading, Sum};
use super::{Counted, LaneEnd, Meter, MeterEntry, MeterSite, StepCounts};
use crate::needs::Needs;
use crate::policy::parameter::{BLOCK_SIZE, Value};
use crate::position::Position;
use std::collections::BTreeMap;

pub(super) const ENTRY: MeterEntry =
    MeterEntry::new("pages", "pages of (16) positions that are held, in place and compacted", SUMS, FIGURES, |of| {
        Box::new(Pages::new(of.site, of.values.count(&BLOCK_SIZE)))
    })
    .needs(Needs::KEPT_SET.and(Needs::HELD_POSITIONS))
    .parameters(&[(&BLOCK_SIZE, Value::Count(16))])
    .of_lanes()
    .of_wholes();

const SUMS: &[Sum] = &[
    Sum::count("pages_steps", "steps", "steps and caches behind pages_in_place and pages_compacted"),
    Sum::count("pages_in_place_sum", "pages", "sum behind pages_in_place"),
    most("pages_in_place_peak", "most pages held in place"),
    Sum::count("pages_compacted_sum", "pages", "sum behind pages_compacted"),
    most("pages_compacted_peak", "most pages held without holes"),
    Sum::count("pages_layer_steps", "steps", "steps and layers behind pages_layer"),
    Sum::count("pages_layer_sum", "pages", "sum behind pages_layer"),
    most("pages_layer_peak", "most pages held where one serves all caches of a layer"),
    Sum::count("pages_trace_steps", "steps", "steps behind pages_trace"),
    Sum::count("pages_trace_sum", "pages", "sum behind pages_trace"),
    most("pages_trace_peak", "most pages held where one serves all caches"),
];

const FIGURES: &[Figure] = &[
    figure("pages_in_place", "pages_in_place_sum", &["pages_steps"], "mean over steps and caches of the pages in use"),
    figure("pages_compacted", "pages_compacted_sum", &["pages_steps"], "the pages that the same positions would fill"),
    figure(
        "pages_layer",
        "pages_layer_sum",
        &["pages_layer_steps"],
        "pages in use where one serves all caches of a layer, mean over steps and layers",
    ),
    figure(
        "pages_trace",
        "pages_trace_sum",
        &["pages_trace_steps"],
        "pages in use where one serves all caches, mean over steps",
    ),
];

const fn most(name: &'static str, meaning: &'static str) -> Sum {
    Sum { name, unit: "pages", kind: Kind::Count, merge: Merge::Most, meaning }
}

const fn figure(
    name: &'static str,
    sum: &'static str,
    steps: &'static [&'static str],
    meaning: &'static str,
) -> Figure {
    Figure::new(name, "pages", Reading::Ratio(sum, steps), meaning)
}

/// A run of steps, both ends included.
type Run = (u32, u32);

/// The pages of one cache, or of several with one table: for each, the runs of steps in which it is held.
#[derive(Clone, PartialEq, Debug, Default)]
struct Held(Vec<Vec<Run>>);

/// The pages of the caches of a lane.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PageUse {
    caches: u64,
    /// The first and the last step that counts.
    counted: Option<Run>,
    in_place: Pair,
    compacted: Pair,
    layers: BTreeMap<u32, Held>,
}

/// A sum and the most of what it adds up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pair {
    sum: u64,
    most: u64,
}

impl Pair {
    fn add(&mut self, pages: u64) {
        self.sum += pages;
        self.most = self.most.max(pages);
    }

    fn merge(&mut self, other: Pair) {
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }
}

impl Held {
    fn note(&mut self, page: usize, step: u32) {
        if self.0.len() <= page {
            self.0.resize(page + 1, Vec::new());
        }
        match self.0[page].last_mut() {
            Some((_, end)) if *end + 1 == step => *end = step,
            _ => self.0[page].push((step, step)),
        }
    }

    /// With the pages of another cache of the same table.
    fn merge(&mut self, other: &Held) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Vec::new());
        }
        for (runs, others) in self.0.iter_mut().zip(&other.0) {
            runs.extend(others);
            runs.sort_unstable();
            let mut joined: Vec<Run> = Vec::new();
            for (start, end) in runs.drain(..) {
                match joined.last_mut() {
                    Some((_, last)) if start <= *last + 1 => *last = end.max(*last),
                    _ => joined.push((start, end)),
                }
            }
            *runs = joined;
        }
    }

    /// Over the steps that are counted.
    fn total(&self, (first, last): Run) -> Pair {
        let mut changes: BTreeMap<u32, i64> = BTreeMap::new();
        for (start, end) in self.0.iter().flatten() {
            *changes.entry(*start.max(&first)).or_default() += 1;
            *changes.entry(*end.min(&last) + 1).or_default() -= 1;
        }
        let (mut total, mut held, mut from) = (Pair::default(), 0, first);
        for (step, change) in changes {
            total.sum += held as u64 * u64::from(step - from);
            (held, from) = (held + change, step);
            total.most = total.most.max(held as u64);
        }
        total
    }
}

impl PageUse {
    /// Adds the pages of another cache of the same lane.
    pub(super) fn merge(&mut self, other: &PageUse) {
        self.caches += other.caches;
        self.counted = match (self.counted, other.counted) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self.in_place.merge(other.in_place);
        self.compacted.merge(other.compacted);
        for (layer, held) in &other.layers {
            self.layers.entry(*layer).or_default().merge(held);
        }
    }

    /// The sums of the meter.
    pub(super) fn sums(&self) -> Vec<Option<Number>> {
        let steps = self.counted.map_or(0, |(first, last)| u64::from(last - first) + 1);
        let counted = self.counted.unwrap_or((0, 0));
        let mut layers = Pair::default();
        let mut all = Held::default();
        for held in self.layers.values() {
            layers.merge(held.total(counted));
            all.merge(held);
        }
        let all = all.total(counted);
        let (caches, layer_count) = (self.caches * steps, self.layers.len() as u64 * steps);
        [
            [caches, self.in_place.sum, self.in_place.most].as_slice(),
            &[self.compacted.sum, self.compacted.most],
            &[layer_count, layers.sum, layers.most],
            &[steps, all.sum, all.most],
        ]
        .concat()
        .into_iter()
        .map(|count| Some(Number::Count(count)))
        .collect()
    }
}

/// Counts the pages of one cache.
struct Pages {
    size: usize,
    layer: u32,
    pages: PageUse,
    held: Held,
}

impl Pages {
    fn new(site: MeterSite, size: usize) -> Pages {
        Pages { size, layer: site.layer, pages: PageUse { caches: 1, ..PageUse::default() }, held: Held::default() }
    }
}

impl Meter for Pages {
    fn held(&mut self, step: Position, kept: &[Position]) {
        let first = self.pages.counted.map_or(step.0, |(first, _)| first);
        self.pages.counted = Some((first, step.0));
        let mut pages = 0;
        for page in kept.chunk_by(|a, b| a.index() / self.size == b.index() / self.size) {
            self.held.note(page[0].index() / self.size, step.0);
            pages += 1;
        }
        self.pages.in_place.add(pages);
        self.pages.compacted.add(kept.len().div_ceil(self.size) as u64);
    }

    fn steps(&mut self, _steps: &[StepCounts]) {}

    fn finish(mut self: Box<Self>, _end: &LaneEnd) -> Counted {
        self.pages.layers.insert(self.layer, self.held);
        Counted::Pages(self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pages: &[&[Run]]) -> Held {
        Held(pages.iter().map(|runs| runs.to_vec()).collect())
    }

    #[test]
    fn a_shared_page_is_held_while_any_cache_holds_it() {
        let mut one = held(&[&[(0, 3), (6, 7)], &[(4, 5)]]);
        one.merge(&held(&[&[(2, 4)], &[], &[(9, 9)]]));
        assert_eq!(one, held(&[&[(0, 4), (6, 7)], &[(4, 5)], &[(9, 9)]]));
        assert_eq!(one.total((0, 9)), Pair { sum: 7 + 2 + 1, most: 2 });
        assert_eq!(one.total((4, 9)), Pair { sum: 3 + 2 + 1, most: 2 }, "only steps that count");
    }
}
