//! `kvsim recommend`: answers worked out by hand, the published values of budgets dealt out to caches, and the
//! command on recorded attention.

mod allocate;
mod by_hand;
mod command;
#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../suite/common/mod.rs"]
mod common;
mod made;
