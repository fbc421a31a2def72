//! What the benches share: measuring in rounds, running the binary, traces, lanes, tables.
//!
//! Nothing here judges a time. A machine is shared and drifts, so that what is compared is measured
//! in turn, round by round, in one run; figures are quotients of what that run found.
#![allow(dead_code, reason = "each bench is a crate of its own and uses a part of this")]

pub mod binary;
pub mod lanes;
pub mod machine;
pub mod rounds;
pub mod table;
pub mod traces;

/// Whether `cargo bench` runs this, and not `cargo test --all-targets`, which has no use for times.
pub fn asked_to_measure() -> bool {
    let asked = std::env::args().any(|argument| argument == "--bench");
    if !asked {
        println!("nothing is measured without --bench: run it with cargo bench");
    }
    asked
}
