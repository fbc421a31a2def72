//! `kvsim analyze`: figures worked out by hand, figures of recorded attention, the control trace that
//! shows which of them mean nothing, and the command.

mod by_hand;
mod command;
#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../suite/common/mod.rs"]
mod common;
mod control;
mod recorded;
#[path = "../reference/mod.rs"]
mod reference;
mod slow;
mod sweep;
mod theory;
