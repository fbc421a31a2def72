//! What a lane is told of its cache and of the run.

use super::cache_bytes::bytes_of;
use super::caches::CachePlan;
use super::lane_plan::LanePlan;
use super::options::{Options, ViewKind};
use super::schedule::Schedule;
use super::section::HeadRange;
use crate::keeping::Combine;
use crate::meter::{MeterPlan, MeterSite};
use crate::needs::Needs;
use crate::policy::entry::Setting;
use crate::policy::parameter::{RECENT_WINDOW, SINKS};
use crate::policy::rounding::Rounding;
use crate::policy::sight::CacheTensors;
use crate::position::Position;
use crate::trace::{SelfAttention, TraceInfo};
use std::sync::Arc;

/// Where a lane works.
#[derive(Clone, Copy)]
pub(super) struct LaneSite<'a> {
    /// Name of the policy, for messages.
    pub name: &'static str,
    /// What the policy needs of a step.
    pub needs: Needs,
    /// The row that it sees.
    pub combine: Combine,
    /// The heads of a batch that the cache serves.
    pub heads: HeadRange,
    /// When the cache is cut.
    pub schedule: Schedule,
    pub self_attention: SelfAttention,
    /// Step of the first row: the positions before it are there from the start.
    pub first: Position,
    pub view: ViewKind,
    /// Whether records of steps say what positions were judged by.
    pub judged: bool,
    /// What the policy's scores are rounded to.
    pub rounding: Option<Rounding>,
    /// Number of positions that the layer attends to, where it is fewer than all.
    pub window: Option<usize>,
    pub meters: &'a [MeterPlan],
    /// What meters know of it.
    pub counted: MeterSite,
    /// What the cache has besides rows, where the policy looks at it.
    pub tensors: Option<&'a Arc<CacheTensors>>,
    /// The way in which keys and values are held in few bits, of those of the run.
    pub way: Option<usize>,
}

impl<'a> LaneSite<'a> {
    /// The site of a lane on a cache, where nobody asks what positions are judged by.
    pub(super) fn new(
        info: &TraceInfo,
        options: &'a Options,
        (cache, heads): (&CachePlan, HeadRange),
        plan: &LanePlan,
        setting: &Setting,
    ) -> LaneSite<'a> {
        let own = plan.entry.own.cuts.map(|cuts| cuts(setting));
        LaneSite {
            name: plan.entry.name,
            needs: plan.entry.needs,
            combine: plan.keeping.combine,
            heads,
            schedule: Schedule::new(plan.budget.map(|_| setting.budget), plan.keeping, own),
            self_attention: info.self_attention,
            first: info.first_position,
            view: options.view,
            judged: false,
            rounding: plan.rounding,
            window: cache.window,
            meters: &options.meters,
            counted: counted(info, cache, plan, setting),
            tensors: None,
            way: None,
        }
    }
}

/// What meters know of a kept set.
fn counted(info: &TraceInfo, cache: &CachePlan, plan: &LanePlan, setting: &Setting) -> MeterSite {
    let window = |parameter| setting.values.get(parameter).map(|_| setting.values.count(parameter));
    MeterSite {
        budget: plan.budget.map(|_| setting.budget),
        recent_window: window(&RECENT_WINDOW),
        sinks: window(&SINKS),
        layer: cache.label.layer,
        window: cache.window,
        first: info.first_position,
        bytes: bytes_of(info, cache),
    }
}
