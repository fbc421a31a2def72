//! The engine: replays a trace through lanes. The only user of policies; knows no file formats and
//! no reports.
//!
//! What happens in a step depends on whether rows hold the token itself. Excluded: the cache starts
//! as `{0}`; a step measures, observes, admits, evicts. Included: the cache starts empty; a step
//! admits, measures, observes, evicts, so that a row is measured with one more position held than
//! the budget. A step without information is neither measured nor observed.

mod blocks;
mod bound_lane;
mod cache;
mod cache_bytes;
mod cache_lanes;
pub(crate) mod caches;
mod cohort;
mod context;
mod coupled_handle;
mod feed;
mod kept_outputs;
mod lane;
mod lane_meters;
mod lane_plan;
mod lane_site;
mod layer_outputs;
mod live;
mod observer;
mod options;
mod outputs;
mod parallel;
mod planning;
mod playback;
mod policy_lane;
mod prompt_cuts;
mod row_facts;
mod row_watch;
mod run;
mod scale;
mod schedule;
mod section;
mod selector_lane;
mod step_batch;
mod view;

pub use crate::meter::Tally;
pub use cache::Cache;
pub use caches::{CachePlan, caches_of, shared_caches_of};
pub use context::Outcome;
pub use lane_plan::LanePlan;
pub use live::LiveCache;
pub use observer::{NoObserver, Observer, Stage, StepRecord};
pub use options::{BadRows, DEFAULT_HEAVY_HITTERS, DEFAULT_MAX_MEMORY, Options, ViewKind};
pub use planning::{evictions_planned, planning_bytes};
pub use playback::Playback;
pub use run::replay;
pub use view::Shown;
