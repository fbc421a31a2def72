//! What a lane is told of its cache and of the run.

use super::options::ViewKind;
use super::schedule::Schedule;
use super::section::HeadRange;
use crate::keeping::Combine;
use crate::meter::{CacheBytes, MeterPlan};
use crate::needs::Needs;
use crate::policy::sight::CacheTensors;
use crate::position::Position;
use crate::trace::SelfAttention;
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
    /// Number of positions that the layer attends to, where it is fewer than all.
    pub window: Option<usize>,
    pub meters: &'a [MeterPlan],
    /// What the cache has besides rows, where the policy looks at it.
    pub tensors: Option<&'a Arc<CacheTensors>>,
    /// The way in which keys and values are held in few bits, of those of the run.
    pub way: Option<usize>,
    /// What keys and values take.
    pub cache_bytes: Option<CacheBytes>,
}
