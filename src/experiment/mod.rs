//! Experiments: which traces, as which caches, through which lanes.

pub mod caches;
