//! The engine: replays a trace through lanes. The only user of policies; knows no file formats and
//! no reports.
//!
//! What happens in a step depends on whether rows hold the token itself. Excluded: the cache starts
//! as `{0}`; a step measures, observes, admits, evicts. Included: the cache starts empty; a step
//! admits, measures, observes, evicts, so that a row is measured with one more position held than
//! the budget. A step without information is neither measured nor observed.

mod block;
mod bound_lane;
mod cache;
mod coupled;
mod facts;
mod group;
mod lane;
mod layer_budgets;
mod parallel;
mod plan;
mod planning;
mod policy_lane;
mod run;
mod tally;
mod team;

pub use block::ExcessMass;
pub use cache::Cache;
pub use lane::{StepMeasure, StepRecord};
pub use layer_budgets::{LayerBudget, LayerBudgets};
pub use plan::{CachePlan, LanePlan, caches_of, share_caches, shared_caches_of};
pub use planning::{evictions_planned, planning_bytes};
pub use run::{
    BadRows, DEFAULT_HEAVY_HITTERS, DEFAULT_MAX_MEMORY, NoObserver, Observer, Options, Outcome, Stage, ViewKind, replay,
};
pub use tally::Tally;
