//! The tests of the whole, as one program, which links once: each file is a subject.
//!
//! Figures and decisions: [`right_values`], [`scenarios`], [`recorded`], [`vectors`],
//! [`properties`], [`contract`]. The binary: [`replay_command`], [`commands`], [`table_command`],
//! [`bad_traces`], [`bad_requests`], [`memory`].

mod agree;
mod bad_requests;
mod bad_traces;
mod common;
mod contract;
mod properties;
mod recorded;
#[path = "../reference/mod.rs"]
mod reference;
mod right_values;
mod scenarios;
mod vectors;
