//! The policies that engines and libraries ship: what a correct build reports of them on recorded attention.

#[allow(dead_code, reason = "shared with the other programs of tests")]
#[path = "../suite/common/mod.rs"]
mod common;
mod openvino;
mod prompt_end;
#[path = "../reference/mod.rs"]
mod reference;
mod selectors;
mod streaming;
