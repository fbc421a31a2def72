//! Sections: the caches whose rows are read into one batch, so that a lane may work on the heads of one of
//! them or of all.
//!
//! A section is a single cache, or, where a lane keeps one set for a layer, the caches of a layer.

use super::caches::{CachePlan, LayerSet, layer_sets};
use super::lane_plan::LanePlan;
use crate::keeping::Scope;
use crate::meter::MeterPlan;
use crate::needs::Needs;
use std::borrow::Cow;

/// The query heads of a batch that a lane works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeadRange {
    pub start: usize,
    pub end: usize,
}

impl HeadRange {
    /// Number of heads.
    #[inline]
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }
}

/// Caches whose rows are read side by side.
pub(super) struct Section<'a> {
    /// All of them as one cache.
    pub whole: Cow<'a, CachePlan>,
    /// Their indices among the caches of the run.
    caches: Vec<usize>,
    /// The heads of each.
    heads: Vec<HeadRange>,
    /// Index of the layer's set, where lanes keep one.
    layer: Option<usize>,
}

/// A kept set of a lane: of a cache, or of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetPlace {
    /// Index among the sets of its scope in the run.
    pub index: usize,
    /// Index of the section among those of its cohort.
    pub section: usize,
    /// The heads that it serves.
    pub heads: HeadRange,
}

impl<'a> Section<'a> {
    fn alone(index: usize, cache: &'a CachePlan) -> Section<'a> {
        let heads = HeadRange { start: 0, end: cache.streams.len() };
        Section { whole: Cow::Borrowed(cache), caches: vec![index], heads: vec![heads], layer: None }
    }

    fn of_layer(index: usize, LayerSet { whole, caches: members }: LayerSet, caches: &[CachePlan]) -> Section<'a> {
        let mut end = 0;
        let heads = |cache: &usize| {
            let start = end;
            end += caches[*cache].streams.len();
            HeadRange { start, end }
        };
        let heads = members.iter().map(heads).collect();
        Section { whole: Cow::Owned(whole), caches: members, heads, layer: Some(index) }
    }
}

/// The kept sets of a scope in the sections of a cohort, in the order of caches.
pub(super) fn sets(sections: &[Section<'_>], scope: Scope) -> Vec<SetPlace> {
    let in_section = |(section, of): (usize, &Section<'_>)| -> Vec<SetPlace> {
        match scope {
            Scope::Head => {
                let place = |(index, heads): (&usize, &HeadRange)| SetPlace { index: *index, section, heads: *heads };
                of.caches.iter().zip(&of.heads).map(place).collect()
            }
            Scope::Layer => {
                let heads = HeadRange { start: 0, end: of.whole.streams.len() };
                of.layer.into_iter().map(|index| SetPlace { index, section, heads }).collect()
            }
        }
    };
    sections.iter().enumerate().flat_map(in_section).collect()
}

/// The sections that stand side by side, for every such group: most are a single cache. Caches stand together
/// where a lane keeps one set for a layer or a meter looks at whole layers, and where a coupled lane serves them: those of one head, in the
/// order of layers, or all where both are so.
pub(super) fn cohorts_of<'a>(
    caches: &'a [CachePlan],
    lanes: &[LanePlan],
    meters: &[MeterPlan],
) -> Vec<Vec<Section<'a>>> {
    let coupled = lanes.iter().any(|lane| lane.entry.needs.has(Needs::LAYERS));
    let of_layers = lanes.iter().any(|lane| lane.keeping.scope == Scope::Layer)
        || meters.iter().any(|plan| plan.entry.needs.has(Needs::PROJECTION));
    let sections: Vec<Section<'a>> = if of_layers {
        let layers = layer_sets(caches).into_iter().enumerate();
        layers.map(|(index, layer)| Section::of_layer(index, layer, caches)).collect()
    } else {
        caches.iter().enumerate().map(|(index, cache)| Section::alone(index, cache)).collect()
    };
    let mut cohorts: Vec<Vec<Section<'a>>> = Vec::new();
    for section in sections {
        let together =
            |cohort: &&mut Vec<Section<'_>>| of_layers || cohort[0].whole.label.head == section.whole.label.head;
        match cohorts.iter_mut().find(together).filter(|_| coupled) {
            Some(cohort) => cohort.push(section),
            None => cohorts.push(vec![section]),
        }
    }
    cohorts.iter_mut().for_each(|cohort| cohort.sort_by_key(|section| section.whole.label.layer));
    cohorts
}
