//! The tests of the whole, as one program, which links once: each file is a subject.
//!
//! Figures and decisions: [`right_values`], [`scenarios`], [`recorded`], [`vectors`],
//! [`properties`], [`contract`]. The binary: [`replay_command`], [`commands`], [`table_command`],
//! [`results`], [`outputs`], [`bad_traces`], [`bad_requests`], [`memory`], [`out_of_scale`],
//! [`interrupted`].

mod agree;
mod as_meters;
mod as_reference;
mod bad_requests;
mod bad_traces;
mod commands;
mod common;
mod contract;
mod declared_sizes;
mod interrupted;
mod memory;
mod memory_command;
mod meters;
mod needs;
mod out_of_scale;
mod outputs;
mod plot_command;
mod properties;
mod recorded;
#[path = "../reference/mod.rs"]
mod reference;
mod replay_command;
mod results;
mod right_values;
mod scenarios;
mod table_command;
mod vectors;
