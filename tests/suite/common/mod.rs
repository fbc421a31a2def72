//! What the test files share: running the binary, folders of test files, lanes and their logs.
//!
//! - [`binary`]: runs the built binary and keeps what it said
//! - [`files`]: folders that vanish, and safetensors files made by hand
//! - [`lanes`]: replays through the library, with or without a record of every step
//! - [`shared`]: the larger recorded traces, where this machine has them

pub mod binary;
pub mod files;
pub mod lanes;
pub mod shared;

/// Fails unless two figures agree to six decimals.
#[track_caller]
pub fn assert_near(found: f64, wanted: f64, what: &str) {
    assert!((found - wanted).abs() <= 1e-6, "{what}: {found} is not {wanted}");
}
