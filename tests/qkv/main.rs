//! Traces of queries, keys and values: a slow replay of its own, held to published figures and to cases with
//! exact answers, and the crate held to it.
//!
//! [`slow`] is the reference; [`by_hand`] and [`published`] say that it is right. [`rows`], [`recorded`],
//! [`agree`], [`outputs`], [`vectors`], [`refusals`] and [`commands`] hold the crate to it, on traces that [`made`] writes and on recorded ones.

mod agree;
mod by_hand;
mod commands;
#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/common/mod.rs"]
mod common;
mod folders;
mod made;
mod outputs;
mod published;
#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../reference/random.rs"]
mod random;
mod recorded;
mod refusals;
mod rows;
mod slow;
mod tables;
mod vectors;
